package probe

import "testing"

// BenchmarkFiles is level 1 alone: what `invar build` pays when there is nothing to do.
func BenchmarkFiles(b *testing.B) {
	i := setUp(b, makeBundle(b, "good"))
	for b.Loop() {
		if _, err := i.probe(b, Files); err != nil {
			b.Fatal(err)
		}
	}
}
