package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// released is the size of a released run package.
const released = 105 << 20

// An ascend is a place with the look-alike of CANN, a run package of the real
// size and the sources of the wheel.
type ascend struct {
	place
	tree     *cann.Tree
	pkg, zip string
}

func newAscend(b *testing.B, zip func(testing.TB, string, string, cann.Caller) string) ascend {
	b.Helper()
	bin, err := program()
	must(b, err)
	py, err := testkit.Private(testkit.Need(b, cann.Environment), b.TempDir())
	must(b, err)
	dir := b.TempDir()
	return ascend{
		place: place{bin: bin, home: filepath.Join(b.TempDir(), "home"), python: py.Exe}, tree: cann.New(b, cann.Options{}),
		pkg: cann.RunPackage(b, cann.Package{Dir: dir, Bulk: released}), zip: zip(b, dir, "1.0.0", cann.ExecExt),
	}
}

// command runs argv as a user who has sourced nothing, with a cache of its own.
func (a ascend) command(b *testing.B, argv ...string) (printed []byte, took, cpu time.Duration) {
	b.Helper()
	home := filepath.Dir(a.home)
	return commandIn(b, append(a.tree.Bare(), "HOME="+home, "INVAR_HOME="+a.home, "INVAR_CACHE="+filepath.Join(home, "cache"), "NO_COLOR=1"), argv...)
}

func (a ascend) argv(b *testing.B, more ...string) []string {
	b.Helper()
	argv := []string{a.bin, "build", "ascend910b", "--python", a.python, "--cann", a.tree.Home, "--run-package", a.pkg, "--extension", a.zip, "--jobs", jobs, "--allow-version-skew", "--json"}
	for _, f := range []string{a.pkg, a.zip} {
		sum, _, err := store.Digest(b.Context(), f)
		must(b, err)
		argv = append(argv, "--accept-digest", "sha256:"+sum)
	}
	return append(argv, more...)
}

// BenchmarkAscendNothingToDo is the second invar build of a package of the real
// size: no vendor tool, no Python.
func BenchmarkAscendNothingToDo(b *testing.B) {
	a := newAscend(b, cann.PrebuiltZip)
	argv := a.argv(b)
	a.command(b, argv...)
	var times, work []time.Duration
	for b.Loop() {
		out, took, cpu := a.command(b, argv...)
		var r struct {
			UpToDate bool `json:"up_to_date"`
		}
		if result(b, out, &r); !r.UpToDate {
			b.Fatalf("a second build did something: %s", out)
		}
		times, work = append(times, took), append(work, cpu)
	}
	b.ReportMetric(ms(median(times)), "ms")
	b.ReportMetric(ms(median(work)), "cpu-ms") // what of it is work: other load does not count here
}

// BenchmarkAscend is the chain from a cached package, without its probe,
// against the same steps by hand: source set_env.sh, run the package, unzip,
// build the wheel, let pip unpack it. By hand nothing is checked, recorded or
// synced. Rounds take turns; the values are medians. wheel=prebuilt leaves the
// compiler out, so that all of the rest shows.
func BenchmarkAscend(b *testing.B) {
	for name, zip := range map[string]func(testing.TB, string, string, cann.Caller) string{"compiled": cann.Stage2Zip, "prebuilt": cann.PrebuiltZip} {
		b.Run("wheel="+name, func(b *testing.B) {
			a := newAscend(b, zip)
			a.build(b) // what is read from now on is in memory, and the package in the cache
			var ours, theirs []time.Duration
			var ratios []float64
			for b.Loop() {
				hand := b.TempDir()
				must(b, os.WriteFile(filepath.Join(hand, "by-hand.sh"), []byte(a.byHand()), 0o644))
				_, byHand, _ := a.command(b, "bash", filepath.Join(hand, "by-hand.sh"), hand)
				must(b, os.RemoveAll(hand))
				built := a.build(b)
				ours, theirs = append(ours, built), append(theirs, byHand)
				ratios = append(ratios, built.Seconds()/byHand.Seconds())
			}
			b.ReportMetric(ms(median(ours)), "ours-ms")
			b.ReportMetric(ms(median(theirs)), "by-hand-ms")
			b.ReportMetric(median(ratios), "ratio")
		})
	}
}

// build builds from nothing but the cache and removes all again. It gives the
// time without the probe.
func (a ascend) build(b *testing.B) time.Duration {
	b.Helper()
	out, took, _ := a.command(b, a.argv(b)...)
	var r struct {
		Probe struct {
			Proved  int           `json:"proved"`
			Elapsed time.Duration `json:"elapsed_ns"`
		} `json:"probe"`
	}
	if result(b, out, &r); r.Probe.Proved < 1 || r.Probe.Elapsed <= 0 {
		b.Fatalf("a build: proved %d in %v", r.Probe.Proved, r.Probe.Elapsed)
	}
	a.command(b, a.bin, "uninstall", "--python", a.python)
	if _, err := os.Stat(a.home); err == nil {
		must(b, os.RemoveAll(a.home))
	}
	return took - r.Probe.Elapsed
}

// byHand is the shell script with the same steps.
func (a ascend) byHand() string {
	return strings.NewReplacer("@CANN", a.tree.Home, "@PKG", a.pkg, "@ZIP", a.zip, "@PY", a.python, "@JOBS", jobs).Replace(`set -e
cd "$1"
. @CANN/set_env.sh
bash @PKG --quiet -- --quiet --install-path="$1/ops"
@PY -m zipfile -e @ZIP src
cd src/torch_ops_extension/batch_invariant_ops
export MAX_JOBS=@JOBS USE_NINJA=1
@PY setup.py -q bdist_wheel -d "$1/dist"
@PY -m pip install --quiet --no-index --no-deps --target "$1/site" "$1"/dist/*.whl
`)
}
