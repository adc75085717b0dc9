package explain

import "bytes"

// softBreak stands for a carriage return that redraws a line: text before and
// after it belongs to one line of the file, but is read as two.
const softBreak = '\v'

// A cleaner takes terminal control out of a byte stream: colour and cursor
// sequences, backspaces, and carriage returns. It keeps its state between
// calls, because a sequence may be cut by the end of a read.
type cleaner struct {
	state cleanState
	cr    bool // a carriage return was read and its meaning is still open
	seen  int  // bytes of the current control sequence
}

type cleanState uint8

const (
	plain     cleanState = iota
	escape               // after ESC
	control              // inside ESC [ ... final byte
	osc                  // inside ESC ] ... BEL or ESC \
	skipOne              // after ESC ( and the like: one more byte belongs to it
	maxEscape = 512      // a longer "sequence" is text after a stray ESC
)

// append adds the cleaned form of src to dst.
func (c *cleaner) append(dst, src []byte) []byte {
	if c.state == plain && !c.cr && bytes.IndexByte(src, 0x1b) < 0 &&
		bytes.IndexByte(src, '\r') < 0 && bytes.IndexByte(src, '\b') < 0 {
		return append(dst, src...)
	}
	for _, b := range src {
		if c.state != plain {
			if b != '\n' && c.seen < maxEscape {
				c.seen++
				c.step(b)
				continue
			}
			c.state = plain
		}
		switch b {
		case 0x1b:
			c.state, c.seen = escape, 0
		case '\r':
			c.cr = true
		case '\b':
		default:
			if c.cr && b != '\n' {
				dst = append(dst, softBreak)
			}
			c.cr = false
			dst = append(dst, b)
		}
	}
	return dst
}

// step advances inside a control sequence.
func (c *cleaner) step(b byte) {
	switch c.state {
	case escape:
		switch b {
		case '[':
			c.state = control
		case ']', 'P', '_', '^', 'X':
			c.state = osc
		case '(', ')', '*', '+', '#', '%':
			c.state = skipOne
		case 0x1b:
		default:
			c.state = plain
		}
	case control:
		if b >= 0x40 && b <= 0x7e {
			c.state = plain
		}
	case osc:
		switch b {
		case 0x07:
			c.state = plain
		case 0x1b:
			c.state = escape // of the string terminator ESC \
		}
	case skipOne, plain:
		c.state = plain
	}
}
