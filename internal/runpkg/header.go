package runpkg

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed stub.sh
var stub string

// Lines that divide the text behind the shell script; the shell never gets
// that far, sed and the reader do.
const (
	varsBegin       = "# begin variables\n"
	varsEnd         = "# end variables\n"
	sectionInfo     = "#--info\n"
	sectionManifest = "#--manifest\n"
	sectionFiles    = "#--files\n"
	sectionEnd      = "#--payload "
)

// A header is everything before the payload.
type header struct {
	manifest *Manifest
	codec    Codec
	unpacked int64 // disk space that the tree takes
	size     int64 // of the header; 0 before it is known
	payload  digests
}

// digests are what a header says about the payload.
type digests struct {
	size   int64
	crc    uint32
	sha256 string
}

// widest has every number at its longest, so that a header rendered with it
// is never shorter than the final one.
var widest = digests{size: 1<<63 - 1, crc: 1<<32 - 1, sha256: strings.Repeat("0", 64)}

// reserve renders the header with the longest numbers and fixes its size.
// Digests of files take the same room whatever they are.
func (h *header) reserve() error {
	h.payload, h.size = widest, 1<<63-1
	text, err := h.render()
	h.size = int64(len(text))
	return err
}

// final renders the header with its true numbers, filled up to its size with
// a comment, in the last of the lines that skip counts.
func (h *header) final(d digests) ([]byte, error) {
	h.payload = d
	text, err := h.render()
	if err != nil {
		return nil, err
	}
	room := int(h.size) - len(text)
	if room < 0 {
		return nil, fmt.Errorf("header grew by %d bytes while it was packed", -room)
	}
	text = strings.TrimSuffix(text, "\n") + strings.Repeat("#", room) + "\n"
	return []byte(text), nil
}

func (h *header) render() (string, error) {
	before, rest, ok1 := strings.Cut(stub, varsBegin)
	_, after, ok2 := strings.Cut(rest, varsEnd)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("shell stub has no place for its variables")
	}
	manifest, err := h.manifest.encode()
	if err != nil {
		return "", err
	}
	tail := after + sectionInfo + h.info() + sectionManifest + string(manifest) +
		sectionFiles + fileLines(h.manifest.Files) + sectionEnd + "\n"
	lines := strings.Count(before+varsBegin+varsEnd+tail, "\n")
	return before + varsBegin + h.variables(lines) + varsEnd + tail, nil
}

func (h *header) variables(otherLines int) string {
	m := h.manifest
	size := strconv.FormatInt(h.payload.size, 10)
	vars := [][2]string{
		{"invar_format", "1"},
		{"name", m.Name},
		{"version", m.Version},
		{"platform", m.Platform},
		{"label", m.Name + " " + m.Version + " " + m.Platform},
		{"codec", string(h.codec)},
		{"script", ""},
		{"targetdir", m.Name + "-" + m.Version},
		{"CRCsum", strconv.FormatUint(uint64(h.payload.crc), 10)},
		{"MD5", strings.Repeat("0", 32)}, // makeself's way to say: none
		{"SHA", h.payload.sha256},
		{"filesizes", size},
		{"totalsize", size},
		{"unpacked", strconv.FormatInt(h.unpacked, 10)},
		{"header_size", strconv.FormatInt(h.size, 10)},
	}
	var b strings.Builder
	for _, v := range vars {
		fmt.Fprintf(&b, "%s=\"%s\"\n", v[0], v[1])
	}
	fmt.Fprintf(&b, "skip=\"%d\"\n", otherLines+len(vars)+1)
	return b.String()
}

// info is what --info prints before the manifest.
func (h *header) info() string {
	m := h.manifest
	var b strings.Builder
	for _, v := range [][2]string{
		{"package", m.Name},
		{"version", m.Version},
		{"platform", m.Platform},
		{"contract", m.Contract},
		{"operators", strings.Join(m.Operators, " ")},
		{"isa levels", strings.Join(m.ISALevels, " ")},
		{"compiler", m.Compiler},
		{"source", m.SourceDigest},
		{"codec", string(h.codec)},
		{"payload", fmt.Sprintf("%d bytes, SHA-256 %s", h.payload.size, h.payload.sha256)},
		{"unpacked", fmt.Sprintf("%d bytes in %d entries", h.unpacked, len(m.Files))},
	} {
		if v[1] != "" {
			fmt.Fprintf(&b, "%-10s %s\n", v[0], strings.Join(strings.Fields(v[1]), " "))
		}
	}
	return b.String()
}

// fileLines is the list that the shell reads: type, mode, size, SHA-256, path.
func fileLines(files []Entry) string {
	var b strings.Builder
	for _, e := range files {
		sum := e.SHA256
		if e.Type != TypeFile {
			sum = "-"
		}
		fmt.Fprintf(&b, "%c %o %d %s %s\n", e.Type[0], e.Mode.Perm(), e.Size, sum, e.Path)
	}
	return b.String()
}
