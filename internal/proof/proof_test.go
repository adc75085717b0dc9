package proof

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

// A bench compiles sources of testdata with the real toolkit.
type bench struct {
	t    *testing.T
	home string
	dir  string
}

func newBench(t *testing.T) bench {
	t.Helper()
	return bench{t, testkit.NeedToolkit(t), t.TempDir()}
}

func (b bench) run(argv ...string) {
	b.t.Helper()
	if _, err := (run.System{}).Run(b.t.Context(), run.Cmd{Argv: argv, Dir: b.dir, Env: os.Environ()}); err != nil {
		b.t.Fatal(err)
	}
}

// fatbin compiles source for each of arches, as machine code or, for compute_, text.
func (b bench) fatbin(source string, arches ...string) Fatbin {
	b.t.Helper()
	abs, err := filepath.Abs("testdata/" + source + ".cu")
	if err != nil {
		b.t.Fatal(err)
	}
	f := Fatbin{Source: source, File: source + ".fatbin"}
	argv := []string{b.home + "/bin/fatbinary", "-64", "--compress=false", "--create=" + f.File}
	for _, a := range arches {
		file, kind, what := source+"."+a, "elf", "--cubin"
		if strings.HasPrefix(a, "compute_") {
			kind, what = "ptx", "--ptx"
		}
		b.run(b.home+"/bin/nvcc", what, "-arch="+a, abs, "-o", file)
		_, number, _ := strings.Cut(a, "_")
		argv = append(argv, "--image3=kind="+kind+",sm="+number+",file="+file)
		f.Images = append(f.Images, Image{a, file})
	}
	b.run(argv...)
	return f
}

func (b bench) prove(f Fatbin) (Proof, error) {
	return Make(b.t.Context(), b.dir, Spec{Cuobjdump: b.home + "/bin/cuobjdump", Nvdisasm: b.home + "/bin/nvdisasm", Fatbins: []Fatbin{f}},
		Tools{Runner: run.System{}, Env: os.Environ()})
}

func TestPlainKernelsPass(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p, err := b.prove(b.fatbin("plain", "sm_80", "sm_90", "compute_90", "sm_120f"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Images) != 4 || p.Count() != 8 {
		t.Fatalf("%d kernels in %d images, want 8 in 4", p.Count(), len(p.Images))
	}
	for _, i := range p.Images {
		for _, k := range i.Kernels {
			if strings.HasPrefix(i.Arch, "sm_") && (k.Registers < 8 || k.Instructions < 10) {
				t.Errorf("%s on %s: %+v", k.Name, i.Arch, k)
			}
		}
		if k := i.Kernels[0]; strings.HasPrefix(i.Arch, "sm_") && (k.Name != "invar_test_bf" || k.Shared < 1024) {
			t.Errorf("%s: %+v, want 1 kB of shared memory or more", i.Arch, k)
		}
	}
}

// TestAtomicsAreCaught is the control: a proof that lets these through proves nothing.
func TestAtomicsAreCaught(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, arch := range []string{"sm_90", "compute_90"} {
		_, err := b.prove(b.fatbin("atomics", arch))
		if report.ExitCode(err) != report.BuildFailed {
			t.Fatalf("%s: got %v, want a refusal with exit code 4", arch, err)
		}
		for _, kernel := range []string{"bad_f32", "bad_ret", "bad_f64", "bad_h2", "bad_bf", "bad_cas"} {
			if text := err.Error() + got(err); !strings.Contains(text, kernel+" has ") {
				t.Errorf("%s: %s is not named in %s", arch, kernel, text)
			}
		}
		if text := got(err); strings.Contains(text, "ok_") {
			t.Errorf("%s: an integer atomic is refused: %s", arch, text)
		}
	}
}

func got(err error) string {
	p, ok := err.(*report.Problem) //nolint:errorlint // as it is returned
	if !ok {
		return ""
	}
	return p.Got
}

// TestContentIsExact: one architecture too few, one too many, and another file.
func TestContentIsExact(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good := b.fatbin("plain", "sm_80", "sm_90")
	fewer, more, other := good, good, good
	fewer.Images = good.Images[:1]
	more.Images = append(slices.Clone(good.Images), Image{"sm_120", good.Images[0].File})
	other.Images = []Image{{"sm_80", good.Images[1].File}, good.Images[1]}
	for name, f := range map[string]Fatbin{"fewer": fewer, "more": more, "other": other} {
		if _, err := b.prove(f); report.ExitCode(err) != report.BuildFailed {
			t.Errorf("%s: got %v, want a refusal with exit code 4", name, err)
		}
	}
}
