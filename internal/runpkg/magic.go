package runpkg

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// magics are how compressed data begins. The payload itself decides how it is
// read; what the header says about it is only for messages.
var magics = []struct {
	codec Codec
	at    int
	bytes string
}{
	{Gzip, 0, "\x1f\x8b\x08"},
	{Zstd, 0, "\x28\xb5\x2f\xfd"},
	{Xz, 0, "\xfd7zXZ\x00"},
	{Bzip2, 0, "BZh"},
	{Lz4, 0, "\x04\x22\x4d\x18"},
	{None, 257, "ustar"},
}

// refused are codings that invar knows and does not open, with the reason.
var refused = []struct {
	bytes, what, hint string
}{
	{"Salted__", "encrypted with openssl", "extract it with its own installer and the passphrase"},
	{"-----BEGIN PGP", "encrypted with gpg", "extract it with its own installer and the key"},
	{"\x8c\x0d", "encrypted with gpg", "extract it with its own installer and the passphrase"},
	{"\x85\x01", "encrypted with gpg", "extract it with its own installer and the key"},
	{"\x85\x02", "encrypted with gpg", "extract it with its own installer and the key"},
	{"\x1f\x9d", "compressed with compress (LZW)", "pack it again with gzip or zstd"},
	{"\x89LZO\x00\r\n\x1a\n", "compressed with lzop", "pack it again with gzip or zstd"},
	{"BZ3v1", "compressed with bzip3", "pack it again with gzip or zstd"},
	{"]\x00\x00", "compressed with lzma (the format before xz)", "pack it again with xz or zstd"},
}

func magic(head []byte) (Codec, bool) {
	for _, m := range magics {
		if len(head) >= m.at+len(m.bytes) && string(head[m.at:m.at+len(m.bytes)]) == m.bytes {
			return m.codec, true
		}
	}
	return "", false
}

func (p *Package) findCodecs(text string, vars map[string]shellVar) error {
	says := ""
	if m := compression.FindStringSubmatch(text); m != nil {
		says = m[1]
	}
	for i := range p.Payloads {
		pl := &p.Payloads[i]
		head := make([]byte, min(pl.Size, 512))
		if _, err := p.src.ReadAt(head, pl.Offset); err != nil {
			return report.Problemf(report.Failed, "%s: %w", p.Path, err)
		}
		c, ok := magic(head)
		switch {
		case ok:
		case oldTar(head):
			c = None
		default:
			return p.cannotDecode(head, says, text, vars)
		}
		pl.Codec = c
	}
	p.Codec = p.Payloads[0].Codec
	return nil
}

// cannotDecode names what the payload is instead.
func (p *Package) cannotDecode(head []byte, says, text string, vars map[string]shellVar) error {
	what, hint := "", ""
	for _, r := range refused {
		if bytes.HasPrefix(head, []byte(r.bytes)) {
			what, hint = r.what, r.hint
			break
		}
	}
	cipher := ""
	if m := encryption.FindStringSubmatch(text); m != nil {
		cipher = m[1]
	}
	switch {
	case what != "":
	case cipher == "base64" || says == "base64" || base64Text(head):
		what, hint = "encoded in base64", "extract it with its own installer, or pack it again with gzip or zstd"
	case cipher == "gpg" || strings.HasPrefix(says, "gpg"):
		what, hint = "encrypted with gpg", "extract it with its own installer and the key"
	case cipher != "" || vars["decrypt_cmd"].value != "":
		what, hint = "encrypted with "+strings.TrimSpace(cipher+" "+vars["decrypt_cmd"].value), "extract it with its own installer and the passphrase"
	default:
		what, hint = "no archive that invar knows: it starts with "+preview(head), "the file is damaged, or packed with a tool that invar does not know"
		if says != "" {
			what += ", and the header says " + strconv.Quote(says)
		}
	}
	return report.Problemf(report.Failed, "%s cannot be opened: its payload is %s", p.Path, what).
		WithWant("gzip, zstd, xz, bzip2, lz4 or an uncompressed tar", what).WithHint("%s", hint)
}

// oldTar knows a tar without the word ustar (v7) by the checksum of its header.
func oldTar(head []byte) bool {
	const size, at, length = 512, 148, 8
	if len(head) < size {
		return false
	}
	field := strings.Trim(string(head[at:at+length]), " \x00")
	want, err := strconv.ParseInt(field, 8, 32)
	if err != nil {
		return false
	}
	sum := int64(0)
	for i, c := range head[:size] {
		if i >= at && i < at+length {
			c = ' '
		}
		sum += int64(c)
	}
	return sum == want
}

func base64Text(head []byte) bool {
	if len(head) < 64 {
		return false
	}
	for _, c := range head {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/', c == '=', c == '\n':
		default:
			return false
		}
	}
	return true
}
