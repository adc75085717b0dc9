package target

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/targets"
)

// embedded reads the targets once: decoding them takes some milliseconds, and an
// unchanged build asks several times.
var embedded = sync.OnceValues(func() ([]Target, error) { return load(targets.FS) })

// All lists the targets by name. What they hold is shared and not to be changed.
func All() ([]Target, error) {
	all, err := embedded()
	return slices.Clone(all), err
}

// Find is the target called name.
func Find(name string) (Target, error) {
	all, err := All()
	if err != nil {
		return Target{}, err
	}
	var names []string
	for _, t := range all {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	if c, ok := RefusedName(name); ok {
		return Target{}, report.Problemf(report.Unmet, "%s is known and refused: %s", name, c.Reason)
	}
	return Target{}, report.Usagef("unknown target %q", name).
		WithWant("one of "+strings.Join(names, ", "), "").WithHint("invar targets")
}

func load(root fs.FS) ([]Target, error) {
	files, err := fs.Glob(root, "*/target.yaml")
	if err != nil {
		return nil, err
	}
	var all []Target
	for _, f := range files {
		b, err := fs.ReadFile(root, f)
		if err != nil {
			return nil, err
		}
		t, err := Decode("targets/"+f, b)
		if err != nil {
			return nil, err
		}
		if t.Name != path.Dir(f) {
			return nil, fmt.Errorf("targets/%s: name is %q, want the folder's name", f, t.Name)
		}
		all = append(all, t)
	}
	for i := range all {
		if err := include(&all[i], all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// include gives t the stages of the target that it includes. The run package
// keeps its own name.
func include(t *Target, all []Target) error {
	if t.Includes == "" {
		return nil
	}
	for _, base := range all {
		if base.Name != t.Includes {
			continue
		}
		name := t.Stage1.Package
		t.Stage1, t.Stage2, t.Contract = base.Stage1, base.Stage2, base.Contract
		t.Stage1.Package = name
		return nil
	}
	return fmt.Errorf("targets/%s: includes %q, which is no target", t.Name, t.Includes)
}

// Decode reads one target.yaml and checks what a decoder cannot.
func Decode(file string, b []byte) (Target, error) {
	var t Target
	if err := data.Decode(file, b, &t); err != nil {
		return t, err
	}
	if err := check(t); err != nil {
		return t, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

func check(t Target) error {
	if t.Name == "" || t.Title == "" || t.Flavour == "" {
		return fmt.Errorf("name, title and flavour are needed")
	}
	if len(t.Sources) == 0 {
		return fmt.Errorf("sources: a target says where its facts come from")
	}
	for _, c := range t.Chips {
		if _, err := regexp.Compile(c.Pattern); err != nil {
			return fmt.Errorf("chips: pattern %q: %w", c.Pattern, err)
		}
	}
	if err := t.CUDA.check(); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	var names []string
	for _, o := range t.Operators {
		if slices.Contains(names, o.Name) || !strings.HasPrefix(o.Schema, o.Name+"(") && (o.Schema != "" || t.Flavour != "ascend") { // a vendor's schemas are not ours to state
			return fmt.Errorf("operators: %s: twice, or its schema is another's", o.Name)
		}
		names = append(names, o.Name)
	}
	for _, o := range t.Overloads {
		of, _, ok := strings.Cut(o.Name, ".")
		if !ok || !slices.Contains(names, of) || slices.Contains(names, o.Name) || !strings.HasPrefix(o.Schema, o.Name+"(") {
			return fmt.Errorf("overloads: %s: twice, of no operator, or its schema is another's", o.Name)
		}
		names = append(names, o.Name)
	}
	for i, l := range t.Probe {
		if l.Level != i+1 {
			return fmt.Errorf("probe: level %d at place %d; want them in order from 1", l.Level, i+1)
		}
	}
	return nil
}
