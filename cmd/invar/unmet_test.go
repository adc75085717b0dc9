package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

// TestUnmetInColumns: what is wanted and what was found stand below each
// other, be a name or a wish short or long.
func TestUnmetInColumns(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", wide+1)
	var out bytes.Buffer
	showUnmet(&out, &report.UnmetError{Target: "cpu", All: []report.Requirement{
		{Name: "CANN", Want: ">= 9.1.0", Got: "8.5.1", Hint: "install it"},
		{Name: "C++ compiler", Want: "gcc >= 11; clang >= 14", Got: "none"},
		{Name: "fine", Want: "this", Got: "this", OK: true},
		{Name: "invar", Want: long, Got: "not yet", Hint: "wait"},
	}})
	want := "invar: error: this host does not meet cpu: 3 of 4 requirements\n" +
		"  CANN          want >= 9.1.0                got 8.5.1\n" +
		"                install it\n" +
		"  C++ compiler  want gcc >= 11; clang >= 14  got none\n" +
		"  invar         want " + long + "\n" +
		"                got not yet\n" +
		"                wait\n" +
		"nothing was changed. all requirements: invar doctor cpu\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
