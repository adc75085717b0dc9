package journal

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/invar-ops/invar/internal/openai"
	"github.com/invar-ops/invar/internal/verify/answer"
)

func sample(v float64) answer.Answer {
	return answer.Answer{Finish: "length", Steps: []answer.Step{{Key: "token_id:1", Value: openai.Number{Value: v}, Top: []answer.Entry{{Key: "token_id:1", Value: openai.Number{Value: v}}}}}}
}

var head = Head{Format: 1, Model: "m", Digest: "d"}

func open(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(dir, head)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// TestGoesOn: what was kept is there after a restart; a run that was not
// finished is made again beside its answers.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	done, half := Key{Role: Subject, Run: "done"}, Key{Role: Subject, Run: "half"}
	r, _ := j.Start(done)
	for i, v := range []float64{-1, math.NaN(), math.Copysign(0, -1)} {
		if err := j.Put(done, i, sample(v), 5, []float64{1.5}); err != nil {
			t.Fatal(err)
		}
	}
	r.Complete = true
	if err := j.End(r); err != nil {
		t.Fatal(err)
	}
	_, _ = j.Start(half)
	if err := j.Put(half, 1, sample(-2), 5, nil); err != nil {
		t.Fatal(err)
	}
	want := append([]Ref{}, r.Refs...)
	_ = j.Close()
	cut(t, dir)

	again := open(t, dir)
	r, ok := again.Start(done)
	if !ok || len(r.Refs) != 3 || !r.Complete {
		t.Fatalf("%v %+v", ok, r)
	}
	for i := range want {
		if r.Refs[i] != want[i] {
			t.Errorf("answer %d: %+v, want %+v", i, r.Refs[i], want[i])
		}
	}
	a, at, err := again.Read(r.Refs[0])
	if err != nil || a.Digest(5) != sample(-1).Digest(5) || len(at) != 1 {
		t.Errorf("%+v, %v, %v", a, at, err)
	}
	h, ok := again.Start(half)
	if ok || h.Attempt != 1 || h.Answers() != 0 {
		t.Errorf("%v %+v", ok, h)
	}
	for _, r := range again.Runs() {
		if r.Run == "half" && r.Attempt == 0 && (r.Answers() != 1 || r.Complete) {
			t.Errorf("%+v", r)
		}
	}
}

// cut leaves half a line at the end, as a kill does.
func cut(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "answers.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"key":{"role":"subject","run":"done"},"i":0,"answer":{"s":[`); err != nil {
		t.Fatal(err)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_ = open(t, dir)
	other := head
	other.Digest = "another"
	_, err := Open(dir, other)
	if _, ok := errors.AsType[*ForeignError](err); !ok {
		t.Errorf("got %v", err)
	}
}

func TestTemporaryIsRemoved(t *testing.T) {
	t.Parallel()
	j := open(t, "")
	name := j.f.Name()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("%s is still there", name)
	}
}
