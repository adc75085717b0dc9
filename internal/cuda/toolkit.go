package cuda

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/toolchain"
)

// A Toolkit is one CUDA compiler with what lies beside it, whole or broken.
type Toolkit struct {
	Home      string            `json:"home"` // as it was found
	From      string            `json:"from"` // "--cuda-home", "CUDA_HOME", "PATH", "Python", ...
	Parts     map[string]string `json:"parts"`
	Missing   []string          `json:"missing,omitempty"`   // names of parts that are not there
	Version   string            `json:"version,omitempty"`   // of nvcc: "13.2.86"
	Banner    string            `json:"banner,omitempty"`    // its line with the version
	Supported []int             `json:"supported,omitempty"` // compute capabilities that nvcc lists
	Headers   string            `json:"headers,omitempty"`   // CUDA version of the runtime headers
	GCCMax    int               `json:"gcc_max,omitempty"`   // newest gcc that its headers let in
	ClangMax  int               `json:"clang_max,omitempty"`
	Digest    string            `json:"digest,omitempty"` // of nvcc, cicc and ptxas
	Wheels    map[string]string `json:"wheels,omitempty"` // versions, where it came as wheels
	Fault     string            `json:"fault,omitempty"`  // why nvcc could not be asked
	Shim      string            `json:"shim,omitempty"`   // folder that stands for Home where its layout is not the usual one
}

// NVCC is the compiler, or "".
func (t Toolkit) NVCC() string { return t.Parts["nvcc"] }

// Bin is a program of the toolkit by its part's name.
func (t Toolkit) Bin(name string) string { return t.Parts[name] }

// Include is the folder with cuda_runtime.h.
func (t Toolkit) Include() string { return filepath.Dir(t.Parts["runtime headers"]) }

// Lib is the folder with libcudart_static.a.
func (t Toolkit) Lib() string { return filepath.Dir(t.Parts["libcudart_static.a"]) }

// Missing parts that only prove what was compiled are told apart.
func (t Toolkit) lacks(tools bool) []string {
	r, err := loadParts()
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range r.Parts {
		if p.Tool == tools && slices.Contains(t.Missing, p.Name) {
			out = append(out, p.Name)
		}
	}
	return out
}

// Inspect reads the toolkit at home. nvcc itself is asked for its version and
// its architectures; cache is a file that remembers the answers by the identity
// of the programs, so that a second look starts no process.
func Inspect(ctx context.Context, home, from string, env []string, r run.Runner, cache string) (Toolkit, error) {
	rules, err := loadParts()
	if err != nil {
		return Toolkit{}, err
	}
	t := Toolkit{Home: home, From: from, Parts: map[string]string{}, Wheels: wheelsOf(home)}
	for _, p := range rules.Parts {
		if at := p.find(home); at != "" {
			t.Parts[p.Name] = at
		} else {
			t.Missing = append(t.Missing, p.Name)
		}
	}
	t.readHeaders()
	if t.NVCC() == "" {
		return t, nil
	}
	return t, t.ask(ctx, env, r, cache)
}

var (
	cudartRE = regexp.MustCompile(`(?m)^\s*#\s*define\s+CUDART_VERSION\s+(\d+)`)
	gccRE    = regexp.MustCompile(`(?m)^#\s*if\s+__GNUC__\s*>\s*(\d+)`)
	clangRE  = regexp.MustCompile(`(?m)^#\s*if\s+\(__clang_major__\s*>=\s*(\d+)\)\s*\|\|\s*\(__clang_major__\s*<\s*3\)`)
)

// readHeaders finds the version of the headers and the host compilers they let in.
func (t *Toolkit) readHeaders() {
	if h := t.Parts["runtime headers"]; h != "" {
		if n := firstNumber(filepath.Join(filepath.Dir(h), "cuda_runtime_api.h"), cudartRE); n > 0 {
			t.Headers = fmt.Sprintf("%d.%d", n/1000, n%1000/10) // 13020 is 13.2
		}
	}
	if h := t.Parts["crt headers"]; h != "" {
		t.GCCMax = firstNumber(h, gccRE)
		if n := firstNumber(h, clangRE); n > 0 {
			t.ClangMax = n - 1
		}
	}
}

