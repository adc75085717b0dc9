package divergence

import (
	"fmt"
	"slices"
	"strings"
)

// table reads a Markdown table with a row an arrangement and a column that says
// whether its repeats agree.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) take(line string) {
	text := strings.TrimSpace(line)
	if !strings.HasPrefix(text, "|") {
		return
	}
	cells := strings.Split(strings.Trim(text, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	switch {
	case strings.Trim(strings.Join(cells, ""), "-: ") == "":
	case t.header == nil:
		t.header = cells
	case len(cells) == len(t.header) && len(t.rows) < 64:
		t.rows = append(t.rows, cells)
	}
}

// sameWords say that repeats agree; repeatWords and tokenWords are found in headers.
var (
	sameWords   = []string{"完全一致", "identical", "exact match", "bitwise equal"}
	repeatWords = []string{"replay", "repeat", "rerun", "轮间"}
	tokenWords  = []string{"token", "tokens"}
)

func (t *table) column(words []string, not string) int {
	return slices.IndexFunc(t.header, func(h string) bool {
		h = strings.ToLower(h)
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(h, w) }) && (not == "" || !strings.Contains(h, not))
	})
}

// report wants at least two arrangements that repeat themselves and whose
// answers have another number of tokens: then the arrangements differ.
func (t *table) report() *Report {
	replay, tokens := t.column(repeatWords, ""), t.column(tokenWords, "/s")
	if replay < 0 || len(t.rows) < 2 {
		return nil
	}
	var names, totals []string
	for _, r := range t.rows {
		if !slices.ContainsFunc(sameWords, func(w string) bool { return strings.Contains(strings.ToLower(r[replay]), w) }) {
			return nil
		}
		names = append(names, r[0])
		if tokens >= 0 && !slices.Contains(totals, r[tokens]) {
			totals = append(totals, r[tokens])
		}
	}
	r := &Report{Word: Repeats, Try: "is batch invariance on: its variable has to be set where the server runs"}
	r.Sentence = fmt.Sprintf("each of %s repeats itself exactly", strings.Join(names, ", "))
	if len(totals) < 2 {
		r.Sentence += "; whether they agree with each other is not in this table"
		r.Try = "compare the arrangements with each other: invar verify server"
		return r
	}
	r.Sentence += fmt.Sprintf(", but their answers have %s tokens: deterministic, and dependent on the batch", strings.Join(totals, " and "))
	return r
}
