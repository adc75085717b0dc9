package cudakernels

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mutation is one mistake put into the sources.
type mutation struct {
	file, object string // object: which source shows it
	old, with    string
	cases        func() *suite
	modes        []mode // one of which must find it
}

var anyMode = []mode{{"0", "late", "chain"}, {"1", "late", "wide"}}

var mutations = map[string]mutation{
	"a barrier is missing in a row": {
		"lanes.cuh", "norm", "    if (thread() % 32 == 0) slots[thread() / 32] = v;\n    barrier();", "    if (thread() % 32 == 0) slots[thread() / 32] = v;",
		func() *suite { return rowCases(3, true) },
		[]mode{{"0", "early", "chain"}, {"1", "early", "chain"}},
	},
	"a barrier is missing in the pipeline": {
		"mm_mma.cuh", "mm_bf16", "barrier();  // the stage is there for all", "// the stage is there for all",
		func() *suite { return alignedCases(17, 65, 1030) }, anyMode,
	},
	"one copy too few is awaited": {
		"mm_mma.cuh", "mm_bf16", "await_copies<Tile::STAGES - 2>()", "await_copies<Tile::STAGES - 1>()",
		func() *suite { return alignedCases(17, 65, 1030) }, anyMode,
	},
	"a chunk goes on with the sum of the one before": {
		"mm_mma.cuh", "mm_f16", "      each([&](int i, int j, int e) { acc[i][j][e] = 0.0f; });\n      for (", "      if (first) each([&](int i, int j, int e) { acc[i][j][e] = 0.0f; });\n      for (",
		func() *suite { return alignedCases(17, 65, 1030) }, anyMode,
	},
	"two columns change places": {
		"mm_mma.cuh", "mm_bf16", "j * 8 + e % 2] = sum[i][j][e];", "j * 8 + 1 - e % 2] = sum[i][j][e];",
		func() *suite { return alignedCases(5, 72, 70) }, anyMode,
	},
	"another piece of k is read": {
		"mm_mma.cuh", "mm_bf16", "(piece ^ (kk * 32))", "(piece ^ (kk % 2 * 32))",
		func() *suite { return alignedCases(5, 72, 70) }, anyMode,
	},
	"the last part of k is left out": {
		"mm_f32.cu", "mm_f32", "static_cast<int>(k1 - k)", "static_cast<int>(k1 - k) - 1",
		func() *suite { return alignedCases(5, 72, 70) }, anyMode,
	},
	"chunks are added from the last on": {
		"mm_end.cu", "mm_end", "partial_of(p, batch, chunk, i, j)", "partial_of(p, batch, p.chunks - 1 - chunk, i, j)",
		func() *suite { return alignedCases(5, 72, 1600) }, anyMode,
	},
	"lanes are folded from far to near": {
		"lanes.cuh", "rows", "for (int mask = 1; mask < 32; mask *= 2) v = add", "for (int mask = 16; mask > 0; mask /= 2) v = add",
		func() *suite { return rowCases(3, true) }, anyMode,
	},
	"a run past the end is read as it lies": {
		"convert.cuh", "rows", "i + j < n ? T::widen(from[j * step]) : fill", "i + j < n + 1 ? T::widen(from[j * step]) : fill",
		func() *suite { return rowCases(3, true) }, anyMode,
	},
}

// TestMistakesAreFound: the comparison with the reference finds each of these
// mistakes, so it could have failed.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: compiles the kernels once more for every mistake")
	}
	host.emulator(t)
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(kernelsDir)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, m.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), m.old) < 1 {
				t.Fatalf("%s does not hold %q any more", m.file, m.old)
			}
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), m.old, m.with)), 0o600); err != nil {
				t.Fatal(err)
			}
			object := emulated(t, dir, dir, filepath.Join(dir, m.object+".cu"), "mutant_"+filepath.Base(dir))
			driver := host.link(t, "mutant_"+filepath.Base(filepath.Dir(dir))+m.object, map[string]string{m.object: object})
			for _, in := range m.modes {
				if m.found(t, driver, in) {
					return
				}
			}
			t.Errorf("not found by %d cases", len(m.cases().cases))
		})
	}
}

// found: some case is wrong, or the emulator itself objects.
func (m mutation) found(t *testing.T, driver string, in mode) bool {
	t.Helper()
	s, dir := m.cases(), t.TempDir()
	cases := filepath.Join(dir, "cases")
	if err := os.WriteFile(cases, s.file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t, driver, in.order, in.copies, in.model, cases, filepath.Join(dir, "results")); err != nil {
		return true
	}
	return s.wrong(t, driver, in, false) > 0
}
