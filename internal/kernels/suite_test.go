package kernels

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// suite is all cases with what they must give, made once.
var suite = sync.OnceValue(makeSuite)

type expected struct {
	cases []testCase
	file  []byte // as the driver reads them
	want  []byte // what it must write
	ends  []int  // of each case in want
}

func (e *expected) add(cases ...testCase) {
	for _, c := range cases {
		e.cases = append(e.cases, c)
		e.file = c.encode(e.file)
		for _, w := range c.expect() {
			e.want = append(e.want, w...)
		}
		e.ends = append(e.ends, len(e.want))
	}
}

func makeSuite() *expected {
	e, g := new(expected), newGenerator(3)
	for _, m := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 19, 33} {
		for range 18 {
			e.add(g.mm(m, pick(g, 0, 1, 5, 17, 63, 64, 65, 130), pick(g, 0, 1, 2, 3, 7, 31, 64, 129)))
		}
	}
	// On both sides of every block: rows, k, panels taken together.
	for _, s := range [][3]int{
		{193, 65, 130},
		{200, 3, 260},
		{7, 300, 257},
		{30, 270, 131},
		{1, 1100, 33},
		{5, 1090, 40},
		{1, 64, 16390},
		{2, 70, 8200},
		{6, 64, 2700},
		{6, 3, 2689},
		{4, 128, 4100},
	} {
		for range 3 {
			e.add(g.mm(s[0], s[1], s[2]))
		}
	}
	for range 30 {
		e.add(g.pack(pick(g, 0, 1, 17, 63, 64, 65, 200), pick(g, 0, 1, 5, 16, 31, 33, 70)))
	}
	for op := opSum; op <= opAddRMS; op++ {
		for _, cols := range []int{0, 1, 2, 3, 15, 16, 17, 31, 63, 64, 65, 127, 130, 255, 257, 1000} {
			for range 8 {
				e.add(g.row(op, pick(g, 0, 1, 2, 3, 15, 16, 17, 33), cols))
			}
		}
		for _, cols := range []int{1, 17, 64, 200} {
			if op != opSum && op != opMean {
				e.add(g.inPlace(op, 5, cols), g.inPlace(op, 18, cols))
			}
		}
		e.add(g.row(op, 2, 32003), g.row(op, 17, 5000), g.row(op, 1, 70001))
	}
	e.add(g.conversions()...)
	return e
}

// conversions sends every 16-bit value through both directions, and many
// float32 around every place where a rounding turns.
func (g generator) conversions() []testCase {
	var out []testCase
	for _, from := range []dtype{f32, bf16, f16} {
		for _, to := range []dtype{f32, bf16, f16} {
			c := g.row(opSum, 1<<16, 1)
			x := operand{dtype: from, rows: 1 << 16, cols: 1, row: 1, col: 1}
			x.memory = make([]byte, x.rows*from.size())
			for i := range x.rows {
				u := uint32(i)
				if from == f32 {
					u = u<<16 | pick[uint32](g, 0, 1, 0x7fff, 0x8000, 0x8001, 0x0fff, 0x1000, 0x1001, 0xffff)
				}
				x.setBits(i, 0, u)
			}
			y := operand{dtype: to, rows: 1 << 16, cols: 1, row: 1, col: 1}
			y.memory = make([]byte, y.rows*to.size())
			c.operands[inA], c.operands[out1] = x, y
			out = append(out, c)
		}
	}
	return out
}

// drive runs the cases on one level and compares every byte.
func (e *expected) drive(t *testing.T, driver []string, level, mode string) {
	t.Helper()
	dir := t.TempDir()
	cases, results := filepath.Join(dir, "cases"), filepath.Join(dir, "results")
	if err := os.WriteFile(cases, e.file, 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, append(append([]string{}, driver...), level, mode, cases, results)...)
	got, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	e.compare(t, got)
}

func (e *expected) compare(t *testing.T, got []byte) {
	t.Helper()
	if len(got) != len(e.want) {
		t.Fatalf("driver wrote %d bytes, want %d", len(got), len(e.want))
	}
	from, failed := 0, 0
	for i, end := range e.ends {
		if g, w := got[from:end], e.want[from:end]; !bytes.Equal(g, w) && failed < 5 {
			failed++
			c := &e.cases[i]
			t.Errorf("case %d: %s\n%s", i, c, firstDifference(c, g, w))
		}
		from = end
	}
}
