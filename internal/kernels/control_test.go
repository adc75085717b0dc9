package kernels

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// rowBits runs op on the first m rows of one fixed a and gives the rows of out.
func rowBits(t *testing.T, b *built, op int, counts []int) map[int][][]byte {
	t.Helper()
	const n, k = 70, 300
	g := newGenerator(11)
	whole := make([]float32, 64*k)
	for i := range whole {
		whole[i] = g.value(normal)
	}
	weight := g.input(f32, k, n, normal, false)
	var file []byte
	for _, m := range counts {
		c := testCase{op: op, m: m, n: n, k: k, alpha: 1}
		for i := range c.operands {
			c.operands[i] = operand{absent: true}
		}
		a := operand{dtype: f32, rows: m, cols: k, row: k, col: 1, memory: make([]byte, 4*m*k)}
		for i := range m * k {
			a.set(i/k, i%k, whole[i])
		}
		out := operand{dtype: f32, rows: m, cols: n, row: n, col: 1, memory: make([]byte, 4*m*n)}
		c.operands[inA], c.operands[inB], c.operands[out1] = a, weight, out
		file = c.encode(file)
	}
	dir := t.TempDir()
	cases, results := filepath.Join(dir, "cases"), filepath.Join(dir, "results")
	if err := os.WriteFile(cases, file, 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, append(append([]string{}, b.driver...), b.levels[len(b.levels)-1], "plain", cases, results)...)
	got, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[int][][]byte{}
	for _, m := range counts {
		for range m {
			rows[m] = append(rows[m], got[:4*n])
			got = got[4*n:]
		}
	}
	return rows
}

// TestControlIsCaught: the comparison that finds mm invariant finds the
// control kernel variant, at every one of these row counts.
func TestControlIsCaught(t *testing.T) {
	t.Parallel()
	b := hostBuilt.get(t, host)
	counts := []int{1, 2, 3, 7, 8, 11, 32, 64}
	for op, wantSame := range map[int]bool{opMM: true, opControl: false} {
		rows := rowBits(t, b, op, counts)
		for _, m := range counts[:len(counts)-1] {
			same := true
			for i, row := range rows[m] {
				same = same && bytes.Equal(row, rows[64][i])
			}
			if same != wantSame {
				t.Errorf("%s: %d rows alone and among 64 give the same bits: %t, want %t",
					opNames[op], m, same, wantSame)
			}
		}
	}
}
