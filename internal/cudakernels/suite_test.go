package cudakernels

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A suite is cases with what they must give.
type suite struct {
	cases []testCase
	file  []byte // as the driver reads them
}

func (s *suite) add(cases ...testCase) {
	for _, c := range cases {
		s.cases = append(s.cases, c)
		s.file = c.encode(s.file)
	}
}

// A mode is how the emulator runs: the order of threads, when asynchronous
// copies happen, and how an mma instruction adds up.
type mode struct{ order, copies, model string }

func (m mode) String() string { return m.order + " " + m.copies + " " + m.model }

func (m mode) adds() model {
	if m.model == "wide" {
		return wide
	}
	return chain
}

// results runs the cases and gives what each wrote.
func (s *suite) results(t *testing.T, driver string, m mode) [][]byte {
	t.Helper()
	got, _ := s.resultsOf(t, []string{driver}, m)
	return got
}

// resultsOf is results for a driver that is started by another program, with
// what was printed.
func (s *suite) resultsOf(t *testing.T, driver []string, m mode) (each [][]byte, printed string) {
	t.Helper()
	dir := t.TempDir()
	cases, results := filepath.Join(dir, "cases"), filepath.Join(dir, "results")
	if err := os.WriteFile(cases, s.file, 0o600); err != nil {
		t.Fatal(err)
	}
	printed = mustRun(t, slices.Concat(driver, []string{m.order, m.copies, m.model, cases, results})...)
	got, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.cases {
		n := 8 + len(c.operands[out1].memory) + len(c.operands[out2].memory)
		if len(got) < n {
			t.Fatalf("driver wrote too little for case %d: %s", len(each), &c)
		}
		each, got = append(each, got[:n]), got[n:]
	}
	if len(got) > 0 {
		t.Fatalf("driver wrote %d bytes too many", len(got))
	}
	return each, printed
}

// compare runs the cases and compares every byte with the reference.
func (s *suite) compare(t *testing.T, driver string, m mode) {
	t.Helper()
	if n := s.wrong(t, driver, m, true); n > 0 {
		t.Errorf("%d of %d cases are wrong", n, len(s.cases))
	}
}

// wrong counts the cases whose bytes are not those of the reference.
func (s *suite) wrong(t *testing.T, driver string, m mode, tell bool) int {
	t.Helper()
	count := 0
	for i, got := range s.results(t, driver, m) {
		c := &s.cases[i]
		want := c.expect(m.adds())
		if bytes.Equal(got, want) {
			continue
		}
		if count++; tell && count <= 5 {
			t.Errorf("case %d: %s\n%s", i, c, c.firstDifference(got, want))
		}
	}
	return count
}
