package kernels

import (
	"slices"
	"strings"
	"testing"
)

// TestABI runs the C program that checks names, levels, sizes and refusals.
func TestABI(t *testing.T) {
	t.Parallel()
	for _, m := range []machine{host, arm} {
		t.Run(m.arch, func(t *testing.T) {
			t.Parallel()
			b := &hostBuilt
			if m.emulator != nil {
				b = &armBuilt
			}
			b.get(t, m)
			mustRun(t, b.abi...)
			if got := strings.TrimSpace(mustRun(t, append(slices.Clone(b.abi), "version")...)); got != version {
				t.Errorf("library version %q, want %q", got, version)
			}
		})
	}
}

// TestForcedLevel: INVAR_CPU_ISA decides, and a name that cannot be honoured
// makes every operator fail instead of running on another level.
func TestForcedLevel(t *testing.T) {
	t.Parallel()
	b := hostBuilt.get(t, host)
	best := b.levels[len(b.levels)-1]
	tests := map[string]string{
		"":          best + " 0",
		"avx1024":   "refused 6",
		"AVX2":      "refused 6",
		"avx2 ":     "refused 6",
		"neon,avx2": "refused 6",
	}
	for _, level := range b.levels {
		tests[level] = level + " 0"
	}
	for value, want := range tests {
		res, err := start(t, "", []string{"INVAR_CPU_ISA=" + value}, append(slices.Clone(b.abi), "current")...)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(res.Stdout)); got != want {
			t.Errorf("INVAR_CPU_ISA=%q: level and status %q, want %q", value, got, want)
		}
	}
}
