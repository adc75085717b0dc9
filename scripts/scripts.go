// Package scripts holds the Python that invar runs inside the environment it
// probes. It is typed, needs nothing but torch, and answers with one
// JSON object on stdout.
package scripts

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FS holds the packages. The patterns name files: a folder would leave out
// __init__.py (without all:) or take __pycache__ in (with it).
//
//go:embed all:invar_probe/*.py all:invar_models/*.py invar_calls/*.py all:invar_offline/*.py all:invar_wheel/*.py all:invar_hook/*.py
var FS embed.FS

// Probe is the folder of FS to start Python with.
const Probe = "invar_probe"

// Models is the folder of FS that makes small models.
const Models = "invar_models"

// Wheel is the folder of FS that builds a wheel from sources.
const Wheel = "invar_wheel"

// Hook is the module that names operators when Python starts; @VENDOR@ in it
// is to be replaced by their folder below the generation.
const Hook = "invar_hook/_invar_hook.py"

// Offline is the folder of FS that answers prompts through vllm.LLM.
const Offline = "invar_offline"

// Calls is the program that lists the engine calls of a Python file.
const Calls = "invar_calls/calls.py"

// Unpack writes the scripts below dir.
func Unpack(dir string) error {
	return fs.WalkDir(FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		b, err := FS.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return fmt.Errorf("unpack scripts: %w", err)
		}
		return nil
	})
}
