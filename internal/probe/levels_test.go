package probe

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
)

// TestImport meets what keeps Python from importing the installed copy. The
// files are as the receipt says, so that only level 2 can see it.
func TestImport(t *testing.T) {
	heavy(t)
	t.Parallel()
	good := makeBundle(t, "good")
	otherContract := makeBundle(t, "contract", patch{"cpu/kernels/about.cpp", "invar-cpu-fp32/1", "invar-cpu-fp32/9"})
	for _, c := range []struct {
		name, check, text string
		bundle            bundle
		damage            func(*testing.T, *fixture)
	}{
		{name: "no stage 1", check: "import", text: "ImportError: batch_invariant_ops: the stage 1 library", bundle: good, damage: func(t *testing.T, i *fixture) {
			remove(t, i.path("ops/cpu/lib/libinvar_cpu.so"))
			i.reseal(t)
		}},
		{name: "stage 1 of another contract", check: "import", text: "contract invar-cpu-fp32/9; expected ABI 1 and contract invar-cpu-fp32/1", bundle: otherContract},
		{name: "no torch", check: "import", text: "ModuleNotFoundError: No module named 'torch'", bundle: good, damage: func(t *testing.T, i *fixture) {
			remove(t, filepath.Join(i.py.Purelib, "torch-here.pth"))
		}},
		{name: "another copy first, by a .pth that changes sys.path", check: "installed copy", text: "elsewhere", bundle: good, damage: func(t *testing.T, i *fixture) {
			dir := filepath.Join(t.TempDir(), "elsewhere")
			write(t, filepath.Join(dir, "batch_invariant_ops", "__init__.py"), "import torch\n__version__ = '0.9'\n")
			write(t, filepath.Join(i.py.Purelib, "a.pth"), "import sys; sys.path.insert(0, "+quote(dir)+")\n")
		}},
		{name: "the process dies", check: "import", text: "killed (signal 6", bundle: good, damage: func(t *testing.T, i *fixture) {
			prepend(t, i, "import os\nos.abort()\n")
		}},
		{name: "the process ends", check: "import", text: "SystemExit: 3", bundle: good, damage: func(t *testing.T, i *fixture) {
			prepend(t, i, "raise SystemExit(3)\n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			i := setUp(t, c.bundle)
			if c.damage != nil {
				c.damage(t, i)
			}
			res, err := i.probe(t, Operators)
			want(t, res, err, Import, report.Fail, c.check, c.text)
		})
	}
}

// TestNoise has an import that warns, a site hook that prints on stdout and no
// numpy: the answer is still understood, and the warning is shown.
func TestNoise(t *testing.T) {
	t.Parallel()
	i := setUp(t, makeBundle(t, "good"))
	prepend(t, i, "import warnings\nwarnings.warn('from the package')\nprint('{\"import\": 1}')\n")
	write(t, filepath.Join(i.py.Purelib, "a.pth"), "import sys; print('hello from a site hook'); sys.modules['numpy'] = None\n")
	res, err := i.probe(t, Numbers)
	if err != nil || res.Proved != Numbers {
		t.Fatalf("proved %d, %v", res.Proved, err)
	}
	if !slices.ContainsFunc(res.Observations, func(o Observation) bool {
		return o.Name == "warning" && strings.Contains(o.Text, "UserWarning: from the package")
	}) {
		t.Errorf("the warning is not shown: %v", res.Observations)
	}
}

// TestOperators has a wheel that lacks an operator, has another schema for a
// second and no fake kernel for a third.
func TestOperators(t *testing.T) {
	heavy(t)
	t.Parallel()
	const ops, fake = "extension/csrc/operators.cpp", "extension/batch_invariant_ops/_fake.py"
	i := setUp(t, makeBundle(t, "operators",
		patch{ops, `m.def("add_rms_norm(`, `m.def("add_rms_norm2(`},
		patch{ops, `m.impl("add_rms_norm"`, `m.impl("add_rms_norm2"`},
		patch{ops, `m.def("mean(Tensor self, int[1]? dim=None, bool keepdim=False`, `m.def("mean(Tensor self, int[1]? dim=None, bool keepdim=True`},
		patch{fake, `    "add_rms_norm": add_rms_norm,` + "\n", ""},
		patch{fake, `    "pack": pack,` + "\n", ""},
	))
	res, err := i.probe(t, Numbers)
	want(t, res, err, Operators, report.Fail, "operator add_rms_norm", "add_rms_norm")
	want(t, res, err, Operators, report.Fail, "operator mean", "bool keepdim=True")
	want(t, res, err, Operators, report.Fail, "operator pack", "none for Meta")
	want2 := map[int]report.Status{Wiring: report.Pass, Kernels: report.Pass, Numbers: report.Skip}
	for _, l := range res.Levels {
		if s, ok := want2[l.Level]; ok && l.Status != s {
			t.Errorf("level %d: %s (%s), want %s", l.Level, l.Status, l.Reason, s)
		}
	}
}

// TestWiring has another stage 1 than the receipt's, and a receipt of another contract.
func TestWiring(t *testing.T) {
	t.Parallel()
	good := makeBundle(t, "good")
	t.Run("INVAR_CPU_LIBRARY", func(t *testing.T) {
		t.Parallel()
		i := setUp(t, good)
		other := filepath.Join(t.TempDir(), "libinvar_cpu.so")
		write(t, other, read(t, i.path("ops/cpu/lib/libinvar_cpu.so")))
		res, err := i.probe(t, Wiring, "INVAR_CPU_LIBRARY="+other)
		want(t, res, err, Wiring, report.Fail, "stage 1 in use", other)
	})
	t.Run("contract of the receipt", func(t *testing.T) {
		t.Parallel()
		i := setUp(t, good)
		r := i.receipt
		r.Contract = "invar-cpu-fp32/9"
		i.save(t, r)
		res, err := i.probe(t, Wiring)
		want(t, res, err, Wiring, report.Fail, "contract", "invar-cpu-fp32/1")
	})
}

// TestVersions has a receipt that names another run package than the one whose
// library is there.
func TestVersions(t *testing.T) {
	t.Parallel()
	i := setUp(t, makeBundle(t, "good"))
	r := i.receipt
	r.RunPackage.Name = "invar-ops-cpu-9.9.9-linux.x86_64.run"
	i.save(t, r)
	res, err := i.probe(t, Wiring)
	want(t, res, err, Wiring, report.Fail, "versions", "stage 1 of version 1.0.0")
}

// TestKernels has a library without one ISA level, and an environment that
// forces one.
func TestKernels(t *testing.T) {
	heavy(t)
	t.Parallel()
	if arch() != "x86_64" {
		t.Skip("needs x86_64: the levels in this test are its")
	}
	t.Run("a level is missing", func(t *testing.T) {
		t.Parallel()
		i := setUp(t, makeBundle(t, "levels", patch{"cpu/kernels/isa.cpp", "    {&invar_level_avx2, has_avx2},\n", ""}))
		res, err := i.probe(t, Kernels)
		want(t, res, err, Kernels, report.Fail, "levels", "baseline, avx512")
		want(t, res, err, Kernels, report.Fail, "manifest of the run package", "baseline, avx2, avx512 in the manifest, baseline, avx512 in the library")
	})
	t.Run("the stored package is damaged or gone", func(t *testing.T) {
		t.Parallel()
		i := setUp(t, makeBundle(t, "good"))
		stored := store.At(i.prefix).Path(i.receipt.RunPackage.SHA256)
		flip(t, stored)
		res, err := i.probe(t, Kernels)
		want(t, res, err, Kernels, report.Fail, "manifest of the run package", stored)
		remove(t, stored)
		res, err = i.probe(t, Kernels)
		if err != nil || res.Proved != Kernels || !slices.ContainsFunc(res.Checks, func(c report.Check) bool {
			return c.Name == "manifest of the run package" && c.Status == report.Skip && strings.Contains(c.Reason, "not in the store any more")
		}) {
			t.Errorf("proved %d, %v, %+v", res.Proved, err, res.Checks)
		}
	})
	t.Run("forced", func(t *testing.T) {
		t.Parallel()
		i := setUp(t, makeBundle(t, "good"))
		res, err := i.probe(t, Kernels, "INVAR_CPU_ISA=baseline")
		if err != nil || res.Proved != Kernels {
			t.Errorf("proved %d, %v", res.Proved, err)
		}
		res, err = i.probe(t, Kernels, "INVAR_CPU_ISA=avx10")
		want(t, res, err, Kernels, report.Fail, "level in use", "none")
	})
}

const dispatch = "cpu/kernels/dispatch.cpp"

// TestNumbers has a kernel that is wrong: sum divides by the number of columns.
func TestNumbers(t *testing.T) {
	heavy(t)
	t.Parallel()
	i := setUp(t, makeBundle(t, "wrong", patch{dispatch, "l->sum(g, op == kMean, ", "l->sum(g, true, "}))
	res, err := i.probe(t, Deepest)
	want(t, res, err, Numbers, report.Fail, "numbers of sum", "sum reduce 1000 float32, ordinary values: row")
	if l := res.Levels[Invariance-1]; l.Status != report.Skip || !strings.Contains(l.Reason, "level 6 (numbers) failed") {
		t.Errorf("level 7: %+v, want a skip that names level 6", l)
	}
	for _, c := range res.Checks {
		if c.Level == Numbers && c.Status != report.Pass && c.Name != "numbers of sum" {
			t.Errorf("%s: %s, but only sum was changed", c.Name, c.Got)
		}
	}
}

// TestInvariance has a product that goes another way from 257 rows on, as
// RMSNorm of vLLM did from 256 tokens on.
func TestInvariance(t *testing.T) {
	heavy(t)
	t.Parallel()
	i := setUp(t, makeBundle(t, "variant",
		patch{dispatch, `#include "isa.h"` + "\n", `#include "isa.h"` + "\nvoid invar_control_product(const invar_cpu_mm_args &g);\n"},
		patch{dispatch, "  l->mm(g, begin, end, aligned(scratch));\n", `  if (g->m == 257 && !g->b_packed) {
    if (begin == 0) invar_control_product(*g);
    return INVAR_CPU_OK;
  }
  l->mm(g, begin, end, aligned(scratch));
`}))
	res, err := i.probe(t, Deepest)
	want(t, res, err, Invariance, report.Fail, "bits of mm", "at m = 257; row")
	for _, c := range res.Checks {
		bad := slices.Contains([]string{"bits of mm", "bits of addmm", "bits of linear", "bits of matmul", "bits of bmm"}, c.Name)
		if c.Level == Invariance && !bad && c.Status != report.Pass {
			t.Errorf("%s: %s %s, but only products of 257 rows were changed", c.Name, c.Status, c.Got)
		}
	}
	if res.Coverage.Differ == 0 {
		t.Error("the coverage counts no difference")
	}
}

// TestControl has a control that does not depend on the batch: agreement then
// proves nothing.
func TestControl(t *testing.T) {
	heavy(t)
	t.Parallel()
	i := setUp(t, makeBundle(t, "control", patch{"cpu/kernels/control.cpp", "1 + g.m % 13", "1 + g.m % 1"}))
	res, err := i.probe(t, Deepest)
	want(t, res, err, Invariance, report.Unclear, "control", "the control was not caught in float32, bfloat16, float16")
	if !strings.Contains(strings.Join(res.Summary, "\n"), "not caught") {
		t.Errorf("the summary does not say so: %q", res.Summary)
	}
}

// prepend puts code at the start of the package and reseals.
func prepend(t *testing.T, i *fixture, code string) {
	t.Helper()
	path := i.path("site/batch_invariant_ops/__init__.py")
	const future = "from __future__ import annotations\n"
	before, after, ok := strings.Cut(read(t, path), future)
	if !ok {
		t.Fatal("no line " + future)
	}
	write(t, path, before+future+code+after)
	i.reseal(t)
}

// quote is s as a Python string.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `\'`) + "'" }

// TestInterrupted ends the context in the middle of an import.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	i := setUp(t, makeBundle(t, "good"))
	mark := filepath.Join(t.TempDir(), "started")
	prepend(t, i, "import time\nopen("+quote(mark)+", 'w').close()\ntime.sleep(120)\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() {
		for !exists(mark) {
			time.Sleep(10 * time.Millisecond)
		}
		cancel(why)
	}()
	began := time.Now()
	res, err := Run(ctx, Options{Prefix: i.prefix, Runner: run.System{}, Env: cleanEnv()})
	if !errors.Is(err, context.Canceled) || time.Since(began) > 30*time.Second {
		t.Errorf("%v after %v, want the end of the context", err, time.Since(began))
	}
	if len(res.Levels) != 1 || res.Levels[0].Status != report.Pass {
		t.Errorf("levels %+v, want level 1 alone", res.Levels)
	}
}
