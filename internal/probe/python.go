package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/scripts"
)

// Time limits of the processes. An import takes 1 to 2 s and up to 30 from a
// cold network disk; the full sweep takes minutes on a slow machine.
const (
	importLimit  = 3 * time.Minute
	measureLimit = 30 * time.Minute
)

// progressPrefix marks progress lines on stderr; see scripts/invar_probe/channel.py.
const progressPrefix = "invar-probe-progress "

// A session starts scripts in the probed Python.
type session struct {
	exe    string
	env    []string
	runner run.Runner
	dir    string // with the unpacked scripts
}

// newSession unpacks the scripts. Threads of OpenMP wait asleep, unless the user
// says otherwise: spinning on a shared machine makes a sweep of short calls ten
// times slower. It decides no bit and no thread count.
func newSession(exe string, env []string, r run.Runner) (*session, error) {
	if run.Getenv(env, "OMP_WAIT_POLICY") == "" {
		env = run.Setenv(env, "OMP_WAIT_POLICY", "PASSIVE")
	}
	dir, err := os.MkdirTemp("", "invar-probe-")
	if err != nil {
		return nil, err
	}
	s := &session{exe: exe, env: env, runner: r, dir: dir}
	if err := scripts.Unpack(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *session) close() {
	if s != nil {
		_ = os.RemoveAll(s.dir)
	}
}

// A died error is a script that gave no answer, with what it said instead.
type died struct {
	Err    error
	Stderr string
}

func (d *died) Error() string { return d.Err.Error() }
func (d *died) Unwrap() error { return d.Err }

// ask starts a script in a fresh process and decodes its answer. A *died error
// is a finding about the installation; any other is ours.
func (s *session) ask(ctx context.Context, request, answer any, limit time.Duration, progress func(done, total int64)) error {
	in, err := json.Marshal(request)
	if err != nil {
		return err
	}
	// No flags: -I and -E would drop PYTHONPATH, -s the user's site, and the
	// probe would see another Python than the server does.
	res, err := s.runner.Run(ctx, run.Cmd{
		Argv: []string{s.exe, filepath.Join(s.dir, scripts.Probe)}, Env: s.env,
		Stdin: bytes.NewReader(in), Timeout: limit, Output: &progressLines{report: progress},
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &died{err, withoutProgress(string(res.Stderr))}
	}
	// The answer is the last line; what site hooks printed before comes first.
	text := run.LastLines(string(res.Stdout), 1)
	if err := json.Unmarshal([]byte(text), answer); err != nil {
		return &died{fmt.Errorf("answer cannot be read: %w", err), run.LastLines(string(res.Stdout), 3)}
	}
	return nil
}

// progressLines picks progress out of the output of a process.
type progressLines struct {
	report func(done, total int64)
	rest   []byte
}

func (p *progressLines) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		l, rest, ok := bytes.Cut(p.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		p.rest = rest
		var at struct{ Done, Total int64 }
		if text, ok := bytes.CutPrefix(l, []byte(progressPrefix)); ok && p.report != nil && json.Unmarshal(text, &at) == nil {
			p.report(at.Done, at.Total)
		}
	}
}

func withoutProgress(text string) string {
	var out []string
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, progressPrefix) {
			out = append(out, l)
		}
	}
	return strings.Join(out, "")
}

// describe is a died process for the Got of a check: the error and the last
// line that it wrote.
func (d *died) describe() string {
	text := d.Err.Error()
	if last := run.LastLines(d.Stderr, 1); last != "" {
		text += ": " + last
	}
	return text
}

// deadCheck is the check of a level whose process gave no answer.
func deadCheck(level int, name string, d *died) report.Check {
	return report.Check{
		Level: level, Name: name, Status: report.Fail, Want: "an answer from the probed Python", Got: d.describe(),
		Hint: "the same by hand: python -c 'import batch_invariant_ops', then one operator after the other",
	}
}
