package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A repository is the tree that a release is made from.
type repository struct {
	root   string
	commit string
	dirty  string    // the first changed path, or ""
	time   time.Time // of the commit: the time of every file in the packages
}

func readRepository() (repository, error) {
	root, err := output("", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return repository{}, err
	}
	head, err := output(root, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return repository{}, err
	}
	commit, stamp, _ := strings.Cut(head, " ")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return repository{}, fmt.Errorf("time of the commit: %w", err)
	}
	changed, err := output(root, nil, "git", "status", "--porcelain")
	first, _, _ := strings.Cut(changed, "\n")
	return repository{root: root, commit: commit, dirty: strings.TrimSpace(first), time: time.Unix(seconds, 0).UTC()}, err
}

// compile builds one static binary. -trimpath and the commit's stamp make it
// the same in every folder; the Go version is pinned by go.mod.
func (r repository) compile(arch, bin string) error {
	_, err := output(r.root, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOFLAGS=-buildvcs=true"},
		"go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", bin, "./cmd/invar")
	return err
}

// stage puts the manual page, the completions and the license beside bin and
// returns the version. They are printed by a binary for this machine, which
// is bin itself when it is of this architecture.
func (r repository) stage(dir, bin string) (string, error) {
	host := bin + ".host"
	if err := r.compile(runtime.GOARCH, host); err != nil {
		return "", err
	}
	defer os.Remove(host)
	version, err := output(dir, nil, host, "version")
	if err != nil {
		return "", err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if err := printTo(filepath.Join(dir, "invar."+shell), host, "completion", shell); err != nil {
			return "", err
		}
	}
	page, err := output(dir, nil, host, "man")
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // no name, no time: Debian's gzip -9n
	if _, err := z.Write([]byte(page + "\n")); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "invar.1.gz"), b.Bytes(), 0o644); err != nil {
		return "", err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), license, 0o644); err != nil {
		return "", err
	}
	fields := strings.Fields(version) // "invar 1.0.0+g0123456789ab (go1.26.8, linux/amd64)"
	if len(fields) < 2 {
		return "", fmt.Errorf("invar version printed %q, want its name and version first", version)
	}
	if !strings.Contains(fields[1], "+g"+r.commit[:12]) {
		return "", fmt.Errorf("the binary says version %s, want one with the commit %s; go stamps a clone, not a git worktree", fields[1], r.commit[:12])
	}
	if strings.Contains(fields[1], ".dirty") && r.dirty == "" {
		return "", fmt.Errorf("the output folder makes the working tree dirty (version %s); choose one outside it, or one that git ignores", fields[1])
	}
	return fields[1], nil
}

func printTo(path string, argv ...string) error {
	text, err := output(filepath.Dir(path), nil, argv...)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text+"\n"), 0o644)
}

// output runs argv in dir and returns what it printed, without the last
// newline; an error carries what it said on stderr.
func output(dir string, env []string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}
