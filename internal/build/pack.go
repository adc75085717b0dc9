package build

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/wheel"
)

func (b *Builder) pack(ctx context.Context, s plan.Step) error {
	spec, ok := s.Spec.(plan.PackSpec)
	if !ok {
		return errSpec
	}
	_, err := WriteRunPackage(ctx, b.work, spec, filepath.Join(b.work, "dist"))
	return err
}

// WriteRunPackage writes the run package that spec describes from the files
// below work into dir and returns what it wrote.
func WriteRunPackage(ctx context.Context, work string, spec plan.PackSpec, dir string) (runpkg.Result, error) {
	tree, err := os.MkdirTemp(work, "tree-")
	if err != nil {
		return runpkg.Result{}, err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	for _, f := range spec.Files {
		if err := link(filepath.Join(work, f.From), filepath.Join(tree, f.To)); err != nil {
			return runpkg.Result{}, err
		}
	}
	target, err := json.Marshal(spec.Target)
	if err != nil {
		return runpkg.Result{}, err
	}
	extra := map[string]json.RawMessage{"target": target}
	if spec.Proof != "" {
		if extra["cuda"], err = os.ReadFile(filepath.Join(work, spec.Proof)); err != nil {
			return runpkg.Result{}, err
		}
	}
	return runpkg.Write(ctx, filepath.Join(dir, runpkg.FileName(spec.Name, spec.Version, spec.Platform)), runpkg.Spec{
		Manifest: runpkg.Manifest{
			Name: spec.Name, Version: spec.Version, Platform: spec.Platform, Contract: spec.Contract,
			Operators: spec.Operators, ISALevels: spec.Levels, Compiler: spec.Compiler, SourceDigest: spec.SourceDigest,
			Extra: extra,
		},
		Tree: os.DirFS(tree),
	})
}

func (b *Builder) wheel(ctx context.Context, s plan.Step) ([]string, error) {
	spec, ok := s.Spec.(plan.WheelSpec)
	if !ok {
		return nil, errSpec
	}
	w, err := WriteWheel(ctx, b.work, spec, filepath.Join(b.work, "dist"))
	if err != nil {
		return nil, err
	}
	return []string{"dist/" + w.Name}, nil
}

// WriteWheel writes the wheel that spec describes from the files below work
// into dir. Its platform tag is what the library really needs.
func WriteWheel(ctx context.Context, work string, spec plan.WheelSpec, dir string) (wheel.Built, error) {
	root := os.DirFS(work)
	project, err := wheel.ReadProject(root, spec.Project)
	if err != nil {
		return wheel.Built{}, err
	}
	var layers []wheel.Layer
	var libraries []*elffile.File
	for _, f := range spec.Files {
		layers = append(layers, wheel.Layer{FS: root, From: f.From, To: f.To})
		if !strings.HasSuffix(f.To, ".so") {
			continue
		}
		elf, err := elffile.Read(filepath.Join(work, f.From))
		if err != nil {
			return wheel.Built{}, err
		}
		libraries = append(libraries, elf)
	}
	// torch brings its own libraries; a wheel that depends on torch may name them.
	platform, err := wheel.PlatformOf(libraries, "libtorch_cpu.so", "libtorch_cuda.so", "libtorch.so", "libc10.so", "libc10_cuda.so")
	if err != nil {
		return wheel.Built{}, err
	}
	return wheel.Write(ctx, dir, project, layers, wheel.Tag{Python: "py3", ABI: "none", Platform: platform.Tag})
}
