package install

import (
	"path/filepath"
	"slices"
)

// Match finds the environment that name means: its id, or the path of its
// interpreter, its environment folder or its site-packages as they were when
// it was installed. It works for a Python that is gone, too.
func (p *Prefix) Match(name string) (id string, ok bool, err error) {
	ids, err := p.IDs()
	if err != nil {
		return "", false, err
	}
	if slices.Contains(ids, name) {
		return name, true, nil
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", false, err
	}
	for _, id := range ids {
		e := p.env(id)
		gens, err := e.generations()
		if err != nil {
			return "", false, err
		}
		for _, n := range byNumber(gens) {
			r, err := e.readReceipt(n)
			if err == nil && slices.Contains([]string{r.Python.Exe, r.Python.Prefix, r.Python.Purelib}, abs) {
				return id, true, nil
			}
		}
	}
	return "", false, nil
}
