package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/run"
)

// showBuild prints the result of a build that worked; what failed is told by its error.
func showBuild(w io.Writer, r invar.BuildResult, err error) {
	if r.UpToDate {
		fmt.Fprintf(w, "%s is up to date: generation %d, probed %s (inputs unchanged: invar plan --why). %s\n",
			r.Target, r.Receipt.Generation, ago(time.Since(r.Probed)), elapsed(r.Elapsed))
		return
	}
	if r.Probe == nil {
		return
	}
	for _, line := range r.Probe.Summary {
		fmt.Fprintf(w, "%-9s %s\n", "", line)
	}
	if r.Probe.Proved > 0 && err == nil {
		ready := []string{r.Receipt.Python.Exe}
		if r.Receipt.Release != nil { // CANN's environment is needed, too
			ready = append([]string{"invar", "exec", "--"}, ready...)
		}
		fmt.Fprintf(w, "\nready: %s -c 'import batch_invariant_ops'\nundo:  %s\n",
			commandText(ready), undo(r.Receipt, os.Environ(), shared(r.Receipt.Prefix)))
	}
}

// shared reports whether the prefix serves more than one Python.
func shared(prefix string) bool {
	p, err := install.Open(prefix)
	if err != nil {
		return false
	}
	ids, err := p.IDs()
	return err == nil && len(ids) > 1
}

// undo is the command that takes r back, for a shell with this environment.
// Where the prefix serves several Pythons it names this one.
func undo(r install.Receipt, env []string, several bool) string {
	argv := []string{"invar", "rollback"}
	if !r.GoesBack() {
		argv[1] = "uninstall"
	}
	usual := run.Getenv(env, "INVAR_HOME")
	if usual == "" {
		usual, _ = invar.DefaultPrefix(env)
	}
	if usual == "" || absolute(usual) != r.Prefix {
		argv = append(argv, "--prefix", r.Prefix)
	}
	if several {
		argv = append(argv, "--python", r.Python.Exe)
	}
	return commandText(argv)
}

func ago(d time.Duration) string {
	switch {
	case d < 2*time.Second:
		return "just now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d seconds ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}
