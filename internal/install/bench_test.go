package install

import (
	"testing"
)

// BenchmarkApply installs a ready bundle of about the size of the CPU target's.
func BenchmarkApply(b *testing.B) {
	p, py := openPrefix(b), fakePython(b)
	bun := makeBundle(b, b.TempDir(), "a", 400_000)
	req := request(py)
	for b.Loop() {
		if _, err := p.Apply(b.Context(), req, bun.run, bun.wheel); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStatus looks at three Pythons with two generations each, level 1
// of every current one included.
func BenchmarkStatus(b *testing.B) {
	p := openPrefix(b)
	bun := makeBundle(b, b.TempDir(), "a", 400_000)
	for range 3 {
		py := fakePython(b)
		apply(b, p, request(py), bun)
		apply(b, p, request(py), bun)
	}
	for b.Loop() {
		if st, err := p.Status(b.Context(), nil); err != nil || len(st.Envs) != 3 {
			b.Fatal(st, err)
		}
	}
}
