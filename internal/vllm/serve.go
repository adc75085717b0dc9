package vllm

import (
	"maps"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/run"
)

// ServeLine is the command that serves a model, as it is typed.
func (p Place) ServeLine(model string) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(p.Serve.Environment)) {
		words = append(words, k+"="+run.Quote(p.Serve.Environment[k]))
	}
	argv := append([]string{p.Command, "serve", p.Models[model], "--dtype", p.Dtypes[model]}, p.Serve.Arguments...)
	return strings.Join(append(words, run.Cmd{Argv: argv}.String()), " ")
}

// VerifyWords are the command that shows what the operators do for a model: a
// server with them is judged, one without them is the control. The workload
// has contexts of all lengths, and one start of each is enough: what changes is
// not left to chance.
func (p Place) VerifyWords(model string) []string {
	serve := p.ServeLine(model)
	return []string{
		"invar", "verify", "server", "--workload", "lengths", "--lifetimes", "1",
		"--control-launch", serve, "--launch", "INVAR_BATCH_INVARIANT=1 " + serve,
	}
}

// Shown is the model that shows most: rounding to 16 bits hides some of what
// changes in 32.
func (p Place) Shown() string {
	names := slices.Sorted(maps.Keys(p.Models))
	if len(names) == 0 {
		return ""
	}
	for _, n := range names {
		if p.Dtypes[n] == "float32" {
			return n
		}
	}
	return names[0]
}
