package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// salt changes when the meaning of a fingerprint changes.
const salt = "invar plan 1"

// seal computes the fingerprint of every step from what it depends on and, last,
// that of the whole: what is installed, so everything but the environment and the
// probe. places are words of commands whose meaning is in the inputs already,
// by content: the same compiler at another place makes the same.
func seal(steps []Step, places map[string]string) string {
	done := map[string]string{}
	var all []string
	for i := range steps {
		s := &steps[i]
		var needs []string
		for _, n := range s.Needs {
			needs = append(needs, done[n])
		}
		s.Fingerprint = hash(struct {
			Salt               string
			Kind               Kind
			Argv, Env, Outputs []string
			Inputs             []Input
			Spec               any
			Needs              []string
		}{salt, s.Kind, anywhere(s.Argv, places), s.Env, s.Outputs, s.Inputs, withoutPlaces(s.Spec), needs})
		done[s.ID] = s.Fingerprint
		if s.Kind != Env && s.Kind != Toolkit && s.Kind != ProbeIt {
			all = append(all, s.Fingerprint)
		}
	}
	return hash(all)
}

// anywhere is a command with the words of places replaced.
func anywhere(argv []string, places map[string]string) []string {
	if len(places) == 0 {
		return argv
	}
	out := slices.Clone(argv)
	for i, word := range out {
		if instead, ok := places[word]; ok {
			out[i] = instead
		}
	}
	return out
}

func hash(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data: cannot happen
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func digestOf(inputs []Input) string {
	inputs = slices.Clone(inputs)
	return "sha256:" + hash(inputs)
}
