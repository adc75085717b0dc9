package proof

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/fatbin"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/sass"
)

// limit bounds one disassembly; a large kernel takes about a second.
const limit = 5 * time.Minute

// Tools read machine code.
type Tools struct {
	Runner    run.Runner
	Env       []string
	Cuobjdump string
	Nvdisasm  string
}

// Make proves the fatbins of spec, whose files lie below dir.
func Make(ctx context.Context, dir string, spec Spec, t Tools) (Proof, error) {
	p := Proof{Toolkit: spec.Toolkit, Compiler: spec.Compiler, Contract: spec.Contract, Arches: spec.Arches}
	t.Cuobjdump, t.Nvdisasm = spec.Cuobjdump, spec.Nvdisasm
	for _, f := range spec.Fatbins {
		images, err := contents(filepath.Join(dir, f.File))
		if err != nil {
			return p, err
		}
		if err := complete(dir, f, images); err != nil {
			return p, err
		}
		for _, i := range images {
			found, err := t.Image(ctx, f.Source, i)
			if err != nil {
				return p, err
			}
			p.Images = append(p.Images, found)
		}
	}
	return p, nil
}

func contents(file string) ([]fatbin.Image, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := fatbin.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%s: %d fatbins, want one", filepath.Base(file), len(all))
	}
	return all[0], nil
}

// complete wants exactly the images that were asked for, each with the content
// of its file: machine code byte for byte; fatbinary pads PTX with zeros.
func complete(dir string, f Fatbin, images []fatbin.Image) error {
	var want, got []string
	for _, i := range f.Images {
		want = append(want, i.Arch)
	}
	for _, i := range images {
		got = append(got, i.Arch)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return report.Problemf(report.BuildFailed, "static proof: the fatbin of %s does not hold what was asked for", f.Source).
			WithWant(strings.Join(want, ", ")+" and nothing else", strings.Join(got, ", "))
	}
	for _, i := range images {
		k := slices.IndexFunc(f.Images, func(x Image) bool { return x.Arch == i.Arch })
		b, err := os.ReadFile(filepath.Join(dir, f.Images[k].File))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		if i.Kind == fatbin.ELF && hex.EncodeToString(sum[:]) != i.SHA256 {
			return report.Problemf(report.BuildFailed, "static proof: %s of %s in the fatbin is not the file that was compiled", i.Arch, f.Source).
				WithWant("sha256 "+hex.EncodeToString(sum[:]), i.SHA256)
		}
	}
	return nil
}

// Image disassembles one image and judges it.
func (t Tools) Image(ctx context.Context, source string, i fatbin.Image) (Found, error) {
	out := Found{Source: source, Arch: i.Arch, SHA256: i.SHA256}
	if i.Compressed {
		return out, fmt.Errorf("%s of %s is compressed and cannot be looked into", i.Arch, source)
	}
	if i.Kind == fatbin.PTX {
		code, err := sass.ScanPTX(bytes.NewReader(i.Data))
		if err != nil {
			return out, fmt.Errorf("%s of %s: %w", i.Arch, source, err)
		}
		return out, out.join(source, code, nil)
	}
	file, err := os.CreateTemp("", "invar-*.cubin")
	if err != nil {
		return out, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(i.Data)
	if err = errors.Join(err, file.Close()); err != nil {
		return out, err
	}
	text, err := t.output(ctx, t.Nvdisasm, "-c", file.Name())
	if err != nil {
		return out, err
	}
	code, err := sass.Scan(bytes.NewReader(text))
	if err != nil {
		return out, fmt.Errorf("%s of %s: %w", i.Arch, source, err)
	}
	text, err = t.output(ctx, t.Cuobjdump, "--dump-resource-usage", file.Name())
	if err != nil {
		return out, err
	}
	usage, err := sass.ParseUsage(bytes.NewReader(text))
	if err != nil {
		return out, err
	}
	return out, out.join(source, code, usage)
}

func (f *Found) join(source string, code sass.Code, usage map[string]sass.Usage) error {
	for _, k := range code.Kernels {
		u, ok := usage[k.Name]
		if usage != nil && !ok {
			return fmt.Errorf("%s of %s: no resource usage of kernel %s", f.Arch, source, k.Name)
		}
		f.Kernels = append(f.Kernels, Kernel{k, u})
	}
	slices.SortFunc(f.Kernels, func(a, b Kernel) int { return strings.Compare(a.Name, b.Name) })
	if len(code.Faults) > 0 {
		return forbidden(source, f.Arch, code.Faults)
	}
	return nil
}

// output is all that a tool prints: a disassembly is longer than what run keeps of a stream.
func (t Tools) output(ctx context.Context, argv ...string) ([]byte, error) {
	var b bytes.Buffer
	res, err := t.Runner.Run(ctx, run.Cmd{Argv: argv, Env: t.Env, Output: &b, Timeout: limit})
	if err != nil {
		return nil, err
	}
	if len(res.Stderr) > 0 { // both streams went into b
		return nil, fmt.Errorf("%s said: %s", filepath.Base(argv[0]), strings.TrimSpace(string(res.Stderr)))
	}
	return b.Bytes(), nil
}
