package invar

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// full says which file system ran full while an environment was made: the
// installers write to the prefix, to a scratch folder and to a cache, and
// their messages name none of them.
func (s Session) full(p *report.Problem) {
	places := []struct{ what, dir, hint string }{
		{"the prefix", s.Prefix, "free some space: invar gc; or choose another place: invar build --prefix DIR"},
		{"the folder for temporary files", firstOf(run.Getenv(s.Env, "TMPDIR"), "/tmp"), "free some space there, or set TMPDIR to a larger disk"},
		{"the installer's cache", s.cacheDir(), "free some space there (uv cache clean, python3 -m pip cache purge), or set UV_CACHE_DIR and PIP_CACHE_DIR to a larger disk"},
	}
	least := ^uint64(0)
	for _, place := range places {
		if free, ok := freeBytes(place.dir); ok && free < least {
			least = free
			p.Cause = "the file system of " + place.what + " " + place.dir + " is full, or a quota on it is used up"
			p.Hint = place.hint
		}
	}
}

func (s Session) cacheDir() string {
	if d := run.Getenv(s.Env, "UV_CACHE_DIR"); d != "" {
		return d
	}
	return firstOf(run.Getenv(s.Env, "XDG_CACHE_HOME"), filepath.Join(run.Getenv(s.Env, "HOME"), ".cache"))
}

// freeBytes is what users may still write to the file system of dir or, where
// dir is not there, of the folder that it would be made in.
func freeBytes(dir string) (uint64, bool) {
	for ; ; dir = filepath.Dir(dir) {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil {
			return st.Bavail * uint64(st.Bsize), true //nolint:gosec // a block size is positive
		}
		if dir == filepath.Dir(dir) {
			return 0, false
		}
	}
}
