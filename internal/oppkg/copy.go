package oppkg

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// parts are the folders that install scripts of this kind copy, in their order.
var parts = []string{"framework", "op_proto", "op_impl", "op_api"}

// Copy puts the package below the folder to as its own script would, without
// running any of it: the same files, links and modes.
func (p Package) Copy(to, arch string) error {
	dst := filepath.Join(to, "vendors", p.Vendor)
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return err
	}
	for _, part := range parts {
		from := filepath.Join(p.source(), part)
		if st, err := os.Stat(from); err != nil || !st.IsDir() {
			continue
		}
		if err := p.copyPart(from, filepath.Join(dst, part), arch); err != nil {
			return err
		}
	}
	for from, at := range map[string]string{"version.info": "version.info", "custom.proto": "framework/caffe/custom.proto"} {
		err := copyFile(filepath.Join(p.source(), from), filepath.Join(dst, at))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return p.environment(dst)
}

// environment writes bin/set_env.bash, with the absolute paths that it always has.
func (p Package) environment(dst string) error {
	bin := filepath.Join(dst, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("#!/bin/bash\nexport ASCEND_CUSTOM_OPP_PATH=%[1]s:${ASCEND_CUSTOM_OPP_PATH}\nexport LD_LIBRARY_PATH=%[1]s/op_api/lib/:${LD_LIBRARY_PATH}\n", dst)
	return os.WriteFile(filepath.Join(bin, "set_env.bash"), []byte(text), 0o644)
}

// copyPart copies one part. The link to the tiling library of another machine
// is left out, as the script does.
func (p Package) copyPart(from, to, arch string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(dst, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			tiling := filepath.Join(from, "ai_core/tbe/op_tiling")
			if path == filepath.Join(tiling, "liboptiling.so") && !isDir(filepath.Join(tiling, "lib/linux", arch)) {
				return nil
			}
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, dst)
		}
		if err := copyFile(path, dst); err != nil {
			return err
		}
		if strings.HasPrefix(filepath.ToSlash(rel), "cpu/aicpu_kernel/impl/") && filepath.Base(from) == "op_impl" {
			return os.Chmod(dst, 0o440)
		}
		return nil
	})
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, st.Mode().Perm()&^0o022)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
