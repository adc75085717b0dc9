package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
)

// lockPoll is how often a waiter asks again. flock(2) can wait by itself, but
// not until a context ends.
const lockPoll = 50 * time.Millisecond

// A Lock is the one writer's right to change a prefix. The kernel drops it
// when the process ends, however it ends.
type Lock struct {
	file *os.File
	path string
}

// LockOptions say how Acquire behaves while another process has the lock.
type LockOptions struct {
	NoWait   bool            // fail at once
	Command  string          // what this process does, for those who wait for it
	Progress report.Progress // told once that we wait; nil is silent
}

// holder is what the lock file says about its owner.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// LockPath is the lock file of prefix.
func LockPath(prefix string) string { return filepath.Join(prefix, "lock") }

// Acquire takes the lock of prefix, making the folder when it is not there.
func Acquire(ctx context.Context, prefix string, o LockOptions) (*Lock, error) {
	var waiting report.Step
	for {
		// In the loop: a holder that leaves an empty prefix removes the folder.
		if err := os.MkdirAll(prefix, 0o755); err != nil {
			return nil, Explain(err, "prefix "+prefix)
		}
		l, err := try(prefix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			if waiting != nil {
				waiting.Done("")
			}
			return l, l.sign(o.Command)
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, Explain(err, "prefix "+prefix)
		}
		h := readHolder(LockPath(prefix))
		if o.NoWait {
			return nil, report.Problemf(report.Failed, "another invar works in %s: %s", prefix, h).
				WithHint("wait for it, or leave out --no-wait")
		}
		if waiting == nil && o.Progress != nil {
			waiting = o.Progress.Start("wait", fmt.Sprintf("for another invar in %s: %s", prefix, h), 0)
		}
		select {
		case <-ctx.Done():
			if waiting != nil {
				waiting.Fail(context.Cause(ctx))
			}
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// try takes the lock or fails with EWOULDBLOCK. The holder may have removed
// the file (uninstall does): then the lock is on a file without a name and
// worth nothing, so it is tried again on the one that has the name now.
func try(prefix string) (*Lock, error) {
	for {
		f, err := os.OpenFile(LockPath(prefix), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			_ = f.Close()
			return nil, err
		}
		mine, err := f.Stat()
		named, nerr := os.Stat(LockPath(prefix))
		if err == nil && nerr == nil && os.SameFile(mine, named) {
			return &Lock{file: f, path: LockPath(prefix)}, nil
		}
		_ = f.Close()
	}
}

func (l *Lock) sign(command string) error {
	b, err := json.Marshal(holder{os.Getpid(), command, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(append(b, '\n'), 0)
	return Explain(err, l.path)
}

// Release gives the lock back.
func (l *Lock) Release() error {
	_ = l.file.Truncate(0)
	return l.file.Close()
}

// Remove gives the lock back and removes its file, for an uninstall that
// leaves nothing.
func (l *Lock) Remove() error {
	return errors.Join(os.Remove(l.path), l.file.Close())
}

func readHolder(path string) string {
	var h holder
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &h) != nil || h.PID == 0 {
		return "a process that has not said who it is"
	}
	text := fmt.Sprintf("pid %d", h.PID)
	if h.Command != "" {
		text += " (" + h.Command + ")"
	}
	return text + " since " + h.Since.Local().Format(time.TimeOnly)
}
