package explain

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"golang.org/x/text/encoding/unicode"
)

// maxObject is the largest JSON result that is read as one; a longer text that
// starts with a brace is a log.
const maxObject = 8 << 20

// sniff looks at the start of r. It decodes UTF-16, which PowerShell writes
// when it redirects, and recognises the JSON that invar prints itself: then
// the reader gives the texts in it, one a line.
func sniff(r io.Reader) (io.Reader, *ownResult, error) {
	br := bufio.NewReaderSize(r, readSize)
	head, err := br.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(br), nil, nil
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		_, err := br.Discard(3)
		return br, nil, err
	case !bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) || !bytes.Contains(head, []byte(`"invar.`)):
		return br, nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(br, maxObject))
	if err != nil {
		return nil, nil, err
	}
	if own := parseOwn(text); own != nil {
		return own.text(), own, nil
	}
	return io.MultiReader(bytes.NewReader(text), br), nil, nil
}
