package runpkg

import (
	"bytes"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// A mark is how a kind of file begins.
type mark struct {
	at     int
	bytes  string
	what   string
	hint   string
	nocase bool
}

const (
	askAgain  = "download it again; the address or a login may be wrong, or a proxy answered"
	notTheRun = "look for the .run file: it may be inside, or beside it"
)

// marks are what people really have under the name of a run package. The
// order matters: the first that fits names the file.
var marks = []mark{
	{0, "<!doctype html", "an HTML page", askAgain, true},
	{0, "<html", "an HTML page", askAgain, true},
	{0, "<head", "an HTML page", askAgain, true},
	{0, "<?xml", "an XML document, such as the error of an object store", askAgain, true},
	{0, "<error", "the XML error of an object store", askAgain, true},
	{0, "{", "a JSON document, such as the error of a server", askAgain, false},
	{0, "version https://git-lfs.github.com/", "a Git LFS pointer", "run git lfs pull", false},
	{0, "HTTP/", "an HTTP response with its headers", askAgain, false},
	{0, "PK\x03\x04", "a zip archive (or a wheel)", notTheRun, false},
	{0, "\x7fELF", "an ELF program or library", notTheRun, false},
	{0, "MZ", "a Windows program", notTheRun, false},
	{0, "!<arch>\ndebian", "a Debian package", notTheRun, false},
	{0, "!<arch>", "an ar archive", notTheRun, false},
	{0, "\xed\xab\xee\xdb", "an RPM package", notTheRun, false},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive", notTheRun, false},
	{0, "Rar!", "a RAR archive", notTheRun, false},
	{0, "%PDF", "a PDF document", askAgain, false},
	{0, "\xef\xbb\xbf#!", "a script with a byte order mark in front", "an editor or a transfer changed it: download it again in binary mode", false},
	{257, "ustar", "a tar archive without an installer in front", notTheRun, false},
}

// sniff names what a file is that is no script.
func sniff(name string, head []byte) error {
	text := bytes.TrimLeft(head, " \t\r\n")
	for _, m := range marks {
		from := head
		if m.at == 0 && m.bytes[0] < 0x7f {
			from = text // servers send blank lines before a page
		}
		if m.matches(from) {
			return notPackage(name, m.what, m.hint)
		}
	}
	if c, ok := magic(head); ok {
		return notPackage(name, string(c)+" compressed data without an installer in front", notTheRun)
	}
	if len(bytes.Trim(head, "\x00")) == 0 {
		return notPackage(name, "a file that starts with zeros, as a broken download leaves it", askAgain)
	}
	return notPackage(name, "a file that starts with "+preview(head), "check that it is the right file")
}

func (m mark) matches(head []byte) bool {
	if len(head) < m.at+len(m.bytes) {
		return false
	}
	got := string(head[m.at : m.at+len(m.bytes)])
	return got == m.bytes || m.nocase && strings.EqualFold(got, m.bytes)
}

func notPackage(name, what, hint string) error {
	return report.Problemf(report.Failed, "%s is not a run package", name).
		WithWant("a shell script followed by an archive", what).WithHint("%s", hint)
}

// preview shows the start of a file as text that is safe on a terminal.
func preview(head []byte) string {
	head = head[:min(len(head), 24)]
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range head {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			const hexDigits = "0123456789abcdef"
			b.WriteString(`\x`)
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
			continue
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
	return b.String()
}
