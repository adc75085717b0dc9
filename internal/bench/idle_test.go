package bench

import (
	"testing"
	"time"
)

// BenchmarkNothingToDo is the second invar build: level 1 of the probe, no
// compiler, no Python.
func BenchmarkNothingToDo(b *testing.B) {
	p := newPlace(b)
	p.invar(b, "build", "cpu", "--python", p.python)
	var times []time.Duration
	for b.Loop() {
		out, took := p.invar(b, "build", "cpu", "--python", p.python, "--json")
		var r struct {
			UpToDate bool `json:"up_to_date"`
		}
		if result(b, out, &r); !r.UpToDate {
			b.Fatalf("a second build did something: %s", out)
		}
		times = append(times, took)
	}
	b.ReportMetric(ms(median(times)), "ms")
}

// BenchmarkDetect is invar detect on this host.
func BenchmarkDetect(b *testing.B) {
	p := newPlace(b)
	quick(b, p, "detect")
}

// BenchmarkStatus is invar status with one generation installed.
func BenchmarkStatus(b *testing.B) {
	p := newPlace(b)
	p.invar(b, "build", "cpu", "--python", p.python)
	quick(b, p, "status")
}

func quick(b *testing.B, p place, args ...string) {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		_, took := p.invar(b, args...)
		times = append(times, took)
	}
	b.ReportMetric(ms(median(times)), "ms")
}
