package vllmascend

import (
	"bufio"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/python"
)

// ownVendor is the vendor that vllm-ascend puts first in ASCEND_CUSTOM_OPP_PATH
// when it starts, below its package.
const ownVendor = "_cann_ops_custom/vendors/custom_transformer"

// Vendor is the folder of that vendor below the package at dir, "" when it was
// built without operators of its own.
func Vendor(dir string) string {
	v := filepath.Join(dir, filepath.FromSlash(ownVendor))
	if st, err := os.Stat(v); dir == "" || err != nil || !st.IsDir() {
		return ""
	}
	return v
}

// Package is the folder of the package vllm_ascend that py would import, ""
// without one. Editable installs are followed: by what pip and uv note of
// them, and by .pth files that name a folder.
func Package(py python.Python) string {
	for _, dir := range py.Paths {
		for _, root := range append([]string{dir}, linked(dir)...) {
			p := filepath.Join(root, "vllm_ascend")
			if _, err := os.Stat(filepath.Join(p, "__init__.py")); err == nil {
				return p
			}
		}
	}
	return ""
}

// linked are the folders beside the site directory dir that editable installs
// of vllm-ascend and .pth files lead to.
func linked(dir string) []string {
	var out []string
	notes, _ := filepath.Glob(filepath.Join(dir, "*.dist-info", "direct_url.json"))
	for _, n := range notes {
		name, _, _ := strings.Cut(filepath.Base(filepath.Dir(n)), "-")
		if python.Normalize(name) != Dist {
			continue
		}
		if root := editable(n); root != "" {
			out = append(out, root)
		}
	}
	pths, _ := filepath.Glob(filepath.Join(dir, "*.pth"))
	for _, p := range pths {
		out = append(out, folders(dir, p)...)
	}
	return out
}

// editable is the source tree that a direct_url.json (PEP 610) names.
func editable(file string) string {
	b, err := os.ReadFile(file)
	var note struct {
		URL string `json:"url"`
		Dir struct {
			Editable bool `json:"editable"`
		} `json:"dir_info"`
	}
	if err != nil || json.Unmarshal(b, &note) != nil || !note.Dir.Editable {
		return ""
	}
	u, err := url.Parse(note.URL)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return filepath.FromSlash(u.Path)
}

// folders are the lines of a .pth file that are no code.
func folders(dir, pth string) []string {
	f, err := os.Open(pth)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t") {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		out = append(out, line)
	}
	return out
}
