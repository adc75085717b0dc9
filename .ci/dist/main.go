// Command dist writes what a release of invar consists of: static binaries for
// linux on amd64 and arm64, deb and rpm packages with the manual page and the
// completions, a CycloneDX bill of materials for each binary, and SHA256SUMS.
// A second run on the same commit writes the same bytes.
//
//	go run -C .ci/dist . [-out DIR] [-dirty]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// arches are the machines that invar is released for, in Go's words.
var arches = []string{"amd64", "arm64"}

func main() {
	out := flag.String("out", "dist", "folder for the files, relative to the repository")
	dirty := flag.Bool("dirty", false, "allow a working tree with changes; the version says so")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "dist: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := dist(*out, *dirty); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// dist writes into a scratch folder beside out first and moves the finished
// files: a run that failed leaves the files of the last good one.
func dist(out string, allowDirty bool) error {
	r, err := readRepository()
	if err != nil {
		return err
	}
	if r.dirty != "" && !allowDirty {
		return fmt.Errorf("the working tree has changes (%s), a release is made from a commit; commit them or pass -dirty", r.dirty)
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join(r.root, out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(out, ".dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	var files []string
	for _, arch := range arches {
		made, err := release(r, arch, scratch)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		files = append(files, made...)
	}
	sums, err := writeSums(scratch, files)
	if err != nil {
		return err
	}
	for _, name := range append(files, sums) {
		if err := os.Rename(filepath.Join(scratch, name), filepath.Join(out, name)); err != nil {
			return err
		}
		fmt.Println(filepath.Join(out, name))
	}
	return nil
}

// release writes the files of one architecture into dir and names them.
func release(r repository, arch, dir string) ([]string, error) {
	stage := filepath.Join(dir, "stage-"+arch)
	if err := os.Mkdir(stage, 0o755); err != nil {
		return nil, err
	}
	bin := filepath.Join(stage, "invar")
	if err := r.compile(arch, bin); err != nil {
		return nil, err
	}
	version, err := r.stage(stage, bin)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("invar_%s_linux_%s", version, arch)
	if err := os.Link(bin, filepath.Join(dir, name)); err != nil {
		return nil, err
	}
	sbom := name + ".cdx.json"
	if err := writeSBOM(bin, version, filepath.Join(dir, sbom)); err != nil {
		return nil, err
	}
	if err := os.Link(filepath.Join(dir, sbom), filepath.Join(stage, sbom)); err != nil {
		return nil, err
	}
	packages, err := r.writePackages(arch, version, stage, sbom, dir)
	return append([]string{name, sbom}, packages...), err
}
