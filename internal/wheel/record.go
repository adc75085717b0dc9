package wheel

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

// An Entry is one line of RECORD.
type Entry struct {
	Path   string
	Digest string // "sha256=<urlsafe base64 without padding>", "" for RECORD itself
	Size   int64  // -1 when RECORD leaves it out
}

func digestText(sum []byte) string {
	return "sha256=" + base64.RawURLEncoding.EncodeToString(sum)
}

// formatRecord writes entries as CSV; the last one is RECORD itself.
func formatRecord(entries []Entry, self string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, e := range entries {
		_ = w.Write([]string{e.Path, e.Digest, strconv.FormatInt(e.Size, 10)}) // a Buffer does not fail
	}
	_ = w.Write([]string{self, "", ""})
	w.Flush()
	return b.Bytes()
}

// ParseRecord reads the content of a RECORD file.
func ParseRecord(b []byte) ([]Entry, error) {
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = 3
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("RECORD: %w", err)
	}
	out := make([]Entry, 0, len(rows))
	for i, row := range rows {
		e := Entry{Path: row[0], Digest: row[1], Size: -1}
		if row[2] != "" {
			if e.Size, err = strconv.ParseInt(row[2], 10, 64); err != nil || e.Size < 0 {
				return nil, fmt.Errorf("RECORD line %d: %q is no size", i+1, row[2])
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// newDigest gives the hash that an entry names. PEP 427 asks for sha256 or better.
func newDigest(text string) (hash.Hash, error) {
	algo, _, ok := strings.Cut(text, "=")
	if !ok || algo != "sha256" {
		return nil, errors.New("want a sha256 digest, got " + strconv.Quote(text))
	}
	return sha256.New(), nil
}
