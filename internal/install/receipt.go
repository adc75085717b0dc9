package install

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/invar-ops/invar/internal/cannenv"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/store"
)

// receiptSchema counts incompatible changes of Receipt.
const receiptSchema = 1

// A Receipt says what an installation put where. It is final: what is learnt
// later goes into other files.
type Receipt struct {
	Schema      int       `json:"schema"`
	Generation  int       `json:"generation"`
	Previous    int       `json:"previous"` // generation that was current before, 0 is none
	Target      string    `json:"target"`   // "cpu"
	Flavour     string    `json:"flavour"`  // "cpu", "cuda", "ascend"
	Python      Env       `json:"python"`
	RunPackage  Artifact  `json:"run_package"`
	Wheel       Artifact  `json:"wheel"`
	Fingerprint string    `json:"fingerprint"` // of the plan
	Contract    string    `json:"contract"`    // version of the numerical contract
	Prefix      string    `json:"prefix"`
	Hook        Hook      `json:"hook"`
	Release     *Release  `json:"release,omitempty"`  // of released operators
	Replaced    []Moved   `json:"replaced,omitempty"` // by this generation
	Files       []File    `json:"files"`
	Invar       string    `json:"invar"` // version of invar that wrote it
	Installed   time.Time `json:"installed"`
}

// A Release is what is known of operators that a vendor released.
type Release struct {
	Vendor      string   `json:"vendor"`  // folder in ops/<target>/vendors
	Version     string   `json:"version"` // as asked for
	SoC         string   `json:"soc,omitempty"`
	CANN        string   `json:"cann"` // folder of the CANN that it was built with
	CANNVersion string   `json:"cann_version"`
	Compiled    string   `json:"compiled_with"` // CANN of the run package, "" when it does not tell
	Ops         string   `json:"ops_from"`      // address or path
	Extension   string   `json:"extension_from"`
	Installer   string   `json:"installer"` // "script", "script, confined", "copy"
	Repaired    []string `json:"repaired,omitempty"`
	IntoCANN    bool     `json:"into_cann"`
	// VLLM is the source install of vllm-ascend that came with it.
	VLLM *VLLMInstall `json:"vllm_ascend,omitempty"`
	// Environment is what CANN's scripts set when it was built, and Digest says
	// what they were.
	Environment []cannenv.Var `json:"environment"`
	Digest      string        `json:"environment_digest"`
}

// A VLLMInstall is a source install of vllm-ascend that pip did before the
// transaction. Going back is a command that the user runs.
type VLLMInstall struct {
	Dir      string      `json:"dir"`
	Version  string      `json:"version"`
	Digest   string      `json:"digest"` // of the sources
	Editable bool        `json:"editable"`
	Changes  []PipChange `json:"changes"`
	Back     string      `json:"back"` // command
}

// A PipChange is one distribution before and after.
type PipChange struct {
	Name string `json:"name"`
	Was  string `json:"was,omitempty"` // version; "" was not there
	Now  string `json:"now,omitempty"` // "" is gone
}

// VendorDir is the folder of the vendor of r in its own generation, "" without one.
func (r Receipt) VendorDir() string {
	if r.Release == nil {
		return ""
	}
	return filepath.Join(r.Dir(), "ops", r.Target, "vendors", r.Release.Vendor)
}

// An Env names the Python that a receipt belongs to.
type Env struct {
	ID      string   `json:"id"`
	Exe     string   `json:"exe"`
	Version string   `json:"version"`
	Prefix  string   `json:"prefix"`
	Purelib string   `json:"purelib"`
	Paths   []string `json:"paths"` // site directories in sys.path order
	Torch   string   `json:"torch"` // version, "" without torch
}

// An Artifact is one of the two files of a bundle.
type Artifact struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// A File is one file or link of a generation.
type File struct {
	Path   string `json:"path"` // below the generation
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Link   string `json:"link,omitempty"` // of a symbolic link
}

// A Hook is the .pth file in site-packages.
type Hook struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func envOf(py python.Python) Env {
	return Env{
		ID: py.ID(), Exe: py.Exe, Version: py.Version, Prefix: py.Prefix,
		Purelib: py.Purelib, Paths: py.Paths, Torch: py.Torch.Version,
	}
}

// Dir is the folder of the receipt's generation. Python sees the same folder
// as .../current, which Site and Ops use.
func (r Receipt) Dir() string {
	return filepath.Join(r.Prefix, "env", r.Python.ID, "gen", fmt.Sprint(r.Generation))
}

// Current is the folder through which Python sees the current generation.
func (r Receipt) Current() string { return filepath.Join(r.Prefix, "env", r.Python.ID, "current") }

// Site is the folder on sys.path while this generation is current.
func (r Receipt) Site() string { return filepath.Join(r.Current(), "site") }

// Ops is the folder of the run package's content while this generation is current.
func (r Receipt) Ops() string { return filepath.Join(r.Current(), "ops", r.Target) }

func (e env) readReceipt(n int) (Receipt, error) {
	b, err := e.root.ReadFile(e.receiptPath(n))
	if err != nil {
		return Receipt{}, err
	}
	var r Receipt
	if err := store.DecodeJSON(b, &r); err != nil {
		return Receipt{}, fmt.Errorf("%s: %w", e.receiptPath(n), err)
	}
	if r.Schema != receiptSchema {
		return Receipt{}, fmt.Errorf("%s: schema %d, want %d", e.receiptPath(n), r.Schema, receiptSchema)
	}
	if r.Generation != n || r.Python.ID != e.id {
		return Receipt{}, fmt.Errorf("%s: it belongs to generation %d of %s", e.receiptPath(n), r.Generation, r.Python.ID)
	}
	return r, nil
}

func (e env) writeReceipt(r Receipt) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return store.WriteFile(e.receiptPath(r.Generation), append(b, '\n'), 0o644)
}

// Current is the receipt of the current generation for the Python with this
// id, fs.ErrNotExist when there is none.
func (p *Prefix) Current(id string) (Receipt, error) {
	e := p.env(id)
	n, err := e.current()
	if err != nil {
		return Receipt{}, err
	}
	if n == 0 {
		return Receipt{}, fmt.Errorf("nothing is installed for this Python in %s: %w", p.Dir, os.ErrNotExist)
	}
	return e.readReceipt(n)
}

// SaveProbe keeps what a probe found beside the receipt.
func (p *Prefix) SaveProbe(r Receipt, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return store.WriteFile(filepath.Join(r.Dir(), "probe.json"), append(b, '\n'), 0o644)
}

// Probe reads what SaveProbe kept; fs.ErrNotExist when nothing was probed.
func (p *Prefix) Probe(r Receipt, v any) error {
	b, err := os.ReadFile(filepath.Join(r.Dir(), "probe.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
