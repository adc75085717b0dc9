package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/invar-ops/invar/internal/report"
)

// newProgress draws bars on a terminal and prints one line a finished step
// elsewhere (progressbar writes carriage returns into pipes, so it is kept out).
func newProgress(w io.Writer, quiet bool) report.Progress {
	if quiet {
		return report.Discard
	}
	return &progress{w: w, bars: terminal(w)}
}

type progress struct {
	mu   sync.Mutex
	w    io.Writer
	bars bool

	drawn []*progressbar.ProgressBar // the bars that are on the screen

	folds bool   // each stage is a group of GitHub's log
	group string // the open one
}

func (p *progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(p.w, text)
}

func (p *progress) Start(stage, name string, total int64) report.Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fold(stage)
	s := &step{p: p, stage: stage, name: name, start: time.Now()}
	if p.bars && total != 0 {
		s.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.w), progressbar.OptionThrottle(65*time.Millisecond),
			progressbar.OptionShowBytes(total > 1<<20), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription(fmt.Sprintf("%-9s %s", stage, name)), progressbar.OptionSetWidth(30),
			progressbar.OptionSetTheme(progressbar.Theme{Saucer: "━", SaucerPadding: " ", BarStart: " ", BarEnd: " "}))
		p.drawn = append(p.drawn, s.bar)
	}
	return s
}

type step struct {
	p     *progress
	stage string
	name  string
	start time.Time
	bar   *progressbar.ProgressBar
	total int64 // what Expect announced
}

// Expect makes a bar of bytes of a spinner, or the bar longer.
func (s *step) Expect(n int64) {
	if s.bar == nil {
		return
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.total += n
	progressbar.OptionShowBytes(true)(s.bar)
	progressbar.OptionShowCount()(s.bar)
	s.bar.ChangeMax64(s.total)
}

func (s *step) Add(n int64) {
	if s.bar != nil {
		_ = s.bar.Add64(n)
	}
}

func (s *step) Done(detail string) { s.end("ok", detail) }
func (s *step) Skip(reason string) { s.end("skipped", reason) }
func (s *step) Fail(err error)     { s.end("failed", firstLine(err.Error())) }

func (s *step) end(word, detail string) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.rub()
	took := elapsed(time.Since(s.start))
	text := strings.TrimSpace(s.name + " " + detail)
	said := text
	if word == "failed" {
		text = strings.TrimSuffix(s.name, ":") // why follows in the error, once
	}
	if s.p.bars {
		if word != "ok" {
			text += " " + paint(s.p.w, map[string]string{"failed": "fail", "skipped": "skip"}[word], word)
		}
		fmt.Fprintf(s.p.w, "%-9s %-76s %8s\n", s.stage, text, took)
		return
	}
	fmt.Fprintf(s.p.w, "%s: %s %s in %s\n", s.stage, text, word, took)
	if word == "failed" {
		s.p.annotate(s.stage, said)
	}
}

// rub takes the bar of a step that ended away for good. It wants p.mu.
func (s *step) rub() {
	s.p.clear()
	if s.bar != nil {
		_ = s.bar.Exit()
		_ = s.bar.Clear()
		s.p.drawn = slices.DeleteFunc(s.p.drawn, func(b *progressbar.ProgressBar) bool { return b == s.bar })
	}
}

// clear makes room for a line: steps overlap, and a line behind the bar of
// another would stay there. That bar draws itself again. It wants p.mu.
func (p *progress) clear() {
	for _, b := range p.drawn {
		_ = b.Clear()
	}
}

func elapsed(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
