package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

//go:embed nfpm.yaml
var nfpmConfig string

// writePackages writes the deb and the rpm of one architecture.
func (r repository) writePackages(arch, version, stage, sbom, dir string) ([]string, error) {
	values := map[string]string{
		"ARCH": arch, "VERSION": version, "STAGE": stage, "SBOM": sbom,
	}
	config, err := nfpm.ParseWithEnvMapping(strings.NewReader(nfpmConfig), func(name string) string { return values[name] })
	if err != nil {
		return nil, fmt.Errorf("nfpm.yaml: %w", err)
	}
	var names []string
	for _, kind := range []string{"deb", "rpm"} {
		info, err := config.Get(kind)
		if err != nil {
			return nil, err
		}
		info.MTime = r.time
		info = nfpm.WithDefaults(info)
		info.RPM.BuildHost = "localhost" // else the name of this machine
		for _, c := range info.Contents {
			if c.FileInfo != nil {
				c.FileInfo.MTime = r.time
			}
		}
		packager, err := nfpm.Get(kind)
		if err != nil {
			return nil, err
		}
		name := packager.ConventionalFileName(info)
		if err := writeFile(filepath.Join(dir, name), func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// writeSums writes SHA256SUMS in the form that sha256sum --check reads.
func writeSums(dir string, files []string) (string, error) {
	files = slices.Sorted(slices.Values(files))
	return "SHA256SUMS", writeFile(filepath.Join(dir, "SHA256SUMS"), func(w io.Writer) error {
		for _, name := range files {
			sum, err := digest(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s  %s\n", sum, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func writeFile(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
