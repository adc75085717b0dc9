package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, Done},
		{errors.New("x"), Failed},
		{Usagef("x"), Usage},
		{fmt.Errorf("stage: %w", Problemf(BuildFailed, "x")), BuildFailed},
		{&UnmetError{Target: "cpu"}, Unmet},
		{errors.Join(errors.New("x"), Problemf(CheckFailed, "y")), CheckFailed},
		{&Problem{Err: errors.New("x")}, Failed},
	} {
		if got := ExitCode(tc.err); got != tc.want {
			t.Errorf("%v: got %d, want %d", tc.err, got, tc.want)
		}
	}
}

func TestWriteJSONKeepsContextAndParts(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("stage 2: %w", Problemf(BuildFailed, "g++ died").WithWant("a library", "none").WithHint("try"))
	var b bytes.Buffer
	if werr := WriteJSON(&b, "build", map[string]int{"a": 1}, err); werr != nil {
		t.Fatal(werr)
	}
	var e Envelope
	if derr := json.Unmarshal(b.Bytes(), &e); derr != nil {
		t.Fatal(derr)
	}
	if e.Schema != "invar.build" || e.OK || e.Code != BuildFailed || e.Result == nil {
		t.Errorf("got %+v", e)
	}
	if e.Error.Want != "a library" || e.Error.Hint != "try" || e.Error.Message != "stage 2: g++ died; want a library, got none" {
		t.Errorf("got %+v", e.Error)
	}
}
