package explain

import "slices"

import "bytes"

// around returns the line buf[begin:stop] with up to before lines before it
// and after lines after it, of the same stream, and how far each is from the
// line itself. With several processes in one log, the lines of others are left
// out; a line without a name belongs to all, because terminals wrap long lines.
// Of a line that was redrawn only the last state is given.
func (s *scanner) around(begin, stop int, key string, before, after int) (lines []line, numbers []int) {
	room := maxNear - (stop - begin)
	mine := func(l line) bool { return key == "" || l.key == "" || l.key == key }
	var back []line
	var backAt []int
	for end, off := begin, 0; end > 0 && len(back) < before && room > 0 && -off < 8*before; {
		end--
		last := s.buf[end] == '\n'
		if last {
			off--
		}
		low := max(0, end-segment)
		start := low + 1 + bytes.LastIndexAny(s.buf[low:end], "\n\v")
		room -= end - start + 1
		if l := parseLine(string(s.buf[start:end])); last && mine(l) {
			back, backAt = append(back, l), append(backAt, off)
		}
		end = start
	}
	for i, b := range slices.Backward(back) {
		lines, numbers = append(lines, b), append(numbers, backAt[i])
	}
	self := len(lines)
	lines, numbers = append(lines, parseLine(string(s.buf[begin:stop]))), append(numbers, 0)
	for start, off := stop, 0; start < len(s.buf) && len(lines) <= self+after && room > 0 && off < 8*after; {
		if s.buf[start] == '\n' {
			off++
		}
		start++
		high := min(len(s.buf), start+segment)
		end := high
		if i := bytes.IndexAny(s.buf[start:high], "\n\v"); i >= 0 {
			end = start + i
		}
		room -= end - start + 1
		last := end == len(s.buf) || s.buf[end] == '\n'
		if l := parseLine(string(s.buf[start:end])); last && mine(l) {
			lines, numbers = append(lines, l), append(numbers, off)
		}
		start = end
	}
	return lines, numbers
}
