package main

import (
	"fmt"
	"io"
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

	folds bool   // each stage is a group of GitHub's log
	group string // the open one
}

func (p *progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.w, text)
}

func (p *progress) Start(stage, name string, total int64) report.Step {
	p.mu.Lock()
	p.fold(stage)
	p.mu.Unlock()
	s := &step{p: p, stage: stage, name: name, start: time.Now()}
	if p.bars && total != 0 {
		s.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.w), progressbar.OptionThrottle(65*time.Millisecond),
			progressbar.OptionShowBytes(total > 1<<20), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription(fmt.Sprintf("%-9s %s", stage, name)), progressbar.OptionSetWidth(30),
			progressbar.OptionSetTheme(progressbar.Theme{Saucer: "━", SaucerPadding: " ", BarStart: " ", BarEnd: " "}))
	}
	return s
}

type step struct {
	p     *progress
	stage string
	name  string
	start time.Time
	bar   *progressbar.ProgressBar
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
	if s.bar != nil {
		_ = s.bar.Exit()
		_ = s.bar.Clear()
	}
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
