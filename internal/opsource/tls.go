package opsource

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Build scripts of operator trees fetch archives with the certificate check
// off. In the copy it is on: whoever needs such an archive from a place that
// nobody vouches for passes it with --third-party.

// unverified are the ways in which cmake, git and wget are told not to check.
var unverified = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`(?i)\b(TLS_VERIFY\s+)(?:"(?:OFF|0|FALSE|NO)"|(?:OFF|0|FALSE|NO)\b)`), "${1}ON"},
	{regexp.MustCompile(`(?i)\b(CMAKE_TLS_VERIFY(?:\s*=\s*|\s+))(?:"(?:OFF|0|FALSE|NO)"|(?:OFF|0|FALSE|NO)\b)`), "${1}1"},
	{regexp.MustCompile(`(?i)\b(http\.sslVerify\s*[= ]\s*)(?:"(?:false|0|off|no)"|(?:false|0|off|no)\b)`), "${1}true"},
	{regexp.MustCompile(`\b(GIT_SSL_NO_VERIFY)=\S+`), "${1}="},
	{regexp.MustCompile(`(\bwget\b[^\n|;&]*?)\s--no-check-certificate\b`), "${1}"},
	{regexp.MustCompile(`(\bcurl\b[^\n|;&]*?)\s(?:--insecure|-k)\b`), "${1}"},
	{regexp.MustCompile(`(\bcurl\b[^\n|;&]*?\s-[a-jl-zA-Z]+)k([a-zA-Z]*)\b`), "${1}${2}"},
	{regexp.MustCompile(`(\bcurl\b[^\n|;&]*?\s-)k([a-zA-Z]+)\b`), "${1}${2}"},
}

// verifyTLS switches the check on in the scripts below dir and lists those
// that it changed.
func verifyTLS(dir string) ([]string, error) {
	var changed []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !isScript(d.Name()) {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		text := checked(string(b))
		if text == string(b) {
			return nil
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		changed = append(changed, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(p, []byte(text), info.Mode().Perm())
	})
	slices.Sort(changed)
	return changed, err
}

func isScript(name string) bool {
	switch filepath.Ext(name) {
	case ".cmake", ".sh", ".bash", ".mk":
		return true
	}
	return name == "CMakeLists.txt" || strings.HasPrefix(name, "Makefile")
}

// checked is a script that checks certificates.
func checked(text string) string {
	for _, u := range unverified {
		text = u.find.ReplaceAllString(text, u.put)
	}
	return text
}
