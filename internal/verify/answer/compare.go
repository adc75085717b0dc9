package answer

import "math"

// Kind says what the first difference between two answers is.
type Kind string

// The kinds. Logprob comes before token where both differ at one position: the
// number moved first and took the token with it.
const (
	Same    Kind = ""
	Logprob Kind = "logprob" // same token, another logprob
	Token   Kind = "token"   // another token, and numbers moved
	Tie     Kind = "tie"     // another token of exactly the same logprob; no number moved
	Top     Kind = "top"     // only the rest of the top list differs
	Length  Kind = "length"  // one answer is longer
	Finish  Kind = "finish"  // another reason of the end
	Prompt  Kind = "prompt_logprobs"
)

// A Divergence is where two answers to one request part.
type Divergence struct {
	Kind     Kind      `json:"kind"`
	Position int       `json:"position"` // token, from 0
	A        Step      `json:"a"`
	B        Step      `json:"b"`
	MaxDelta float64   `json:"max_delta"`       // over positions with the same tokens before them
	MaxAt    int       `json:"max_delta_at"`    // where that is
	SameIDs  bool      `json:"same_tokens"`     // the whole text is the same: a text comparison is blind to this
	Deltas   []float64 `json:"deltas,omitzero"` // |a-b| of the chosen logprob at each comparable position
}

// Compare finds where a and b part; both were asked with k top logprobs.
func Compare(a, b Answer, k int) Divergence {
	d := Divergence{SameIDs: sameKeys(a, b)}
	if p := first(a.Prompt, b.Prompt, k); p.Kind != Same {
		p.Kind, p.SameIDs = Prompt, d.SameIDs
		return p
	}
	f := first(a.Steps, b.Steps, k)
	f.SameIDs = d.SameIDs
	if f.Kind == Same && a.Finish != b.Finish {
		f.Kind, f.Position = Finish, len(a.Steps)
	}
	return f
}

func sameKeys(a, b Answer) bool {
	if len(a.Steps) != len(b.Steps) {
		return false
	}
	for i := range a.Steps {
		if a.Steps[i].Key != b.Steps[i].Key {
			return false
		}
	}
	return true
}

// first compares two lists of steps. Positions after another token was chosen
// have another context and are not compared.
func first(a, b []Step, k int) Divergence {
	var d Divergence
	for i := range min(len(a), len(b)) {
		kind := stepKind(a[i], b[i], k)
		if kind != Same && d.Kind == Same {
			d.Kind, d.Position, d.A, d.B = kind, i, a[i], b[i]
		}
		if a[i].Key != b[i].Key {
			return d
		}
		delta := math.Abs(a[i].Value.Value - b[i].Value.Value)
		d.Deltas = append(d.Deltas, finite(delta))
		if delta > d.MaxDelta {
			d.MaxDelta, d.MaxAt = delta, i
		}
	}
	if d.Kind == Same && len(a) != len(b) {
		d.Kind, d.Position = Length, min(len(a), len(b))
	}
	return d
}

func stepKind(a, b Step, k int) Kind {
	top := sameTop(a, b, k)
	switch {
	case a.Key == b.Key && !sameNumber(a, b):
		return Logprob
	case a.Key == b.Key && !top:
		return Top
	case a.Key == b.Key:
		return Same
	case top && sameNumber(a, b):
		return Tie
	}
	return Token
}

func sameNumber(a, b Step) bool {
	return a.Value.Null == b.Value.Null && math.Float64bits(a.Value.Value) == math.Float64bits(b.Value.Value)
}

// sameTop compares top lists as the digest does: names above the cut, values at it.
func sameTop(a, b Step, k int) bool {
	ca, na := a.cut(k)
	cb, nb := b.cut(k)
	if na != nb || math.Float64bits(ca) != math.Float64bits(cb) {
		return false
	}
	for i := range na {
		x, y := a.Top[i], b.Top[i]
		if x.Value.Value > ca != (y.Value.Value > cb) || math.Float64bits(x.Value.Value) != math.Float64bits(y.Value.Value) {
			return false
		}
		if x.Value.Value > ca && x.Key != y.Key {
			return false
		}
	}
	return true
}

// finite keeps a delta representable in JSON.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return math.MaxFloat64
	}
	return v
}
