package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// GitHub folds what stands between ::group:: and ::endgroup:: and marks what
// follows ::error. Both are lines of their own, so they are written only where
// GITHUB_ACTIONS says that somebody reads them, and never beside bars.
func onGitHub() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// grouped makes a fold of each stage. The function ends the last one; call it
// before anything else is printed.
func grouped(r report.Progress) func() {
	p, ok := r.(*progress)
	if !ok || p.bars || !onGitHub() {
		return func() {}
	}
	p.folds = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fold("")
		p.folds = false
	}
}

// fold ends the open group and begins that of stage. It wants p.mu.
func (p *progress) fold(stage string) {
	if !p.folds || stage == p.group {
		return
	}
	if p.group != "" {
		fmt.Fprintln(p.w, "::endgroup::")
	}
	if p.group = stage; stage != "" {
		fmt.Fprintf(p.w, "::group::%s\n", stage)
	}
}

// annotate marks the failure of a stage.
func (p *progress) annotate(stage, text string) {
	if onGitHub() {
		fmt.Fprintf(p.w, "::error title=invar %s::%s\n", stage, strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text))
	}
}
