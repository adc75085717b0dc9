package probe

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/wheel"
)

// record compares the wheel's RECORD with the files in both directions: pip and
// importlib.metadata believe it.
func (p *prober) record() report.Check {
	const name, want = "RECORD", "the files of the wheel, each with size and sha256"
	site := filepath.Join(p.receipt.Dir(), "site")
	found := p.Root.Glob(filepath.Join(site, "*.dist-info", "RECORD"))
	if len(found) != 1 {
		return check(Files, name, false, "one dist-info/RECORD in "+site, fmt.Sprint(len(found)))
	}
	b, err := p.Root.ReadFile(found[0])
	if err != nil {
		return check(Files, name, false, want, err.Error())
	}
	entries, err := wheel.ParseRecord(b)
	if err != nil {
		return check(Files, name, false, want, err.Error())
	}
	var wrong, listed []string
	for _, e := range entries {
		listed = append(listed, e.Path)
		if text := p.compareEntry(site, e); text != "" {
			wrong = append(wrong, text)
		}
	}
	for _, f := range p.receipt.Files {
		if rel, ok := strings.CutPrefix(f.Path, "site/"); ok && !slices.Contains(listed, rel) {
			wrong = append(wrong, rel+": installed, but not in RECORD")
		}
	}
	c := check(Files, name, len(wrong) == 0, want, firstNonEmpty(strings.Join(wrong, "\n"), fmt.Sprintf("%d files", len(entries))))
	c.Hint = hintUnless(c, "install it again: invar build")
	return c
}

// compareEntry says how a file differs from its line; "" when it does not.
// RECORD itself has no digest there.
func (p *prober) compareEntry(site string, e wheel.Entry) string {
	path := filepath.Join(site, filepath.FromSlash(e.Path))
	if !p.Root.IsFile(path) {
		return fmt.Sprintf("%s: no such file", e.Path)
	}
	host, err := p.Root.Host(path)
	if err != nil {
		return fmt.Sprintf("%s: %v", e.Path, err)
	}
	sum, size, err := store.Digest(context.Background(), host) // small files
	if err != nil {
		return fmt.Sprintf("%s: %v", e.Path, err)
	}
	if e.Digest == "" && strings.HasSuffix(e.Path, ".dist-info/RECORD") {
		return ""
	}
	raw, _ := hex.DecodeString(sum)
	digest := "sha256=" + base64.RawURLEncoding.EncodeToString(raw)
	if size != e.Size || digest != e.Digest {
		return fmt.Sprintf("%s: %d bytes, %.20s; RECORD says %d bytes, %.20s", e.Path, size, digest, e.Size, e.Digest)
	}
	return ""
}
