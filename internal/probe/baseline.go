package probe

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
)

// baselineSchema counts incompatible changes of Baseline.
const baselineSchema = 1

// A Baseline is what a team agreed on: what is installed and how far it was
// proved. It holds no paths and no times, so that it fits every host of a kind.
type Baseline struct {
	Schema     int                   `json:"schema"`
	Target     string                `json:"target"`
	Contract   string                `json:"contract"`
	Python     string                `json:"python"` // version
	Torch      string                `json:"torch"`
	RunPackage install.Artifact      `json:"run_package"`
	Wheel      install.Artifact      `json:"wheel"`
	Levels     map[int]report.Status `json:"levels"`
}

// BaselineOf is the baseline of an installation and its probe.
func BaselineOf(r install.Receipt, res Result) Baseline {
	b := Baseline{
		Schema: baselineSchema, Target: r.Target, Contract: r.Contract, Python: r.Python.Version, Torch: r.Python.Torch,
		RunPackage: r.RunPackage, Wheel: r.Wheel, Levels: map[int]report.Status{},
	}
	for _, l := range res.Levels {
		b.Levels[l.Level] = l.Status
	}
	return b
}

// ReadBaseline reads a baseline strictly.
func ReadBaseline(from io.Reader) (Baseline, error) {
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	var b Baseline
	if err := d.Decode(&b); err != nil {
		return b, err
	}
	if b.Schema != baselineSchema {
		return b, fmt.Errorf("schema %d, want %d", b.Schema, baselineSchema)
	}
	return b, nil
}

// Write writes b for a commit: indented, one order.
func (b Baseline) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(b)
}

// A Drift is one difference from a baseline.
type Drift struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// Drifts lists what differs in now. A level that was not run now and passed
// then is a difference: a shallower probe must not look as good.
func (b Baseline) Drifts(now Baseline) []Drift {
	var out []Drift
	add := func(what, want, got string) {
		if want != got {
			out = append(out, Drift{what, want, firstNonEmpty(got, "none")})
		}
	}
	add("target", b.Target, now.Target)
	add("contract", b.Contract, now.Contract)
	add("Python", b.Python, now.Python)
	add("torch", b.Torch, now.Torch)
	add("run package", b.RunPackage.Name+" "+b.RunPackage.SHA256, now.RunPackage.Name+" "+now.RunPackage.SHA256)
	add("wheel", b.Wheel.Name+" "+b.Wheel.SHA256, now.Wheel.Name+" "+now.Wheel.SHA256)
	for level := OfImage; level <= Deepest; level++ {
		want, recorded := b.Levels[level]
		if !recorded {
			continue
		}
		add(fmt.Sprintf("level %d", level), string(want), firstNonEmpty(string(now.Levels[level]), "not run"))
	}
	return out
}
