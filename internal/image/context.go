package image

import (
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/docker"
	"github.com/invar-ops/invar/internal/report"
)

// writeContext fills dir with all that the Dockerfile of row copies: the invar
// binary at path, and install-packages. Times and modes are fixed, so that equal
// inputs make equal layers.
func writeContext(dir string, row Row, binary, platform string) error {
	if err := checkBinary(binary, platform); err != nil {
		return err
	}
	for to, from := range map[string]string{"Dockerfile": row.Dockerfile, "install-packages": "install-packages"} {
		b, err := fs.ReadFile(docker.FS, from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o755); err != nil {
			return err
		}
	}
	in, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(filepath.Join(dir, "invar"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	// The umask must not show in the image.
	for _, name := range []string{"invar", "install-packages"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

var machines = map[elf.Machine]string{elf.EM_X86_64: "linux/amd64", elf.EM_AARCH64: "linux/arm64"}

// checkBinary refuses an invar that cannot run in the image: one for another
// platform, or one that needs the C library of this host.
func checkBinary(path, platform string) error {
	f, err := elf.Open(path)
	if err != nil {
		return report.Problemf(report.Unmet, "the invar for the image: %w", err).
			WithWant("a static binary for "+platform, path).WithHint("mage dist writes them; name one with --binary")
	}
	defer func() { _ = f.Close() }()
	if got := machines[f.Machine]; got != platform {
		return report.Problemf(report.Unmet, "the invar for the image is for another platform").
			WithWant(platform, path+" for "+strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))).
			WithHint("mage dist writes binaries for every platform; name the one for %s with --binary", platform)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return report.Problemf(report.Unmet, "the invar for the image is not static").
				WithWant("a binary without a loader, which runs in every image", fmt.Sprintf("%s needs this host's C library", path)).
				WithHint("CGO_ENABLED=0 go build ./cmd/invar, or mage dist; name it with --binary")
		}
	}
	return nil
}
