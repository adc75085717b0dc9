// Package python finds Python environments and what is installed in them by
// reading files: pyvenv.cfg, directory layouts and dist-info folders. It
// starts an interpreter only for launchers whose target no file tells.
package python

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
)

// A Dist is an installed distribution as its dist-info folder tells.
type Dist struct {
	Name    string `json:"name"`    // normalised (PEP 503): "torch-npu"
	Version string `json:"version"` // as written, local label included
	Dir     string `json:"dir"`     // the site directory that holds it
}

// A Python is one environment: an interpreter and its site directories.
type Python struct {
	Exe     string   `json:"exe"`     // path as chosen
	Version string   `json:"version"` // "3.11.7"; "3.11" when the patch level is written nowhere
	Prefix  string   `json:"prefix"`  // sys.prefix
	Purelib string   `json:"purelib"` // site-packages that pip writes to
	Paths   []string `json:"paths"`   // site directories in sys.path order
	Venv    bool     `json:"venv"`
	Torch   Dist     `json:"torch"` // zero when torch is not installed
	Own     bool     `json:"own"`   // made by invar under its home
	Why     string   `json:"why"`   // how it was chosen
}

// ID names the environment: 12 hex digits from the real path of Purelib, so
// that two spellings of one environment have one ID.
func (p Python) ID() string {
	real, err := filepath.EvalSymlinks(p.Purelib)
	if err != nil {
		real = filepath.Clean(p.Purelib)
	}
	sum := sha256.Sum256([]byte(real))
	return hex.EncodeToString(sum[:6])
}

// HasTorch reports whether torch's metadata was found.
func (p Python) HasTorch() bool { return p.Torch.Version != "" }

// Minor is the version without its patch level: "3.11".
func (p Python) Minor() string {
	parts := strings.SplitN(p.Version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// TorchDir is the package folder of torch, where its headers and libraries are.
func (p Python) TorchDir() string { return filepath.Join(p.Torch.Dir, "torch") }
