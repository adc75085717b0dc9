package launch

import (
	"bufio"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/explain"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

//go:embed all:rules
var rules embed.FS

// A Finding is a line of a server's log that decides something about batch
// invariance.
type Finding struct {
	Rule
	Line int
	Said string // the line
}

// A Rule says what a line means.
type Rule struct {
	ID     string `yaml:"id"`
	Kind   string `yaml:"kind"` // inactive, refused, preempted, died
	Match  string `yaml:"match"`
	Text   string `yaml:"text"`
	Hint   string `yaml:"hint"`
	Source string `yaml:"source"`
	re     *regexp.Regexp
}

// Kinds of rules.
const (
	Inactive  = "inactive"  // the server runs without the mode that was asked for
	Refused   = "refused"   // it did not start because of the mode
	Preempted = "preempted" // a request lost its KV and was computed again
	Died      = "died"      // what ended a server that was running
)

var load = sync.OnceValues(func() ([]Rule, error) {
	const name = "rules/startlog.yaml"
	b, err := rules.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f struct {
		Rules []Rule `yaml:"rules"`
	}
	if err := data.Decode(name, b, &f); err != nil {
		return nil, err
	}
	for i := range f.Rules {
		r := &f.Rules[i]
		if !slices.Contains([]string{Inactive, Refused, Preempted, Died}, r.Kind) {
			return nil, fmt.Errorf("%s: rule %s: unknown kind %q", name, r.ID, r.Kind)
		}
		if r.re, err = regexp.Compile(r.Match); err != nil {
			return nil, fmt.Errorf("%s: rule %s: %w", name, r.ID, err)
		}
	}
	return f.Rules, nil
})

// ReadLog finds the lines of a server's log that rules speak of.
func ReadLog(r io.Reader) ([]Finding, error) {
	all, err := load()
	if err != nil {
		return nil, err
	}
	var out []Finding
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		for _, rule := range all {
			if rule.re.MatchString(sc.Text()) {
				out = append(out, Finding{rule, n, strings.TrimSpace(sc.Text())})
			}
		}
	}
	return out, sc.Err()
}

// checkLog refuses a server that started without the mode it was asked for.
func (s *Server) checkLog() error {
	found, err := s.findings()
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Kind == Inactive {
			p := report.Problemf(report.CheckFailed, "the server runs, but batch invariance is not active: %s", f.Text).WithHint("%s", f.Hint)
			p.Rule, p.Log, p.Tail = f.ID, s.Log, f.Said
			return p
		}
	}
	return nil
}

func (s *Server) findings() ([]Finding, error) {
	f, err := os.Open(s.Log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return ReadLog(f)
}

// Cause is what the log says ended the server, or nil.
func (s *Server) Cause() *Finding {
	found, err := s.findings()
	if err != nil {
		return nil
	}
	for _, f := range found {
		if f.Kind == Died {
			return &f
		}
	}
	return nil
}

// Preemptions counts the log lines that tell of one. Newer vLLM writes none:
// zero proves nothing.
func (s *Server) Preemptions() int {
	found, err := s.findings()
	if err != nil {
		return 0
	}
	n := 0
	for _, f := range found {
		if f.Kind == Preempted {
			n++
		}
	}
	return n
}

// diagnosed adds to err what the log says of the cause.
func (s *Server) diagnosed(ctx context.Context, err error) error {
	p := report.Problemf(report.Failed, "%w", err)
	p.Log = s.Log
	b, rerr := os.ReadFile(s.Log)
	if rerr != nil {
		return p
	}
	p.Tail = run.LastLines(string(b), 8)
	if found, ferr := ReadLog(strings.NewReader(string(b))); ferr == nil {
		for _, f := range found {
			if f.Kind == Refused {
				p.Rule, p.Cause, p.Hint = f.ID, f.Text, f.Hint
				return p
			}
		}
	}
	if d, derr := explain.Log(ctx, strings.NewReader(string(b)), explain.Options{}); derr == nil && d.Verdict == explain.Found {
		p.Cause, p.Rule = d.Cause, d.Rule
		if d.Fix != nil {
			p.Hint = d.Fix.Do
		}
	}
	return p
}

// checkPlugins refuses an environment in which vLLM would leave invar's plugin
// out without a word.
func checkPlugins(env []string) error {
	list := run.Getenv(env, "VLLM_PLUGINS")
	if run.Getenv(env, "INVAR_BATCH_INVARIANT") != "1" || list == "" {
		return nil
	}
	for p := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(p) == "invar" {
			return nil
		}
	}
	return report.Problemf(report.CheckFailed, "VLLM_PLUGINS=%s leaves invar out though INVAR_BATCH_INVARIANT=1 is set: vLLM would filter it silently", list).
		WithHint("VLLM_PLUGINS=%s,invar, or unset it", list)
}
