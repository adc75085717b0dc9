package imagefs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
)

// reserve is what is left free for others, in bytes.
const reserve = 64 << 20

// A room is what may still be written to the file system of a folder.
type room struct {
	dir  string
	free int64 // bytes
}

// roomFor measures the free space of dir, "" is the system's temporary folder,
// and refuses when less than need is there.
func roomFor(dir string, need int64) (*room, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil, fmt.Errorf("free space of %s: %w", dir, err)
	}
	r := &room{dir: dir, free: int64(st.Bavail)*st.Bsize - reserve}
	if r.free < need {
		return nil, r.full(need)
	}
	return r, nil
}

func (r *room) full(need int64) error {
	return report.Problemf(report.Unmet, "not enough room in %s", r.dir).
		WithWant(fmt.Sprintf("%d MB for the layers", (need+reserve)>>20), fmt.Sprintf("%d MB", (r.free+reserve)>>20)).
		WithHint("free some, or set TMPDIR to a larger file system")
}

// take counts n bytes more.
func (r *room) take(n int64) error {
	if r.free -= n; r.free < 0 {
		return r.full(n)
	}
	return nil
}

// writer counts what goes to w.
func (r *room) writer(w io.Writer) io.Writer { return limited{r, w} }

type limited struct {
	r *room
	w io.Writer
}

func (l limited) Write(p []byte) (int, error) {
	if err := l.r.take(int64(len(p))); err != nil {
		return 0, err
	}
	return l.w.Write(p)
}

// explain says of an error what can be done: a file system may fill up while
// others write to it, too.
func explain(format string, args ...any) error {
	p := report.Problemf(report.Failed, format, args...)
	if inner := p.Err; isFull(inner) {
		p.Code = report.Unmet
		return p.WithHint("the file system is full: free some, or set TMPDIR to a larger one")
	}
	return p
}

func isFull(err error) bool {
	for _, no := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}