func firstNumber(file string, re *regexp.Regexp) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	m := re.FindSubmatch(b)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return 0
	}
	return n
}

// wheelsOf lists the wheels that share home, where it is nvidia/cu13 of a site
// directory: name to version.
func wheelsOf(home string) map[string]string {
	if filepath.Base(filepath.Dir(home)) != "nvidia" {
		return nil
	}
	out := map[string]string{}
	for _, d := range python.Dists(filepath.Dir(filepath.Dir(home))) {
		if strings.HasPrefix(d.Name, "nvidia-") {
			out[d.Name] = d.Version
		}
	}
	return out
}

// An answer is what one nvcc said.
type answer struct {
	Version   string `json:"version"`
	Banner    string `json:"banner"`
	Supported []int  `json:"supported"`
	Digest    string `json:"digest"`
}

var (
	releaseRE = regexp.MustCompile(`release (\d+\.\d+)(?:, V(\d+\.\d+(?:\.\d+)?))?`)
	listedRE  = regexp.MustCompile(`(?m)^(?:compute|sm)_(\d+)\s*$`)
)

func (t *Toolkit) ask(ctx context.Context, env []string, r run.Runner, cache string) error {
	id, err := t.identity()
	if err != nil {
		t.Fault = err.Error()
		return nil
	}
	known := toolchain.LoadAnswers[answer](cache)
	a, ok := known[id]
	if !ok {
		if a, err = question(ctx, *t, env, r); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t.Fault = err.Error()
			return nil
		}
		known[id] = a
		toolchain.SaveAnswers(cache, known)
	}
	t.Version, t.Banner, t.Supported, t.Digest = a.Version, a.Banner, a.Supported, a.Digest
	return nil
}

func question(ctx context.Context, t Toolkit, env []string, r run.Runner) (answer, error) {
	var a answer
	res, err := r.Run(ctx, run.Cmd{Argv: []string{t.NVCC(), "--version"}, Env: run.Pick(env, "PATH"), Timeout: 30 * time.Second})
	if err != nil {
		return a, err
	}
	m := releaseRE.FindSubmatch(res.Stdout)
	if m == nil {
		return a, fmt.Errorf("no release in the answer of nvcc --version: %.80q", res.Stdout)
	}
	if a.Version = string(m[2]); a.Version == "" {
		a.Version = string(m[1])
	}
	a.Banner = "nvcc " + a.Version
	res, err = r.Run(ctx, run.Cmd{Argv: []string{t.NVCC(), "--list-gpu-arch"}, Env: run.Pick(env, "PATH"), Timeout: 30 * time.Second})
	if err != nil {
		return a, err
	}
	for _, m := range listedRE.FindAllSubmatch(res.Stdout, -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err == nil && !slices.Contains(a.Supported, n) {
			a.Supported = append(a.Supported, n)
		}
	}
	slices.Sort(a.Supported)
	a.Digest, err = t.digest()
	return a, err
}

// deciders are the parts that decide what a compile, a fatbin and a link give.
var deciders = []string{"nvcc", "cicc", "ptxas", "fatbinary", "libdevice", "crt headers", "runtime headers", "libcudart_static.a"}

// identity is path, size and mtime of each decider behind all links.
func (t Toolkit) identity() (string, error) {
	var out []string
	for _, name := range deciders {
		path := t.Parts[name]
		if path == "" {
			out = append(out, name+" missing")
			continue
		}
		id, err := toolchain.Identity(path)
		if err != nil {
			return "", err
		}
		out = append(out, id)
	}
	return strings.Join(out, "; "), nil
}

// digest is of the content of the deciders: the same compiler at another place is the same.
func (t Toolkit) digest() (string, error) {
	sum := sha256.New()
	for _, name := range deciders {
		path := t.Parts[name]
		_, _ = io.WriteString(sum, name+"\n")
		if path == "" {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, f)
		_ = f.Close()
		if err != nil {
			return "", err
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
