// Package plan turns a target, facts about the host and options into steps,
// as data. It is pure: no files, no clock, no environment, no processes. What
// a step depends on is in its fingerprint, so equal fingerprints mean equal
// work.
package plan

import (
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/toolchain"
)

// Stages, in the order in which a build goes through them.
const (
	StagePython  = "python"
	StageToolkit = "toolkit"
	Stage1       = "stage 1"
	Stage2       = "stage 2"
	StageInstall = "install"
	StageProbe   = "probe"
)

// Kind says who carries out a step.
type Kind string

// Run is a process; the others are invar's own work, each with a command that
// does the same by hand.
const (
	Run     Kind = "run"
	Env     Kind = "environment" // make a Python environment
	Pack    Kind = "pack"        // write a run package
	Wheel   Kind = "wheel"       // write a wheel
	Prove   Kind = "proof"       // look into GPU machine code
	Toolkit Kind = "toolkit"     // make a CUDA toolkit of invar's own
	Ops     Kind = "install-ops" // put a run package into the new generation
	Site    Kind = "install-site"
	Commit  Kind = "commit" // receipt and switch
	ProbeIt Kind = "probe"
	Fetch   Kind = "fetch" // bring a released file or a source tree
)

// A Step is one piece of work. Paths in Argv, Inputs and Outputs are relative
// to the work folder unless absolute.
type Step struct {
	ID          string   `json:"id"`    // "stage1/compile/mm-avx2"
	Stage       string   `json:"stage"` // one of the Stage constants
	Title       string   `json:"title"` // for people: "kernels avx2"
	Kind        Kind     `json:"kind"`
	Argv        []string `json:"argv,omitempty"`
	Env         []string `json:"env,omitempty"`
	Needs       []string `json:"needs,omitempty"`   // steps whose outputs are read
	Inputs      []Input  `json:"inputs,omitempty"`  // what the fingerprint is made of beside Argv and Env
	Outputs     []string `json:"outputs,omitempty"` // files
	Spec        any      `json:"spec,omitempty"`    // of Pack and Wheel: what they are given
	Fingerprint string   `json:"fingerprint"`
}

// An Input is one fact that a step depends on.
type Input struct {
	Name   string `json:"name"`   // "src/cpu/kernels/mm.cpp", "compiler", "torch"
	Digest string `json:"digest"` // "sha256:..." of a file, or the fact itself
}

// A Plan is everything a build would do.
type Plan struct {
	Target       string               `json:"target"`
	Why          string               `json:"why"` // how the target was chosen
	Flavour      string               `json:"flavour"`
	Includes     string               `json:"includes,omitempty"` // target whose operators are in this one, too
	Contract     string               `json:"contract"`
	Arch         string               `json:"arch"`
	Prefix       string               `json:"prefix"`
	Python       python.Python        `json:"python"`
	Recipe       *python.Recipe       `json:"recipe,omitempty"` // set when Python has to be made
	Compiler     toolchain.Compiler   `json:"compiler"`
	Release      *Release             `json:"release,omitempty"` // of targets whose operators are released
	CUDA         *CUDA                `json:"cuda,omitempty"`
	Requirements []report.Requirement `json:"requirements"`
	Steps        []Step               `json:"steps"`
	Fingerprint  string               `json:"fingerprint"` // of everything that is installed
}

// Step finds a step by its ID.
func (p Plan) Step(id string) (Step, bool) {
	for _, s := range p.Steps {
		if s.ID == id {
			return s, true
		}
	}
	return Step{}, false
}
