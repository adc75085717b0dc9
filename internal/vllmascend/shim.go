package vllmascend

import (
	"os"
	"path/filepath"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// kept is what the name of the original script ends in beside a shim.
const kept = ".invar-original"

// shim is the script that takes the place of the tree's own: two lines. invar
// itself sees when it runs inside another invar build.
const shim = "#!/bin/sh\nexec \"${INVAR:-invar}\" build \"$@\" # written by invar shim; the original is beside it\n"

// InBuild is set for what an invar build runs: a shim in there does nothing.
const InBuild = "INVAR_INSIDE"

// A Shimmed says what Shim or Unshim did.
type Shimmed struct {
	Script  string `json:"script"`
	Kept    string `json:"kept"`
	Changed bool   `json:"changed"`
}

// Shim puts the shim in the place of the tree's script and keeps the original.
func Shim(dir string) (Shimmed, error) {
	s, err := shimmed(dir)
	if err != nil {
		return s, err
	}
	b, err := os.ReadFile(s.Script)
	switch {
	case err != nil:
		return s, report.Problemf(report.Unmet, "%s has no script to replace", dir).
			WithWant(script, err.Error()).WithHint("vllm-ascend has it from 0.21.0rc1 on")
	case string(b) == shim:
		return s, nil
	case exists(s.Kept):
		return s, report.Problemf(report.Failed, "%s is there, and %s is no shim", s.Kept, s.Script).
			WithHint("somebody has put another script in the shim's place: compare the two and remove one")
	}
	// The original first: a run that is cut off here has changed nothing that counts.
	if err := store.WriteFile(s.Kept, b, mode(s.Script)); err != nil {
		return s, store.Explain(err, dir)
	}
	s.Changed = true
	return s, store.Explain(store.WriteFile(s.Script, []byte(shim), 0o755), dir)
}

// Unshim brings the original back.
func Unshim(dir string) (Shimmed, error) {
	s, err := shimmed(dir)
	if err != nil || !exists(s.Kept) {
		return s, err
	}
	if b, err := os.ReadFile(s.Script); err == nil && string(b) != shim {
		return s, report.Problemf(report.Failed, "%s was changed after invar shim", s.Script).
			WithHint("the original is %s: compare the two and remove one", s.Kept)
	}
	s.Changed = true
	if err := os.Rename(s.Kept, s.Script); err != nil {
		return s, store.Explain(err, dir)
	}
	return s, store.SyncDir(filepath.Dir(s.Script))
}

func shimmed(dir string) (Shimmed, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Shimmed{}, err
	}
	s := Shimmed{Script: filepath.Join(abs, script)}
	s.Kept = s.Script + kept
	if st, err := os.Stat(filepath.Join(abs, "csrc")); err != nil || !st.IsDir() {
		return s, report.Problemf(report.Unmet, "%s is no source tree of vllm-ascend", dir).WithWant("csrc in it", "none")
	}
	return s, nil
}

func mode(path string) os.FileMode {
	if st, err := os.Stat(path); err == nil {
		return st.Mode().Perm()
	}
	return 0o644
}
