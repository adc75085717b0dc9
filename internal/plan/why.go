package plan

import "fmt"

// Why says, step by step, what makes s run again after before, the plan of the
// last finished build; nil when nothing was built yet.
func Why(s Step, before *Plan) string {
	if before == nil {
		return "nothing was built yet"
	}
	old, ok := before.Step(s.ID)
	if !ok {
		return "the last build had no such step"
	}
	if old.Fingerprint == s.Fingerprint {
		return ""
	}
	was := map[string]string{}
	for _, in := range old.Inputs {
		was[in.Name] = in.Digest
	}
	for _, in := range s.Inputs {
		d, ok := was[in.Name]
		switch {
		case !ok:
			return fmt.Sprintf("%s is new", in.Name)
		case d != in.Digest:
			return fmt.Sprintf("%s changed: %s, was %s", in.Name, short(in.Digest), short(d))
		}
		delete(was, in.Name)
	}
	for name := range was {
		return fmt.Sprintf("%s is gone", name)
	}
	if fmt.Sprint(old.Argv) != fmt.Sprint(s.Argv) {
		return "the command changed"
	}
	for _, n := range s.Needs {
		a, okA := before.Step(n)
		if okA && a.Fingerprint != "" {
			return "a step before it runs: " + n
		}
	}
	return "what it is given changed"
}

func short(digest string) string {
	if len(digest) > 7+8 && digest[:7] == "sha256:" {
		return digest[7:15]
	}
	return digest
}
