package plan

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/toolchain"
)

func cpu(t *testing.T) target.Target {
	t.Helper()
	x, err := target.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func facts() Facts {
	site := "/v/lib/python3.12/site-packages"
	return Facts{
		Arch: "x86_64",
		Python: python.Python{
			Exe: "/v/bin/python", Version: "3.12.4", Purelib: site, Paths: []string{site},
			Torch: python.Dist{Name: "torch", Version: "2.15.0", Dir: site},
		},
		Compiler: toolchain.Compiler{Path: "/usr/bin/c++", Vendor: "gcc", Version: "12.2.0", Banner: "c++ 12.2.0", Identity: "1"},
		Sources: map[string]string{
			"cpu/kernels/mm.h": "sha256:aa", "cpu/kernels/level_avx2.cpp": "sha256:ab", "cpu/kernels/about.cpp": "sha256:ac",
			"cpu/kernels/invar_cpu.h": "sha256:ad", "extension/csrc/gemm.cpp": "sha256:bb",
			"extension/batch_invariant_ops/__init__.py": "sha256:cc", "extension/pyproject.toml": "sha256:dd",
		},
		Includes: map[string][]string{
			"cpu/kernels/level_avx2.cpp": {"mm.h"}, "cpu/kernels/mm.h": {"invar_cpu.h", "stdint.h"},
			"cpu/kernels/about.cpp": {"invar_cpu.h"}, "cpu/kernels/invar_cpu.h": nil, "cpu/kernels/isa.cpp": nil,
			"extension/csrc/rows.cpp": nil, "extension/csrc/gemm.cpp": {"torch/csrc/stable/tensor.h", "invar_cpu.h"},
		},
	}
}

var options = Options{Prefix: "/opt/invar", Version: "1.0.0"}

func TestMakeOrdersTheStages(t *testing.T) {
	t.Parallel()
	p, err := Make(cpu(t), facts(), options)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, s := range p.Steps {
		at[s.ID] = i
		for _, n := range s.Needs {
			if j, ok := at[n]; !ok || j >= i {
				t.Errorf("%s needs %s, which comes later or never", s.ID, n)
			}
		}
	}
	// Stage 2 is installed into a generation that has stage 1, and the switch is last.
	for _, pair := range [][2]string{{"stage1/pack", "install/ops"}, {"install/ops", "install/site"}, {"install/site", "install/commit"}, {"install/commit", "probe"}} {
		if at[pair[0]] >= at[pair[1]] {
			t.Errorf("%s does not come before %s", pair[0], pair[1])
		}
	}
}

func TestFingerprintFollowsInputs(t *testing.T) {
	t.Parallel()
	base, err := Make(cpu(t), facts(), options)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := Make(cpu(t), facts(), options)
	if base.Fingerprint != again.Fingerprint {
		t.Fatal("the same inputs gave another fingerprint")
	}
	for _, tc := range []struct {
		name    string
		change  func(*Facts, *Options)
		changes []string // steps that must run again
		keeps   []string // steps that must not
		why     string
	}{
		{
			"kernel source", func(f *Facts, _ *Options) { f.Sources["cpu/kernels/mm.h"] = "sha256:ee" },
			[]string{"stage1/compile/level_avx2", "stage1/link", "stage1/pack"},
			[]string{"stage1/compile/about", "stage1/compile/isa", "stage2/compile/gemm"},
			"src/cpu/kernels/mm.h changed",
		},
		{
			"header of both stages", func(f *Facts, _ *Options) { f.Sources["cpu/kernels/invar_cpu.h"] = "sha256:ee" },
			[]string{"stage1/compile/about", "stage1/compile/level_avx2", "stage1/pack", "stage2/compile/gemm", "stage2/wheel"},
			[]string{"stage1/compile/isa", "stage2/compile/rows"},
			"src/cpu/kernels/invar_cpu.h changed",
		},
		{
			"extension source", func(f *Facts, _ *Options) { f.Sources["extension/csrc/gemm.cpp"] = "sha256:ee" },
			[]string{"stage2/compile/gemm", "stage2/wheel"},
			[]string{"stage1/link", "stage1/pack"},
			"",
		},
		{
			"python source", func(f *Facts, _ *Options) { f.Sources["extension/batch_invariant_ops/__init__.py"] = "sha256:ee" },
			[]string{"stage2/wheel"},
			[]string{"stage1/pack"},
			"",
		},
		{
			"compiler", func(f *Facts, _ *Options) { f.Compiler.Identity = "2" },
			[]string{"stage1/compile/level_avx2", "stage2/compile/gemm"},
			nil, "compiler changed",
		},
		{
			"torch", func(f *Facts, _ *Options) { f.Python.Torch.Version = "2.14.0" },
			[]string{"stage2/compile/gemm"},
			[]string{"stage1/pack"},
			"",
		},
		{
			"another Python", func(f *Facts, _ *Options) { f.Python.Purelib = "/w" },
			[]string{"install/commit"},
			[]string{"stage1/pack"},
			"",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f, o := facts(), options
			f.Sources = maps.Clone(f.Sources)
			tc.change(&f, &o)
			p, err := Make(cpu(t), f, o)
			if err != nil {
				t.Fatal(err)
			}
			if p.Fingerprint == base.Fingerprint {
				t.Error("the whole kept its fingerprint")
			}
			for _, id := range tc.changes {
				a, _ := base.Step(id)
				b, ok := p.Step(id)
				if !ok || a.Fingerprint == b.Fingerprint {
					t.Errorf("%s kept its fingerprint", id)
				}
			}
			for _, id := range tc.keeps {
				a, _ := base.Step(id)
				if b, _ := p.Step(id); a.Fingerprint != b.Fingerprint {
					t.Errorf("%s changed", id)
				}
			}
			if tc.why != "" {
				s, _ := p.Step(tc.changes[0])
				if got := Why(s, &base); !strings.Contains(got, tc.why) {
					t.Errorf("why: got %q, want %q", got, tc.why)
				}
			}
		})
	}
}

