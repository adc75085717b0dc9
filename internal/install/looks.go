package install

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/invar-ops/invar/internal/store"
)

// looksName is the file of a generation that says how each file looked when its
// content was last digested. An unchanged build of a released operator package
// would spend most of its time on digests otherwise. Whoever changes a file
// changes its ctime, which no program can set back; what a broken disk does is
// for a probe to find, which reads everything.
const looksName = "looks.json"

// A look is a file's size, times and inode together with the digest that it had.
type look struct {
	Look   string `json:"look"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

func readLooks(dir string) map[string]look {
	out := map[string]look{}
	b, err := os.ReadFile(filepath.Join(dir, looksName))
	if err != nil || json.Unmarshal(b, &out) != nil {
		return map[string]look{}
	}
	return out
}

// writeLooks is best effort: without it the files are read again.
func writeLooks(dir string, l map[string]look) {
	if b, err := json.Marshal(l); err == nil {
		_ = store.WriteFile(filepath.Join(dir, looksName), append(b, '\n'), 0o644)
	}
}

// Time stamps advance with the kernel's clock tick, 10 ms at most; old file
// systems keep whole seconds. A file that is younger could change once more
// without a new time.
const (
	young  = 100 * time.Millisecond
	coarse = 2 * time.Second
)

// lookOf says how the file at path looks, "" when nothing can be told from it.
// settled is false while it is so young that a change might not show.
func lookOf(path string, now time.Time) (text string, settled bool) {
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&fs.ModeType != 0 {
		return "", false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	changed := time.Unix(sys.Ctim.Sec, sys.Ctim.Nsec)
	text = fmt.Sprint(st.Size(), " ", st.ModTime().UnixNano(), " ", changed.UnixNano(), " ", sys.Ino, " ", sys.Dev)
	least := young
	if sys.Ctim.Nsec == 0 {
		least = coarse
	}
	return text, now.Sub(changed) >= least
}

// seen splits files into those whose digest is known from how they look, which
// are filled in, and those to read. before is how the latter look now.
func seen(dir string, files []File, known map[string]look) (done, toRead []File, before map[string]string) {
	before = map[string]string{}
	for _, f := range files {
		if f.Link != "" {
			done = append(done, f)
			continue
		}
		text, settled := lookOf(filepath.Join(dir, f.Path), time.Now())
		if k, ok := known[f.Path]; ok && text != "" && k.Look == text {
			f.SHA256, f.Size = k.SHA256, k.Size
			done = append(done, f)
			continue
		}
		if settled {
			before[f.Path] = text
		}
		toRead = append(toRead, f)
	}
	return done, toRead, before
}

// remember keeps how the files looked whose content was read and did not change
// meanwhile.
func remember(dir string, known map[string]look, files []File, before map[string]string) {
	changed := false
	for _, f := range files {
		text, _ := lookOf(filepath.Join(dir, f.Path), time.Now())
		if text == "" || before[f.Path] != text {
			continue
		}
		now := look{text, f.SHA256, f.Size}
		changed = changed || known[f.Path] != now
		known[f.Path] = now
	}
	if changed {
		writeLooks(dir, known)
	}
}
