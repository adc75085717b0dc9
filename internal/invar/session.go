// Package invar holds the verbs: plan, build and what goes with them. It is
// the only package that joins detection, planning, building, installing and
// probing; it prints nothing and reads no flags.
package invar

import (
	"os"
	"path/filepath"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A Session is what every verb needs: where things are and who shows progress.
type Session struct {
	Prefix   string // home of store and generations
	Env      []string
	Runner   run.Runner
	Progress report.Progress
	Version  string // of invar, for manifests and receipts

	vllm *install.VLLMInstall // of the build under way
	host *answer              // of the verb under way
}

// DefaultPrefix is where invar lives when nobody says otherwise: /opt/invar
// for root, else the user's data folder.
func DefaultPrefix(env []string) (string, error) {
	if os.Geteuid() == 0 {
		return "/opt/invar", nil
	}
	if d := run.Getenv(env, "XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "invar"), nil
	}
	home := run.Getenv(env, "HOME")
	if home == "" {
		return "", report.Usagef("no home folder: HOME is not set").WithHint("pass --prefix or set INVAR_HOME")
	}
	return filepath.Join(home, ".local", "share", "invar"), nil
}

// LogDir is where long output goes: the user's state folder, or the prefix
// where there is no home, as in some image builds.
func (s Session) LogDir() string {
	if d := run.Getenv(s.Env, "XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "invar", "log")
	}
	if home := run.Getenv(s.Env, "HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "invar", "log")
	}
	return filepath.Join(s.Prefix, "log")
}

// toolCache remembers which compiler is which, so that a second build starts no process.
func (s Session) toolCache() string { return filepath.Join(s.Prefix, "cache", "compilers.json") }
