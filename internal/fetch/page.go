package fetch

import (
	"bytes"
	"fmt"
	"html"
	"mime"
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

var (
	titleRE = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	codeRE  = regexp.MustCompile(`(?is)<Code>(.*?)</Code>`)
	pageRE  = regexp.MustCompile(`(?i)^(<!doctype\s+html|<html|<head|<body|<!--|<script)`)
	xmlRE   = regexp.MustCompile(`(?i)^(<\?xml|<error)`)
)

// pageError recognises an error page that came in the place of a file, by its
// first bytes: servers send them with status 200 and any type.
func pageError(from, contentType string, head []byte) error {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	what := ""
	switch {
	case pageRE.Match(text):
		what = "an HTML page" + quoted(titleRE, head)
	case xmlRE.Match(text):
		what = "an XML document" + quoted(codeRE, head)
	case len(text) > 0 && text[0] == '{' && isType(contentType, "application/json"):
		what = "a JSON document"
	case bytes.HasPrefix(text, []byte("version https://git-lfs")):
		what = "a Git LFS pointer"
	default:
		return nil
	}
	return report.Problemf(report.Failed, "%s answered with %s", from, what).
		WithWant("a file", what).
		WithHint("the address is wrong, a login is needed, or a proxy answered; open it in a browser, or name a mirror: --mirror")
}

func isType(contentType, want string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && t == want
}

func quoted(re *regexp.Regexp, head []byte) string {
	m := re.FindSubmatch(head)
	if m == nil {
		return ""
	}
	return fmt.Sprintf(" (%q)", strings.Join(strings.Fields(html.UnescapeString(string(m[1]))), " "))
}

func wrongSize(item Item, got int64, from string) error {
	p := report.Problemf(report.Failed, "%s from %s has another size", item.Name, from).
		WithWant(fmt.Sprintf("%d bytes", item.Size), fmt.Sprintf("%d bytes", got))
	if got < item.Size {
		p.Err = fmt.Errorf("%s from %s is cut short", item.Name, from)
		p.Hint = "fetch it again, or from another mirror"
		return p
	}
	return p.WithHint("the name is known, the content is new: see --accept-digest")
}

func wrongContent(item Item, got, from string) error {
	return report.Problemf(report.Failed, "%s from %s is not the content that is pinned", item.Name, from).
		WithWant("sha256 "+strings.Join(item.Pins, " or "), "sha256 "+got).
		WithHint("the name is known, the content is another one. If it was published anew and you trust it: --accept-digest sha256:%s", got)
}
