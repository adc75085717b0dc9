package vllm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/version"
	"github.com/invar-ops/invar/scripts"
)

func (v Version) environment(ctx context.Context, o Options, dir, env string) error {
	base, err := v.base(ctx, o)
	if err != nil {
		return err
	}
	step := o.Progress.Start(stage, "environment with vLLM "+v.Version+" ("+v.Download+")", -1)
	// The old one is of no use any more, and half a new one must not look whole.
	if err := errors.Join(os.RemoveAll(env), os.RemoveAll(filepath.Join(dir, marker))); err != nil {
		step.Fail(err)
		return err
	}
	o.Runner = python.Watched(o.Runner, step)
	if err := v.install(ctx, o, base, dir, env); err != nil {
		_ = os.RemoveAll(env)
		step.Fail(err)
		return err
	}
	step.Done(env)
	return nil
}

func (v Version) base(ctx context.Context, o Options) (python.Python, error) {
	opts := python.Options{Env: o.Env, Home: o.Prefix, Runner: o.Runner}
	base, seen, err := python.Base(ctx, opts, 11)
	if err != nil {
		return base, err
	}
	if base.Exe == "" || !version.Within(version.PEP440, v.Python, base.Version) {
		got := []string{base.Version}
		for _, c := range seen {
			got = append(got, c.Exe+" ("+c.Reason+")")
		}
		return base, report.Problemf(report.Unmet, "no Python for vLLM %s on PATH", v.Version).
			WithWant("Python "+v.Python, strings.TrimSpace(strings.Join(got, " "))).WithHint("install one, for example: uv python install 3.12")
	}
	return base, nil
}

func (v Version) install(ctx context.Context, o Options, base python.Python, dir, env string) error {
	lock := filepath.Join(dir, v.Lock)
	if err := store.WriteFile(lock, v.lock, 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(o.LogDir, 0o755); err != nil {
		return err
	}
	log := filepath.Join(o.LogDir, "setup-vllm-"+v.Version+".log")
	for _, argv := range commands(o, base.Exe, env, lock) {
		if _, err := o.Runner.Run(ctx, run.Cmd{Argv: argv, Env: o.Env, Log: log}); err != nil {
			p := report.Problemf(report.BuildFailed, "environment with vLLM %s: %w", v.Version, err)
			p.Log = log
			if re, ok := errors.AsType[*run.Error](err); ok {
				p.Tail = re.Tail(12)
			}
			return p.WithHint("every package is pinned in %s; a package index has to serve them", lock)
		}
	}
	return v.repair(env)
}

// commands make the environment. The lock names every package, so nothing is
// resolved: what vLLM's metadata asks of torch does not count.
func commands(o Options, base, env, lock string) [][]string {
	py := filepath.Join(env, "bin", "python")
	if run.Has("uv", o.Env) {
		install := []string{"uv", "pip", "install", "--quiet", "--python", py, "--no-deps", "-r", lock}
		if o.Offline {
			install = append(install, "--offline")
		}
		return [][]string{{"uv", "venv", "--quiet", "--python", base, env}, install}
	}
	install := []string{py, "-m", "pip", "install", "--no-input", "--no-deps", "-r", lock}
	if o.Offline {
		install = append(install, "--no-index")
	}
	return [][]string{{base, "-m", "venv", env}, install}
}

// repair adds the metadata that vLLM looks for and its CPU build lacks. Entry
// points stay with the distribution that was installed: twice is once too often.
func (v Version) repair(env string) error {
	if v.Repair.Name == "" {
		return nil
	}
	py, ok := python.Inspect(filepath.Join(env, "bin", "python"))
	if !ok || !py.HasTorch() {
		return report.Problemf(report.Failed, "the environment %s holds no torch after its installation", env)
	}
	info := filepath.Join(py.Purelib, v.Repair.Name+"-"+v.Version+".dist-info")
	if _, err := os.Stat(info); err == nil {
		return nil
	}
	if err := os.MkdirAll(info, 0o755); err != nil {
		return err
	}
	name := filepath.Base(info)
	return errors.Join(
		os.WriteFile(filepath.Join(info, "METADATA"), fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", v.Repair.Name, v.Repair.Version), 0o644),
		os.WriteFile(filepath.Join(info, "INSTALLER"), []byte("invar\n"), 0o644),
		os.WriteFile(filepath.Join(info, "RECORD"), fmt.Appendf(nil, "%[1]s/INSTALLER,,\n%[1]s/METADATA,,\n%[1]s/RECORD,,\n", name), 0o644),
	)
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// unpack writes the Python scripts to a folder that the caller removes.
func unpack() (string, error) {
	dir, err := os.MkdirTemp("", "invar-setup-*")
	if err != nil {
		return "", err
	}
	return dir, scripts.Unpack(dir)
}

// Preview is what Setup would give, without making anything.
func Preview(o Options) (Place, error) {
	v, err := Find(o.Version)
	if err != nil {
		return Place{}, err
	}
	models, err := v.chosen(o.Models)
	if err != nil {
		return Place{}, err
	}
	place := v.place(o.Prefix)
	old, err := Installed(o.Prefix, v.Version)
	place.UpToDate = err == nil && old.Fingerprint == place.Fingerprint
	for _, m := range models {
		place.Models[m.Name] = m.dir(place)
		place.UpToDate = place.UpToDate && m.there(place)
	}
	return place, nil
}

func (v Version) place(prefix string) Place {
	p := Place{Version: v.Version, Dir: Dir(prefix, v.Version), Models: map[string]string{}, Dtypes: map[string]string{}, Serve: v.Serve, Fingerprint: v.fingerprint()}
	for _, m := range v.Models {
		p.Dtypes[m.Name] = m.Dtype
	}
	p.Python, p.Command = filepath.Join(p.env(), "bin", "python"), filepath.Join(p.env(), "bin", "vllm")
	return p
}

func (p Place) env() string { return filepath.Join(p.Dir, "env") }
