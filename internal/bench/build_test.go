package bench

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/testkit"
)

// jobs is how many compiles run at a time, on both sides.
const jobs = "2"

// BenchmarkBuild is invar build from nothing, without its probe, against a
// plain shell script that runs the same compiler commands, as many at a time,
// and copies what comes out into place. The script makes no packages and
// records nothing. Rounds take turns; the values are medians.
func BenchmarkBuild(b *testing.B) { benchmarkBuild(b, "cpu") }

// BenchmarkBuildCUDA is the same for one GPU architecture: nvcc, fatbinary and
// the compiler by hand. Ours also disassembles what was compiled.
func BenchmarkBuildCUDA(b *testing.B) {
	benchmarkBuild(b, "cuda", "--arch", "9.0", "--cuda-home", testkit.NeedToolkit(b))
}

func benchmarkBuild(b *testing.B, target ...string) {
	p := newPlace(b)
	var planned plan.Plan
	out, _ := p.invar(b, slices.Concat([]string{"plan"}, target, []string{"--python", p.python, "--json"})...)
	result(b, out, &planned)
	sources := filepath.Join(b.TempDir(), "src")
	p.invar(b, "targets", "--sources", sources)
	var ours, theirs, cached []time.Duration
	var ratios []float64
	for b.Loop() {
		hand := b.TempDir()
		must(b, os.WriteFile(filepath.Join(hand, "build.sh"), []byte(script(planned, sources)), 0o644))
		_, byHand := p.command(b, "sh", filepath.Join(hand, "build.sh"), hand)
		must(b, os.RemoveAll(hand))
		built, again := p.build(b, target)
		ours, theirs, cached = append(ours, built), append(theirs, byHand), append(cached, again)
		ratios = append(ratios, built.Seconds()/byHand.Seconds())
	}
	b.ReportMetric(ms(median(ours)), "ours-ms")
	b.ReportMetric(ms(median(theirs)), "by-hand-ms")
	b.ReportMetric(ms(median(cached)), "cached-ms")
	b.ReportMetric(median(ratios), "ratio")
	// What is above 1.02 times the script's time: the limit is on this.
	over := make([]float64, len(ours))
	for i := range ours {
		over[i] = ms(ours[i]) - 1.02*ms(theirs[i])
	}
	b.ReportMetric(median(over), "above-1.02x-ms")
}

// build builds into a home that is not there yet, then once more out of its
// store, and returns both times without the probes; it leaves nothing behind.
func (p place) build(b *testing.B, target []string) (built, again time.Duration) {
	b.Helper()
	argv := slices.Concat([]string{"build"}, target, []string{"--python", p.python, "--jobs", jobs, "--json"})
	built = p.timed(b, argv)
	again = p.timed(b, append(argv, "--force"))
	p.invar(b, "uninstall", "--python", p.python)
	if _, err := os.Stat(p.home); err == nil {
		must(b, os.RemoveAll(p.home))
	}
	return built, again
}

func (p place) timed(b *testing.B, argv []string) time.Duration {
	b.Helper()
	out, took := p.invar(b, argv...)
	var r struct {
		UpToDate bool `json:"up_to_date"`
		Probe    struct {
			Proved  int           `json:"proved"`
			Elapsed time.Duration `json:"elapsed_ns"`
		} `json:"probe"`
	}
	result(b, out, &r)
	if r.UpToDate || r.Probe.Proved < 1 || r.Probe.Elapsed <= 0 {
		b.Fatalf("a build: up to date %v, proved %d in %v", r.UpToDate, r.Probe.Proved, r.Probe.Elapsed)
	}
	return took - r.Probe.Elapsed
}
