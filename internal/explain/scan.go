package explain

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"regexp"
	"strings"
)

const (
	readSize = 256 << 10 // bytes asked of the reader at once
	behind   = 32 << 10  // kept before the scan position, for lines before a match
	ahead    = 32 << 10  // read before a line is judged, for lines after it
	segment  = 4 << 10   // longest piece of a line that an expression sees
	maxNear  = 16 << 10  // most text around a match that an expression sees
	maxKept  = 4         // sightings kept of a pattern
	overlap  = 256       // at least the longest literal
)

// Evidence is a line of the log that led to the diagnosis.
type Evidence struct {
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

// A sighting is a place where a pattern matched.
type sighting struct {
	line     int
	soft     bool
	key      string
	values   map[string]string // named groups
	evidence []Evidence
}

// A track is what the scan remembers of one pattern: constant space.
type track struct {
	first   []sighting
	last    int    // line of the last sighting
	pending []byte // last candidate seen after first was full, not yet matched
	at      int    // line of pending
}

// A scanner reads a log once, from front to back.
type scanner struct {
	set    *set
	clean  cleaner
	buf    []byte // cleaned text around the scan position
	done   int    // buf[:done] was scanned
	line   int    // number of the line that holds buf[counted]
	count  int
	tracks []track
	mark   []int // pattern -> last segment it was asked for, so that it is asked once
	segs   int
	ids    []int // patterns of the current segment
	size   int64 // bytes of the input
	work   int64 // bytes given to the automaton and to expressions: the cost, measured
}

func newScanner(s *set) *scanner {
	return &scanner{set: s, line: 1, tracks: make([]track, len(s.patterns)), mark: make([]int, len(s.patterns))}
}

// read takes in all of r.
func (s *scanner) read(ctx context.Context, r io.Reader) error {
	raw := make([]byte, readSize)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(raw)
		s.size += int64(n)
		s.buf = s.clean.append(s.buf, raw[:n])
		switch {
		case errors.Is(err, io.EOF):
			s.advance(len(s.buf))
			s.settle()
			return nil
		case err != nil:
			return err
		}
		if len(s.buf)-s.done < readSize+ahead {
			continue
		}
		limit := len(s.buf) - ahead
		if i := bytes.LastIndexByte(s.buf[s.done:limit], '\n'); i >= 0 {
			limit = s.done + i + 1
		}
		s.advance(limit)
		s.drop()
	}
}

// drop forgets text that is too far back to matter.
func (s *scanner) drop() {
	cut := s.done - behind
	if cut <= 0 {
		return
	}
	s.lineOf(cut)
	s.buf = s.buf[:copy(s.buf, s.buf[cut:])]
	s.done -= cut
	s.count -= cut
}

// lineOf returns the number of the line at pos; calls must not go back.
func (s *scanner) lineOf(pos int) int {
	if pos > s.count {
		s.line += bytes.Count(s.buf[s.count:pos], []byte{'\n'})
		s.count = pos
	}
	return s.line
}

// advance scans buf[done:limit].
func (s *scanner) advance(limit int) {
	from := s.done
	if from > 0 && s.buf[from-1] != '\n' { // in the middle of a very long line
		from = max(0, from-overlap)
	}
	text := s.buf[from:limit]
	s.work += int64(len(text))
	matches := s.set.scan.FindAllOverlapping(text)
	for i := 0; i < len(matches); {
		start, end := from+matches[i].Start, from+matches[i].End
		if end <= s.done && from < s.done {
			i++
			continue
		}
		begin, stop := s.bounds(start, end)
		s.segs++
		ids := s.ids[:0]
		rewrite, live := false, false
		for ; i < len(matches) && from+matches[i].Start < stop; i++ {
			users := s.set.users[matches[i].PatternID]
			rewrite = rewrite || len(users) == 0
			for _, id := range users {
				if s.mark[id] != s.segs {
					s.mark[id] = s.segs
					ids = append(ids, id)
					live = live || len(s.tracks[id].first) < maxKept
				}
			}
		}
		s.ids = ids
		if live || rewrite {
			s.judgeLine(begin, stop, ids, rewrite)
		} else {
			for _, id := range ids {
				s.tracks[id].postpone(s.buf[begin:stop], s.lineOf(begin))
			}
		}
	}
	s.done = limit
	s.lineOf(limit)
}

