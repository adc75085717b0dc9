package cudakernels

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// TestRefusals: what is not legal gives its status and writes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	g := newGenerator(8)
	mm := func(change func(c *testCase)) testCase {
		c := g.aligned(bf16, alongK, 4, 8, 16, normal)
		change(&c)
		return c
	}
	row := func(change func(c *testCase)) testCase {
		c := g.row(opSoftmax, 3, 5)
		change(&c)
		return c
	}
	odd := func(o *operand) { o.offset++ }
	cases := map[string]struct {
		c    testCase
		want int
	}{
		"negative m":          {mm(func(c *testCase) { c.m = -1 }), badSize},
		"k beyond any memory": {mm(func(c *testCase) { c.k = 1 << 60 }), badSize},
		"product overflows":   {mm(func(c *testCase) { c.m, c.n = 1<<40, 1<<40 }), badSize},
		"negative batch":      {mm(func(c *testCase) { c.batch = -2 }), badSize},
		"mixed dtypes":        {mm(func(c *testCase) { c.operands[inB].dtype = f16 }), badDtype},
		"unknown dtype":       {mm(func(c *testCase) { c.operands[out1].dtype = 7 }), badDtype},
		"unknown variant":     {mm(func(c *testCase) { c.variant = 9 }), badVariant},
		"tile wants alignment": {mm(func(c *testCase) {
			c.operands[inA].col, c.operands[inA].row, c.variant = 2, 1, 1
		}), badVariant},
		"odd address":      {mm(func(c *testCase) { odd(&c.operands[inA]) }), badPointer},
		"no a":             {mm(func(c *testCase) { c.operands[inA].absent, c.operands[inA].memory = true, nil }), badPointer},
		"negative rows":    {row(func(c *testCase) { c.m = -3 }), badSize},
		"row dtype":        {row(func(c *testCase) { c.operands[inA].dtype = -1 }), badDtype},
		"row variant":      {row(func(c *testCase) { c.variant = 4 }), badVariant},
		"negative variant": {row(func(c *testCase) { c.variant = -1 }), badVariant},
		"no x":             {row(func(c *testCase) { c.operands[inA].absent, c.operands[inA].memory = true, nil }), badPointer},
	}
	s, driver := new(suite), host.emulator(t)
	var names []string
	for name, e := range cases {
		names = append(names, name)
		s.add(e.c)
	}
	for i, got := range s.results(t, driver, mode{"0", "early", "chain"}) {
		e := cases[names[i]]
		if status := int(binary.LittleEndian.Uint64(got)); status != e.want {
			t.Errorf("%s: status %d, want %d", names[i], status, e.want)
		}
		if !bytes.Equal(got[8:], e.c.operands[out1].memory) {
			t.Errorf("%s: the output was written", names[i])
		}
	}
}
