// Package vllm makes what a comparison on a real vLLM server needs: a Python
// environment with vLLM for the CPU, pinned to the last package, and small
// models of random weights. It starts no server and changes nothing outside
// its own folder below the prefix.
package vllm

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/targets"
)

// Newest is the version that is made when none is named.
const Newest = "0.32.0"

// A Version is what is known about one release of vLLM on the CPU.
type Version struct {
	Version  string   `yaml:"version"`
	Lock     string   `yaml:"lock"`     // requirements file beside the YAML file, every package pinned
	Python   string   `yaml:"python"`   // range of interpreters, ">= 3.11, < 3.15"
	Download string   `yaml:"download"` // how large it is, for people
	Repair   Repair   `yaml:"repair"`
	Serve    Serve    `yaml:"serve"`
	Models   []Model  `yaml:"models"`
	Sources  []Source `yaml:"sources"`

	lock []byte
}

// A Repair is a distribution whose metadata has to be added by hand.
type Repair struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"`
}

// Serve is how a server has to be started so that what depends on the batch
// can be seen at all.
type Serve struct {
	Arguments   []string          `yaml:"arguments" json:"arguments"`
	Environment map[string]string `yaml:"environment" json:"environment"`
}

// A Model is one Llama of random weights. The JSON form is what the script
// that makes it reads.
type Model struct {
	Name         string `yaml:"name" json:"-"`
	Title        string `yaml:"title" json:"-"`
	SHA256       string `yaml:"sha256" json:"-"` // of model.safetensors
	Dtype        string `yaml:"dtype" json:"dtype"`
	Seed         int64  `yaml:"seed" json:"seed"`
	Hidden       int    `yaml:"hidden" json:"hidden"`
	Intermediate int    `yaml:"intermediate" json:"intermediate"`
	Layers       int    `yaml:"layers" json:"layers"`
	Heads        int    `yaml:"heads" json:"heads"`
	KVHeads      int    `yaml:"kv_heads" json:"kv_heads"`
	Positions    int    `yaml:"positions" json:"positions"`
}

// A Source says where facts come from.
type Source struct {
	Fact string `yaml:"fact"`
	From string `yaml:"from"`
}

// Find is what is known about version.
func Find(version string) (Version, error) {
	files, err := fs.Glob(targets.FS, "vllm/*.yaml")
	if err != nil {
		return Version{}, err
	}
	var known []string
	for _, f := range files {
		name := strings.TrimSuffix(path.Base(f), ".yaml")
		if name == version {
			return load(f)
		}
		known = append(known, name)
	}
	return Version{}, report.Usagef("vLLM %s: no environment of that version is known", version).
		WithWant("one of "+strings.Join(known, ", "), "")
}

func load(file string) (Version, error) {
	b, err := fs.ReadFile(targets.FS, file)
	if err != nil {
		return Version{}, err
	}
	v, err := decode("targets/"+file, b)
	if err != nil {
		return v, err
	}
	v.lock, err = fs.ReadFile(targets.FS, path.Join("vllm", v.Lock))
	return v, err
}

func decode(file string, b []byte) (Version, error) {
	var v Version
	if err := data.Decode(file, b, &v); err != nil {
		return v, err
	}
	if v.Version == "" || v.Lock == "" || v.Python == "" || len(v.Models) == 0 || len(v.Sources) == 0 {
		return v, fmt.Errorf("%s: version, lock, python, models and sources are needed", file)
	}
	for _, m := range v.Models {
		if m.Name == "" || len(m.SHA256) != 64 || m.Heads < 1 || m.Hidden%max(m.Heads, 1) != 0 || m.Heads%max(m.KVHeads, 1) != 0 {
			return v, fmt.Errorf("%s: model %q: name, sha256 and head counts that divide are needed", file, m.Name)
		}
	}
	return v, nil
}