// bounds returns where the line around buf[start:end] begins and stops, at
// most a segment away.
func (s *scanner) bounds(start, end int) (int, int) {
	low := max(0, start-segment/2)
	begin := low + 1 + bytes.LastIndexByte(s.buf[low:start], '\n')
	begin += 1 + bytes.LastIndexByte(s.buf[begin:start], softBreak)
	high := min(len(s.buf), end+segment/2)
	stop := high
	if i := bytes.IndexByte(s.buf[end:high], '\n'); i >= 0 {
		stop = end + i
	}
	if i := bytes.IndexByte(s.buf[end:stop], softBreak); i >= 0 {
		stop = end + i
	}
	return begin, stop
}

// postpone keeps the line for a pattern that was seen often enough: only the
// last of many sightings can still change the verdict.
func (t *track) postpone(text []byte, at int) {
	t.pending, t.at = append(t.pending[:0], text...), at
}

// settle matches what was postponed.
func (s *scanner) settle() {
	for id := range s.tracks {
		t := &s.tracks[id]
		if t.pending == nil {
			continue
		}
		l := parseLine(string(t.pending))
		s.work += int64(len(l.text))
		if s.set.patterns[id].re.MatchString(l.text) {
			t.last = t.at
		}
	}
}

// judgeLine asks the candidate patterns of one line.
func (s *scanner) judgeLine(begin, stop int, ids []int, rewrite bool) {
	raw := strings.ToValidUTF8(string(s.buf[begin:stop]), "\uFFFD")
	shown := ""
	if rewrite {
		shown = parseLine(raw).show
		raw = s.set.rewrite.Replace(lost.ReplaceAllString(raw, ""))
		s.work += 3 * int64(len(raw))
		ids = s.set.candidates(raw)
	}
	l := parseLine(raw)
	if shown != "" {
		l.show = shown
	}
	text := withSymbol(l.text)
	for _, id := range ids {
		p := s.set.patterns[id]
		if len(s.tracks[id].first) == maxKept {
			s.tracks[id].postpone(s.buf[begin:stop], s.lineOf(begin))
			continue
		}
		s.work += int64(len(text))
		m := p.re.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		at := s.lineOf(begin)
		sg := sighting{line: at, soft: l.soft, key: l.key, values: groups(nil, p.re, m), evidence: []Evidence{{at, l.show}}}
		if !p.log && !s.confirm(&s.set.rules[p.rule], text, &sg, begin, stop) {
			continue
		}
		t := &s.tracks[id]
		t.first, t.last = append(t.first, sg), at
	}
}

// confirm asks the rule's conditions on the line and on the lines around it.
func (s *scanner) confirm(r *compiled, text string, sg *sighting, begin, stop int) bool {
	for _, re := range r.not {
		s.work += int64(len(text))
		if re.MatchString(text) {
			return false
		}
	}
	if r.Near == nil {
		return true
	}
	near, offset := s.around(begin, stop, sg.key, r.Near.Before, r.Near.After)
	texts := make([]string, len(near))
	for i, l := range near {
		texts[i] = l.text
	}
	joined := strings.Join(texts, "\n")
	find := func(re *regexp.Regexp) bool {
		s.work += int64(len(joined))
		loc := re.FindStringSubmatchIndex(joined)
		if loc == nil {
			return false
		}
		m := re.FindStringSubmatch(joined)
		sg.values = groups(sg.values, re, m)
		for i := strings.Count(joined[:loc[0]], "\n"); i <= strings.Count(joined[:loc[1]], "\n"); i++ {
			sg.add(Evidence{sg.line + offset[i], near[i].show})
		}
		return true
	}
	for _, re := range r.near.none {
		s.work += int64(len(joined))
		if re.MatchString(joined) {
			return false
		}
	}
	for _, re := range r.near.all {
		if !find(re) {
			return false
		}
	}
	found := len(r.near.any) == 0
	for _, re := range r.near.any {
		found = find(re) || found
	}
	for _, re := range r.near.may {
		find(re)
	}
	return found
}

// add puts a line of evidence in its place, once.
func (sg *sighting) add(e Evidence) {
	if e.Text == "" {
		return
	}
	i := 0
	for i < len(sg.evidence) && sg.evidence[i].Line < e.Line {
		i++
	}
	if i < len(sg.evidence) && sg.evidence[i].Line == e.Line {
		return
	}
	sg.evidence = append(sg.evidence[:i], append([]Evidence{e}, sg.evidence[i:]...)...)
}

// groups adds the named groups of a match to values; the first value stays.
func groups(values map[string]string, re *regexp.Regexp, m []string) map[string]string {
	values = maps.Clone(values)
	for i, name := range re.SubexpNames() {
		if name == "" || m[i] == "" {
			continue
		}
		if values == nil {
			values = map[string]string{}
		}
		if values[name] == "" {
			values[name] = m[i]
		}
	}
	return values
}
