package answer

import "math"

// A Room says whether an answer could have shown a difference.
type Room struct {
	Steps   int `json:"steps"`   // positions with a top list of two or more
	Open    int `json:"open"`    // of them with a second candidate within OpenGap of the first
	Close   int `json:"close"`   // of them with one within CloseGap: a small error can flip the token
	Decided int `json:"decided"` // chosen logprob exactly 0, or clamped: no error can be seen
}

// OpenGap and CloseGap are in nats: float32 keeps a term of e^-16 beside 1, so
// beyond it the first logprob is 0 whatever the second does.
const (
	OpenGap  = 16.0
	CloseGap = 0.1
	clamped  = -9999.0 // what vLLM writes for minus infinity
)

// Room counts over the steps of a.
func (a Answer) Room() Room {
	var r Room
	for _, s := range a.Steps {
		if len(s.Top) < 2 {
			continue
		}
		r.Steps++
		gap := s.Top[0].Value.Value - s.Top[1].Value.Value
		if gap < OpenGap && s.Top[1].Value.Value > clamped {
			r.Open++
		}
		if gap < CloseGap {
			r.Close++
		}
		if v := s.Value.Value; v == 0 || v <= clamped || math.IsNaN(v) {
			r.Decided++
		}
	}
	return r
}

// Add joins two counts.
func (r Room) Add(o Room) Room {
	return Room{r.Steps + o.Steps, r.Open + o.Open, r.Close + o.Close, r.Decided + o.Decided}
}
