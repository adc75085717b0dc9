package install

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/invar-ops/invar/internal/store"
)

// parallel is how many files are hashed and synced at once: enough for the
// file system to put several into one journal commit.
const parallel = 8

// listFiles lists files and links below dir without digests, sorted by path.
func listFiles(dir string) (files []File, dirs []string, err error) {
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, p)
			return nil
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		f := File{Path: rel}
		if d.Type()&fs.ModeSymlink != 0 {
			f.Link, err = os.Readlink(p)
		}
		files = append(files, f)
		return err
	})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, dirs, err
}

// digests fills in size and SHA-256 of each file; with sync it also makes the
// content last.
func digests(ctx context.Context, dir string, files []File, sync bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range files {
		f := &files[i]
		if f.Link != "" {
			continue
		}
		g.Go(func() error {
			path := filepath.Join(dir, f.Path)
			var err error
			if f.SHA256, f.Size, err = store.Digest(ctx, path); err != nil || !sync {
				return err
			}
			return store.SyncDir(path) // fsync is the same for a file
		})
	}
	return g.Wait()
}

// seal lists everything below dir with digests and makes contents and names
// last through a power cut. The order among them does not matter: nothing
// refers to dir yet.
func seal(ctx context.Context, dir string) ([]File, error) {
	files, dirs, err := listFiles(dir)
	if err != nil {
		return nil, err
	}
	if err := digests(ctx, dir, files, true); err != nil {
		return nil, err
	}
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, d := range dirs {
		g.Go(func() error { return store.SyncDir(d) })
	}
	return files, g.Wait()
}

// sameTree reports whether two files or folders have the same content.
func sameTree(a, b string) bool {
	fa, _, aerr := listFiles(a)
	fb, _, berr := listFiles(b)
	if aerr != nil || berr != nil {
		return false
	}
	ctx := context.Background() // two packages in site-packages: small, and no caller waits long
	if digests(ctx, a, fa, false) != nil || digests(ctx, b, fb, false) != nil {
		return false
	}
	return slices.Equal(fa, fb)
}
