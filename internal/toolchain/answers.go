package toolchain

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Identity is path, size and mtime of a program behind all links: while it stays
// the same, so does what the program says of itself.
func Identity(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d %d", real, st.Size(), st.ModTime().UnixNano()), nil
}

// LoadAnswers reads what programs said of themselves, by identity. Without the
// file, or with one that cannot be read, nothing is known and they are asked.
func LoadAnswers[T any](cache string) map[string]T {
	known := map[string]T{}
	if b, err := os.ReadFile(cache); err == nil {
		if json.Unmarshal(b, &known) != nil {
			return map[string]T{}
		}
	}
	return known
}

// SaveAnswers is best effort: without the file the programs are asked again. It
// makes the last folder of the path and no more, so that looking creates no
// prefix, and renames a file of its own, so that two at once write whole files.
func SaveAnswers[T any](cache string, known map[string]T) {
	dir := filepath.Dir(cache)
	if _, err := os.Stat(filepath.Dir(dir)); cache == "" || err != nil {
		return
	}
	b, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return
	}
	f, err := os.CreateTemp(dir, ".answers-")
	if err != nil {
		return
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), cache)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}
