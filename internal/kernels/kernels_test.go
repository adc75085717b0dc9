package kernels

import (
	"fmt"
	"strings"
	"testing"
)

// firstDifference says which element of which output differs, or that the
// memory between elements was written.
func firstDifference(c *testCase, got, want []byte) string {
	for _, at := range []int{out1, out2} {
		o := c.operands[at]
		if o.absent {
			continue
		}
		g, w := o, o
		g.memory, w.memory = got[:len(o.memory)], want[:len(o.memory)]
		got, want = got[len(o.memory):], want[len(o.memory):]
		var differ int
		var first string
		for i := range o.rows {
			for j := range o.cols {
				if g.bits(i, j) == w.bits(i, j) {
					continue
				}
				if differ == 0 {
					first = fmt.Sprintf("%d, %d: got %0*x (%g), want %0*x (%g)", i, j,
						2*o.dtype.size(), g.bits(i, j), g.get(i, j), 2*o.dtype.size(), w.bits(i, j), w.get(i, j))
				}
				differ++
			}
		}
		if differ > 0 {
			return fmt.Sprintf("%d of %d elements differ, first %s", differ, o.rows*o.cols, first)
		}
	}
	return "memory between the elements was written"
}

func TestBitsOfEveryLevel(t *testing.T) {
	t.Parallel()
	b := hostBuilt.get(t, host)
	if len(b.levels) < 3 && host.arch == "x86_64" {
		t.Logf("this machine runs only the levels %s", strings.Join(b.levels, ", "))
	}
	for _, level := range b.levels {
		for _, mode := range []string{"plain", "hostile"} {
			t.Run(level+"/"+mode, func(t *testing.T) {
				t.Parallel()
				suite().drive(t, b.driver, level, mode)
			})
		}
	}
}

func TestBitsOnAArch64(t *testing.T) {
	t.Parallel()
	if host.arch == arm.arch {
		t.Skip("the host is aarch64 and TestBitsOfEveryLevel runs there")
	}
	b := armBuilt.get(t, arm)
	for _, level := range b.levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			suite().drive(t, b.driver, level, "hostile")
		})
	}
}

// TestBitsOfAnotherCompiler: the contract is a matter of the sources, not of
// what one compiler makes of them.
func TestBitsOfAnotherCompiler(t *testing.T) {
	t.Parallel()
	b := llvmBuilt.get(t, llvm)
	for _, level := range b.levels {
		suite().drive(t, b.driver, level, "hostile")
	}
}
