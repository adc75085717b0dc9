package probe

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// ledger notes how steps begin and end.
type ledger struct {
	mu    sync.Mutex
	ended map[string][]string
}

type entry struct {
	l    *ledger
	name string
}

func (l *ledger) Note(string) {}

func (l *ledger) Start(_, name string, _ int64) report.Step {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[name] = append(l.ended[name], "start")
	return entry{l, name}
}

func (e entry) Add(int64)    {}
func (e entry) Expect(int64) {}
func (e entry) Done(string)  { e.end("done") }
func (e entry) Skip(string)  { e.end("skip") }
func (e entry) Fail(error)   { e.end("fail") }

func (e entry) end(how string) {
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	e.l.ended[e.name] = append(e.l.ended[e.name], how)
}

// TestProgress wants every announced level ended once, whatever happens to it.
func TestProgress(t *testing.T) {
	t.Parallel()
	i := setUp(t, makeBundle(t, "good"))
	dies := setUp(t, makeBundle(t, "good"))
	prepend(t, dies, "import sys, os\nif 'invar_probe.measure' in sys.modules or 'numerics' in str(sys.modules): os.abort()\n")
	for _, c := range []struct {
		name  string
		i     *fixture
		env   string
		level int
		want  []string // how levels 1 to 7 end
	}{
		{"good", i, "", Numbers, []string{"done", "done", "done", "done", "done", "done"}},
		{"level 5 fails", i, "INVAR_CPU_ISA=avx10", Invariance, []string{"done", "done", "done", "done", "fail", "skip", "skip"}},
		{"the measuring process dies", dies, "", Invariance, []string{"done", "done", "done", "done", "done", "fail", "skip"}},
	} {
		l := &ledger{ended: map[string][]string{}}
		res, err := Run(t.Context(), Options{
			Prefix: c.i.prefix, Level: c.level, Runner: run.System{}, Env: append(cleanEnv(), strings.Fields(c.env)...), Progress: l,
		})
		if len(res.Levels) != c.level {
			t.Fatalf("%s: %v", c.name, err)
		}
		for n, want := range c.want {
			name := string(rune('1'+n)) + " " + res.Levels[n].Name
			if got := l.ended[name]; !slices.Equal(got, []string{"start", want}) {
				t.Errorf("%s: %s: %v, want start and %s", c.name, name, got, want)
			}
		}
	}
}
