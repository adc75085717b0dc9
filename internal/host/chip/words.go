package chip

import (
	"sort"
	"strings"
)

type wordsFile struct {
	Fields []struct {
		Field string   `yaml:"field"`
		Names []string `yaml:"names"`
	} `yaml:"fields"`

	byName map[string]string
	names  []string // as printed, longest first
}

func (w *wordsFile) compile() error {
	w.byName = map[string]string{}
	for _, f := range w.Fields {
		for _, n := range f.Names {
			w.byName[squeeze(n)] = f.Field
			w.names = append(w.names, n)
		}
	}
	sort.SliceStable(w.names, func(i, j int) bool { return len(w.names[i]) > len(w.names[j]) })
	return nil
}

func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t-_", r) {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// Field is what a key or column of npu-smi means: "npu_id", "chip_name"; "" when not known.
func (r *Rules) Field(name string) string { return r.words.byName[squeeze(name)] }

// Columns finds the known column names in a header line, in their order. It
// does not care how many blanks stand between them.
func (r *Rules) Columns(header string) []string {
	type hit struct {
		at    int
		field string
	}
	text := strings.Join(strings.Fields(header), " ")
	fold := strings.ToLower(text)
	if len(fold) != len(text) {
		return nil
	}
	var hits []hit
	taken := make([]bool, len(fold))
	for _, n := range r.words.names {
		n = strings.ToLower(n)
		for from := 0; ; {
			i := strings.Index(fold[from:], n)
			if i < 0 {
				break
			}
			at := from + i
			from = at + len(n)
			if !taken[at] && wordEdges(fold, at, from) {
				hits = append(hits, hit{at, r.words.byName[squeeze(n)]})
				for j := at; j < from; j++ {
					taken[j] = true
				}
			}
		}
	}
	sort.Slice(hits, func(i, j int) bool { return hits[i].at < hits[j].at })
	var out []string
	for _, h := range hits {
		out = append(out, h.field)
	}
	return out
}

func wordEdges(s string, from, to int) bool {
	return (from == 0 || s[from-1] == ' ') && (to == len(s) || s[to] == ' ')
}

// NotChip reports whether a name of `npu-smi info -m` is a controller and no chip.
func (r *Rules) NotChip(name string) bool {
	for _, n := range r.ascend.NotChips {
		if strings.EqualFold(n, strings.TrimSpace(name)) {
			return true
		}
	}
	return false
}
