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
// that of the whole: what is installed, so everything but the environment and the probe.
func seal(steps []Step) string {
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
		}{salt, s.Kind, s.Argv, s.Env, s.Outputs, s.Inputs, s.Spec, needs})
		done[s.ID] = s.Fingerprint
		if s.Kind != Env && s.Kind != Toolkit && s.Kind != ProbeIt {
			all = append(all, s.Fingerprint)
		}
	}
	return hash(all)
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
