package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
)

// prefix is where the Dockerfiles put invar's home, without the first slash.
const prefix = "opt/invar"

// receipts finds the receipts of the current generations below prefix. The
// current link of an environment names its generation: "gen/3".
type receipts struct {
	current map[string]string // environment to link
	files   map[string][]byte // path to content
}

func newReceipts() receipts {
	return receipts{current: map[string]string{}, files: map[string][]byte{}}
}

// add takes one entry of an image; other paths are passed over.
func (r receipts) add(name, link string, read func() ([]byte, error)) error {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	switch {
	case link != "" && match(prefix+"/env/*/current", name):
		r.current[path.Dir(name)] = link
	case match(prefix+"/env/*/gen/*/receipt.json", name):
		b, err := read()
		if err != nil {
			return err
		}
		r.files[name] = b
	}
	return nil
}

func match(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

// only is the one installation of an image that invar built.
func (r receipts) only() (install.Receipt, error) {
	var found []install.Receipt
	for env, link := range r.current {
		b, ok := r.files[path.Join(env, link, "receipt.json")]
		if !ok {
			continue
		}
		var rec install.Receipt
		if err := json.Unmarshal(b, &rec); err != nil {
			return rec, fmt.Errorf("receipt in %s: %w", env, err)
		}
		found = append(found, rec)
	}
	if len(found) != 1 {
		return install.Receipt{}, report.Problemf(report.BuildFailed, "the image was built and holds no operators").
			WithWant("one installation below /"+prefix, fmt.Sprint(len(found))).
			WithHint("the last steps of the build's log say what the probe saw")
	}
	return found[0], nil
}

// fromTar reads the flattened file system of an image.
func (r receipts) fromTar(stream io.Reader) error {
	t := tar.NewReader(stream)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		link := ""
		if h.Typeflag == tar.TypeSymlink {
			link = h.Linkname
		}
		if err := r.add(h.Name, link, func() ([]byte, error) { return io.ReadAll(io.LimitReader(t, 64<<20)) }); err != nil {
			return err
		}
	}
}

// fromDir reads a mounted image; links are not followed out of it.
func (r receipts) fromDir(root fs.ReadLinkFS) error {
	err := fs.WalkDir(root, prefix+"/env", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.Count(p, "/") > strings.Count(prefix, "/")+4 { // below env/ID/gen/N
			return fs.SkipDir
		}
		link := ""
		if d.Type()&fs.ModeSymlink != 0 {
			if link, err = root.ReadLink(p); err != nil {
				return err
			}
		}
		return r.add(p, link, func() ([]byte, error) { return fs.ReadFile(root, p) })
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// labels are those that are known after the build only.
func labels(rec install.Receipt) map[string]string {
	return map[string]string{
		labelPrefix + "contract":           rec.Contract,
		labelPrefix + "torch":              rec.Python.Torch,
		labelPrefix + "run-package":        rec.RunPackage.Name,
		labelPrefix + "run-package.digest": "sha256:" + strings.TrimPrefix(rec.RunPackage.SHA256, "sha256:"),
		labelPrefix + "wheel":              rec.Wheel.Name,
		labelPrefix + "wheel.digest":       "sha256:" + strings.TrimPrefix(rec.Wheel.SHA256, "sha256:"),
	}
}

const labelPrefix = "io.github.invar-ops."