func TestEveryUnmetRequirementIsNamed(t *testing.T) {
	t.Parallel()
	f := facts()
	f.Arch, f.Compiler = "riscv64", toolchain.Compiler{}
	f.CompilerReasons = []toolchain.Reason{{Command: "g++", Reason: "not found"}}
	f.Python.Version, f.Python.Torch.Version = "3.9.2", "2.9.1"
	_, err := Make(cpu(t), f, options)
	u, ok := errors.AsType[*report.UnmetError](err)
	if !ok {
		t.Fatalf("got %v, want unmet requirements", err)
	}
	var names []string
	for _, r := range u.Unmet() {
		if r.Want == "" || r.Got == "" || r.Hint == "" {
			t.Errorf("%s lacks want, got or hint: %+v", r.Name, r)
		}
		names = append(names, r.Name)
	}
	if got, want := strings.Join(names, ", "), "architecture, Python, torch, C++ compiler"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCompilerRangesPerVendor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		vendor, version string
		ok              bool
	}{{"gcc", "12.2.0", true}, {"gcc", "10.2.1", false}, {"clang", "14.0.6", true}, {"clang", "13.0.1", false}, {"gcc", "unknown", false}} {
		f := facts()
		f.Compiler.Vendor, f.Compiler.Version = tc.vendor, tc.version
		if _, err := Make(cpu(t), f, options); (err == nil) != tc.ok {
			t.Errorf("%s %s: got %v, want ok=%v", tc.vendor, tc.version, err, tc.ok)
		}
	}
}

func TestRecipeWhenThereIsNoTorch(t *testing.T) {
	t.Parallel()
	f := facts()
	f.Python, f.Base, f.HasUV = python.Python{}, python.Python{Exe: "/usr/bin/python3", Version: "3.11.7", Purelib: "/usr/lib/python3/dist-packages"}, true
	p, err := Make(cpu(t), f, options)
	if err != nil {
		t.Fatal(err)
	}
	id := f.Base.ID()[:6]
	if p.Recipe == nil || p.Recipe.Dir != "/opt/invar/python/3.11-torch-2.15.0-"+id || p.Recipe.Installer != "uv" || p.Recipe.Explicit {
		t.Fatalf("got %+v", p.Recipe)
	}
	if p.Steps[0].Kind != Env {
		t.Errorf("first step is %s", p.Steps[0].ID)
	}
	p, err = Make(cpu(t), f, Options{Prefix: "/p", Torch: "torch==2.10.0", TorchIndex: "https://i"})
	if err != nil || p.Recipe.Dir != "/p/python/3.11-torch-2.10.0-"+id || !p.Recipe.Explicit || p.Recipe.Index != "https://i" {
		t.Fatalf("got %+v, %v", p.Recipe, err)
	}
	// Another interpreter of the same version has an environment of its own.
	f.Base.Exe, f.Base.Purelib = "/opt/python/bin/python3", "/opt/python/lib/python3.11/site-packages"
	other, err := Make(cpu(t), f, Options{Prefix: "/p", Torch: "torch==2.10.0"})
	if err != nil || other.Recipe.Dir == p.Recipe.Dir {
		t.Errorf("both interpreters get %s, %v", other.Recipe.Dir, err)
	}
}

// TestWheelhouse: a folder that is not there is refused with everything else,
// not found by the installer halfway.
func TestWheelhouse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		w       python.Wheelhouse
		offline bool
		ok      bool
	}{
		{"missing", python.Wheelhouse{Dir: "/w", Reason: "open /w: no such file or directory"}, false, false},
		{"empty", python.Wheelhouse{Dir: "/w"}, false, true}, // the index has the rest
		{"without torch, offline", python.Wheelhouse{Dir: "/w", Wheels: 3}, true, false},
		{"with torch, offline", python.Wheelhouse{Dir: "/w", Wheels: 3, Torch: true}, true, true},
	} {
		f := facts()
		f.Base, f.Python, f.Wheelhouse = f.Python, python.Python{}, tc.w
		_, err := Make(cpu(t), f, Options{Prefix: "/p", Wheelhouse: "/w", Offline: tc.offline})
		if (err == nil) != tc.ok {
			t.Errorf("%s: got %v, want ok=%v", tc.name, err, tc.ok)
		}
		if err != nil && report.ExitCode(err) != report.Unmet {
			t.Errorf("%s: exit code %d, want 3", tc.name, report.ExitCode(err))
		}
	}
}

func TestUnfinishedTargetsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	all, err := target.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if x.Builds() {
			continue
		}
		p, err := Make(x, facts(), options)
		u, ok := errors.AsType[*report.UnmetError](err)
		if !ok || len(u.Unmet()) < len(x.Missing) || len(p.Steps) > 0 {
			t.Errorf("%s: got %v; want every missing part and no steps", x.Name, err)
		}
	}
}

func TestShellScriptHoldsEveryCommand(t *testing.T) {
	t.Parallel()
	p, err := Make(cpu(t), facts(), options)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteShell(&b, p); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		if s.Kind == Run && !strings.Contains(b.String(), s.Outputs[0]) {
			t.Errorf("%s is not in the script", s.ID)
		}
	}
}
