package target

import (
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/targets"
)

func TestEveryTargetLoads(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range all {
		names = append(names, x.Name)
	}
	if got, want := strings.Join(names, " "), "ascend910_93 ascend910b ascend950 cpu cuda"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// An embed directive without all: drops files that start with "_" or ".", and a folder
// that nobody names is not there at all.
func TestSourcesAreEmbedded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"cpu/kernels/invar_cpu.h", "cpu/kernels/level_avx512.cpp", "extension/pyproject.toml",
		"extension/batch_invariant_ops/__init__.py", "extension/batch_invariant_ops/py.typed",
		"extension/csrc/routing.cpp",
	} {
		if _, err := targets.FS.Open(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	cpu, err := Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range cpu.Stage1.Objects {
		if _, err := targets.FS.Open(cpu.Stage1.From + "/" + o.Source); err != nil {
			t.Errorf("stage1: %v", err)
		}
	}
	for _, s := range cpu.Stage2.Sources {
		if _, err := targets.FS.Open(cpu.Stage2.From + "/" + s); err != nil {
			t.Errorf("stage2: %v", err)
		}
	}
}

func TestFindRefusesWithReason(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		code int
		want string
	}{
		{"ascend910a", report.Unmet, "first-generation"},
		{"910B", report.Unmet, "first-generation"},
		{"ascend310p", report.Unmet, "310P"},
		{"310p3", report.Unmet, "310P"},
		{"sm_70", report.Unmet, "below 8.0"},
		{"ascend910", report.Usage, "unknown target"},
		{"gpu", report.Usage, "unknown target"},
	} {
		_, err := Find(tc.name)
		if report.ExitCode(err) != tc.code || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got code %d, %v; want %d with %q", tc.name, report.ExitCode(err), err, tc.code, tc.want)
		}
	}
}

func TestRefusedDoNotOverlapTargets(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		for _, c := range x.Chips {
			for _, sku := range c.SKUs {
				if r, ok := RefusedName(sku); ok {
					t.Errorf("%s of %s is refused as %s", sku, x.Name, r.Product)
				}
			}
		}
	}
}

func TestDecodeChecks(t *testing.T) {
	t.Parallel()
	good := "name: x\ntitle: X\nflavour: cpu\nsources: [{fact: a, from: b}]\n"
	for _, tc := range []struct{ name, in, want string }{
		{"good", good, ""},
		{"no source", "name: x\ntitle: X\nflavour: cpu\n", "facts come from"},
		{"bad pattern", good + "chips: [{pattern: '('}]\n", "pattern"},
		{"operator twice", good + "operators: [{name: mm, schema: mm(}, {name: mm, schema: mm(}]\n", "twice"},
		{"foreign schema", good + "operators: [{name: mm, schema: bmm(}]\n", "another"},
		{"overload", good + "operators: [{name: mm, schema: mm(}]\noverloads: [{name: mm.last, schema: mm.last(}]\n", ""},
		{"overload of nothing", good + "operators: [{name: mm, schema: mm(}]\noverloads: [{name: bmm.last, schema: bmm.last(}]\n", "of no operator"},
		{"overload without a name", good + "operators: [{name: mm, schema: mm(}]\noverloads: [{name: mm, schema: mm(}]\n", "of no operator"},
		{"levels out of order", good + "probe: [{level: 2, name: a}]\n", "in order from 1"},
		{"unknown key", good + "stage3: {}\n", "x.yaml:5:1:"},
	} {
		_, err := Decode("x.yaml", []byte(tc.in))
		if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}
