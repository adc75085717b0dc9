package verify

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/verify/judge"
)

// TestOffline drives the script against a stand-in for vllm.LLM in a real Python.
func TestOffline(t *testing.T) {
	t.Parallel()
	py, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	fake, err := filepath.Abs("testdata/fake")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env     []string
		args    map[string]any
		control []string
		word    judge.Word
		code    int
		says    string
	}{
		"clean":             {word: judge.Invariant, says: "No answer changed"},
		"clean, control":    {control: []string{"FAKE_BATCH=1"}, word: judge.Invariant, says: "No answer changed"},
		"blind control":     {control: []string{"FAKE_BATCH=0"}, word: judge.Inconclusive, code: report.Inconclusive, says: "does not vary either"},
		"batch":             {env: []string{"FAKE_BATCH=1"}, word: judge.Variant, code: report.CheckFailed, says: "with the batch"},
		"dies on the way":   {env: []string{"FAKE_DIES=20"}, word: judge.Inconclusive, code: report.Failed, says: "server died"},
		"cannot be started": {args: map[string]any{"refuse": true}, code: report.Failed, says: "this model cannot be loaded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append(os.Environ(), append(c.env, "PYTHONPATH="+fake, "PYTHONDONTWRITEBYTECODE=1")...)
			res, err := Offline(t.Context(), OfflineOptions{
				Options: Options{Preset: "full", Env: env, Runner: run.System{}, Progress: report.Discard, Logs: t.TempDir(), Lifetimes: 1},
				Python:  py, Folder: "m", Arguments: c.args, Control: c.control,
			})
			if report.ExitCode(err) != c.code {
				p, _ := errors.AsType[*report.Problem](err)
				t.Fatalf("code %d, want %d: %v\n%+v", report.ExitCode(err), c.code, err, p.Tail)
			}
			if c.word == "" {
				p := err.(*report.Problem) //nolint:errorlint // returned bare
				if res != nil || !strings.Contains(p.Tail, c.says) {
					t.Errorf("%+v, %q", res, p.Tail)
				}
				return
			}
			if res == nil {
				t.Fatal(err)
			}
			if res.Verdict.Word != c.word || !strings.Contains(res.Verdict.Sentence, c.says) {
				t.Errorf("got %+v\nwant %s, %q", res.Verdict, c.word, c.says)
			}
			if c.word == judge.Invariant && res.Server.Version != "0.0+fake" {
				t.Errorf("version %q", res.Server.Version)
			}
		})
	}
}
