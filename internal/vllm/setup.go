package vllm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
)

// Options say where and how Setup works.
type Options struct {
	Prefix   string   // invar's home; everything goes below Prefix/vllm
	Version  string   // of vLLM; empty is Newest
	Models   []string // names; empty makes all
	Offline  bool     // use no network
	LogDir   string
	Env      []string
	Runner   run.Runner
	Progress report.Progress
}

// A Place is a finished setup, as its setup.json says.
type Place struct {
	Version     string            `json:"version"` // of vLLM
	Dir         string            `json:"dir"`
	Python      string            `json:"python"` // interpreter of the environment
	Command     string            `json:"command"`
	Models      map[string]string `json:"models"` // name to folder
	Dtypes      map[string]string `json:"dtypes"` // name to what --dtype needs: "auto" serves float32 as bfloat16
	Serve       Serve             `json:"serve"`
	Fingerprint string            `json:"fingerprint"`
	UpToDate    bool              `json:"up_to_date"` // nothing had to be made
}

// stage is the first word of progress lines.
const stage = "vllm"

// marker is written last: without it a folder is what an interrupted setup left.
const marker = "setup.json"

// Dir is the folder of one version below prefix.
func Dir(prefix, version string) string { return filepath.Join(prefix, "vllm", version) }

// Installed reads the finished setup of version below prefix.
func Installed(prefix, version string) (Place, error) {
	dir := Dir(prefix, version)
	b, err := os.ReadFile(filepath.Join(dir, marker))
	if errors.Is(err, fs.ErrNotExist) {
		return Place{}, report.Problemf(report.Unmet, "vLLM %s is not set up in %s", version, dir).
			WithHint("invar setup vllm --prefix %s", prefix)
	}
	if err != nil {
		return Place{}, err
	}
	var p Place
	if err := json.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("%s: %w", filepath.Join(dir, marker), err)
	}
	// How to serve is this program's knowledge, not that of the one that made the place.
	if v, err := Find(version); err == nil {
		now := v.place(prefix)
		p.Serve, p.Dtypes = now.Serve, now.Dtypes
	}
	return p, nil
}

// Setup makes the environment and the models that are not there yet.
func Setup(ctx context.Context, o Options) (Place, error) {
	v, err := Find(o.Version)
	if err != nil {
		return Place{}, err
	}
	models, err := v.chosen(o.Models)
	if err != nil {
		return Place{}, err
	}
	place := v.place(o.Prefix)
	place.UpToDate = true
	if err := os.MkdirAll(place.Dir, 0o755); err != nil {
		return place, store.Explain(err, "prefix "+o.Prefix)
	}
	lock, err := store.Acquire(ctx, place.Dir, store.LockOptions{Command: "invar setup vllm", Progress: o.Progress})
	if err != nil {
		return place, err
	}
	defer func() { _ = lock.Release() }()
	old, _ := Installed(o.Prefix, v.Version)
	if old.Fingerprint != place.Fingerprint || !isFile(place.Python) {
		place.UpToDate = false
		if err := v.environment(ctx, o, place.Dir, place.env()); err != nil {
			return place, err
		}
	} else {
		maps.Copy(place.Models, old.Models)
	}
	for _, m := range models {
		made, err := m.make(ctx, o, place)
		if err != nil {
			return place, err
		}
		place.Models[m.Name] = m.dir(place)
		place.UpToDate = place.UpToDate && !made
	}
	return place, place.save()
}

func (p Place) save() error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return store.WriteFile(filepath.Join(p.Dir, marker), append(b, '\n'), 0o644)
}

func (v Version) chosen(names []string) ([]Model, error) {
	if len(names) == 0 {
		return v.Models, nil
	}
	var known []string
	for _, m := range v.Models {
		known = append(known, m.Name)
	}
	var out []Model
	for _, n := range names {
		at := slices.Index(known, n)
		if at < 0 {
			return nil, report.Usagef("--model %s: unknown", n).WithWant(fmt.Sprintf("one of %q", known), n)
		}
		out = append(out, v.Models[at])
	}
	return out, nil
}

// fingerprint covers what the environment is made from.
func (v Version) fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n", v.Version, v.Repair.Name, v.Repair.Version)
	_, _ = h.Write(v.lock) // a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}
