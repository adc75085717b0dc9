package simserver

import (
	"hash/fnv"
	"math"
	"strings"
	"unicode"
)

const candidates = 12 // of every step; the vocabulary is the union

// A candidate is a token with its logprob.
type candidate struct {
	id      int
	logprob float32
}

// outlierID is where ids of unusual text begin.
const outlierID = 100000

// tokens splits text into words of at most 8 runes.
func tokens(text string) []int {
	var out []int
	for w := range strings.FieldsSeq(text) {
		r := []rune(w)
		for len(r) > 0 {
			n := min(len(r), 8)
			out = append(out, tokenID(string(r[:n])))
			r = r[n:]
		}
	}
	return out
}

func tokenID(w string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(w))
	id := int(h.Sum32() % 30000)
	if strings.IndexFunc(w, unicode.IsLetter) < 0 && len(w) > 4 || w[0] > 127 {
		id += outlierID
	}
	return id
}

func mix(a, b uint64) uint64 {
	a ^= b + 0x9e3779b97f4a7c15 + a<<6 + a>>2
	a ^= a >> 33
	a *= 0xff51afd7ed558ccd
	return a ^ a>>29
}

// unit is a number in [0,1) that h determines.
func unit(h uint64) float64 { return float64(mix(h, 77)>>11) / (1 << 53) }

// next is what the model says after a context, largest first. taint is the
// trace of another kernel: it moves values by a few units in the last place.
func (c Config) next(context, taint uint64) []candidate {
	h := mix(c.Seed, context)
	logit := make([]float64, candidates)
	for i := range logit {
		logit[i] = 4 * unit(mix(h, uint64(i))) // in [0,4): tokens flip rarely, numbers move always
	}
	if c.has(Certain) {
		logit[0] += 200
	}
	if c.has(TieOrder) && h%3 == 0 {
		logit[1], logit[0] = 5, 5
	}
	sum := 0.0
	for _, l := range logit {
		sum += math.Exp(l)
	}
	out := make([]candidate, candidates)
	for i, l := range logit {
		v := float32(l - math.Log(sum))
		if taint != 0 {
			for range 1 + mix(taint, uint64(i))%3 {
				v = math.Nextafter32(v, float32(math.Inf(-1)))
			}
		}
		if c.has(Certain) && i > 0 {
			v = -9999
		}
		out[i] = candidate{int(mix(h, 1000+uint64(i)) % 30000), v}
	}
	sortCandidates(out)
	return out
}

func sortCandidates(c []candidate) {
	for i := 1; i < len(c); i++ {
		for j := i; j > 0 && c[j].logprob > c[j-1].logprob; j-- {
			c[j], c[j-1] = c[j-1], c[j]
		}
	}
}

// choose picks a candidate: the largest at temperature 0, else by noise that
// the seed and the position determine.
func choose(c []candidate, temperature float64, seed, position uint64) int {
	if temperature == 0 {
		return 0
	}
	best, at := math.Inf(-1), 0
	for i, x := range c {
		u := unit(mix(mix(seed, position), uint64(x.id)))
		if v := float64(x.logprob)/temperature - math.Log(-math.Log(u+1e-300)); v > best {
			best, at = v, i
		}
	}
	return at
}
