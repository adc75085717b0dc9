package answer

import (
	"math"
	"testing"

	"github.com/invar-ops/invar/internal/openai"
)

func num(v float64) openai.Number { return openai.Number{Value: v} }

// tops makes a step that chose the first key.
func tops(chosen string, pairs ...any) Step {
	s := Step{Key: chosen}
	for i := 0; i < len(pairs); i += 2 {
		s.Top = append(s.Top, Entry{pairs[i].(string), num(pairs[i+1].(float64))})
		if pairs[i] == chosen {
			s.Value = num(pairs[i+1].(float64))
		}
	}
	sortEntries(s.Top)
	return s
}

// TestCompare: digests and descriptions agree on what is the same, and name
// what is not.
func TestCompare(t *testing.T) {
	t.Parallel()
	base := tops("a", "a", -0.5, "b", -1.0, "c", -2.0)
	up := math.Nextafter(-0.5, 0)
	for name, c := range map[string]struct {
		a, b Step
		kind Kind
	}{
		"the same":                     {base, tops("a", "c", -2.0, "b", -1.0, "a", -0.5), Same},
		"one bit of the logprob":       {base, tops("a", "a", up, "b", -1.0, "c", -2.0), Logprob},
		"one bit further down":         {base, tops("a", "a", -0.5, "b", math.Nextafter(-1, 0), "c", -2.0), Top},
		"one bit at the cut":           {base, tops("a", "a", -0.5, "b", -1.0, "c", math.Nextafter(-2, 0)), Top},
		"another name above the cut":   {base, tops("a", "a", -0.5, "x", -1.0, "c", -2.0), Top},
		"a tie at the cut":             {base, tops("a", "a", -0.5, "b", -1.0, "d", -2.0), Same},
		"a shorter list":               {base, tops("a", "a", -0.5, "b", -1.0), Top},
		"tie of the first two":         {tops("a", "a", -0.5, "b", -0.5, "c", -2.0), tops("b", "a", -0.5, "b", -0.5, "c", -2.0), Tie},
		"another token, other numbers": {tops("a", "a", -0.5, "b", -0.5, "c", -2.0), tops("b", "a", -0.6, "b", -0.5, "c", -2.0), Token},
		"chosen below the list, tied":  {tops("d", "a", -0.5, "b", -1.0, "c", -2.0, "d", -2.0), tops("d", "a", -0.5, "b", -1.0, "d", -2.0), Same},
		"zero and minus zero":          {tops("a", "a", 0.0, "b", -1.0, "c", -2.0), tops("a", "a", math.Copysign(0, -1), "b", -1.0, "c", -2.0), Logprob},
		"NaN on both sides":            {tops("a", "a", math.NaN(), "b", -1.0, "c", -2.0), tops("a", "a", math.NaN(), "b", -1.0, "c", -2.0), Same},
		"NaN on one side":              {base, tops("a", "a", math.NaN(), "b", -1.0, "c", -2.0), Logprob},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := Answer{Steps: []Step{c.a}}, Answer{Steps: []Step{c.b}}
			d := Compare(a, b, 3)
			if d.Kind != c.kind {
				t.Errorf("kind %q, want %q", d.Kind, c.kind)
			}
			if (a.Digest(3) == b.Digest(3)) != (c.kind == Same) {
				t.Errorf("digests equal: %v, kind %q", a.Digest(3) == b.Digest(3), c.kind)
			}
		})
	}
}

func TestCompareOverPositions(t *testing.T) {
	t.Parallel()
	x := Answer{Finish: "length", Steps: []Step{tops("a", "a", -0.5), tops("a", "a", -1.0), tops("b", "b", -1.0), tops("c", "c", -3.0)}}
	y := Answer{Finish: "length", Steps: []Step{tops("a", "a", -0.5), tops("a", "a", -1.25), tops("z", "z", -1.5), tops("q", "q", -9.0)}}
	d := Compare(x, y, 1)
	if d.Kind != Logprob || d.Position != 1 || d.MaxDelta != 0.25 || d.MaxAt != 1 || len(d.Deltas) != 2 || d.SameIDs {
		t.Errorf("%+v: positions after another token have another context", d)
	}
	short := Answer{Finish: "length", Steps: x.Steps[:2]}
	if d := Compare(x, short, 1); d.Kind != Length || d.Position != 2 {
		t.Errorf("%+v", d)
	}
	stop := x
	stop.Finish = "stop"
	if d := Compare(x, stop, 1); d.Kind != Finish || x.Digest(1) == stop.Digest(1) {
		t.Errorf("%+v", d)
	}
	p, q := x, x
	p.Prompt, q.Prompt = []Step{{}, tops("a", "a", -1.0)}, []Step{{}, tops("a", "a", -2.0)}
	if d := Compare(p, q, 1); d.Kind != Prompt || d.Position != 1 || !d.SameIDs || p.Digest(1) == q.Digest(1) {
		t.Errorf("%+v", d)
	}
}

// TestFrom refuses answers whose parts do not fit together.
func TestFrom(t *testing.T) {
	t.Parallel()
	good := openai.Choice{TokenIDs: []int{1, 2}, Logprobs: &openai.Logprobs{
		Tokens: []string{"x", "y"}, Values: []openai.Number{num(-1), num(-2)},
		Top: []map[string]openai.Number{{"token_id:1": num(-1)}, {"token_id:2": num(-2), "token_id:9": num(-2)}},
	}}
	a, err := From(good, true, false)
	if err != nil || a.Steps[1].Key != "token_id:2" || a.Steps[1].Top[0].Key != "token_id:2" || !a.HasIDs {
		t.Fatalf("%+v, %v", a, err)
	}
	for name, change := range map[string]func(*openai.Choice){
		"ids":      func(c *openai.Choice) { c.TokenIDs = c.TokenIDs[:1] },
		"tokens":   func(c *openai.Choice) { c.Logprobs.Tokens = c.Logprobs.Tokens[:1] },
		"tops":     func(c *openai.Choice) { c.Logprobs.Top = c.Logprobs.Top[:1] },
		"logprobs": func(c *openai.Choice) { c.Logprobs = nil },
	} {
		c := good
		l := *good.Logprobs
		c.Logprobs = &l
		change(&c)
		if _, err := From(c, true, false); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := From(good, true, true); err == nil {
		t.Error("prompt_logprobs are missing: no error")
	}
}

func TestRoom(t *testing.T) {
	t.Parallel()
	a := Answer{Steps: []Step{tops("a", "a", -0.5, "b", -0.51), tops("a", "a", 0.0, "b", -40.0), tops("a", "a", -0.1, "b", -3.0), tops("a", "a", 0.0, "b", -9999.0)}}
	if got, want := a.Room(), (Room{Steps: 4, Open: 2, Close: 1, Decided: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
