package workload

import "iter"

// Filler is the index of a prompt whose answer is not compared.
const Filler = -1

// Mixed yields the prompts of a run with its fillers spread among them. A
// filler has the index Filler.
func (w Workload) Mixed(a Arrangement) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		fill := w.Fillers(a)
		every := 1
		if fill.Count > 0 {
			every = max(w.Prompts.Count/fill.Count, 1)
		}
		f := 0
		for i, p := range w.Prompts.All() {
			if !yield(i, p) {
				return
			}
			if f < fill.Count && i%every == 0 {
				if !yield(Filler, fill.At(f)) {
					return
				}
				f++
			}
		}
		for ; f < fill.Count; f++ {
			if !yield(Filler, fill.At(f)) {
				return
			}
		}
	}
}

// Salt names the part of the prefix cache that prompt i of a run may use; base
// tells the workload, server and start from all others, run the run.
func (a Arrangement) Salt(base, run string, i string) string {
	switch a.Cache {
	case Warm:
		return base
	case Apart:
		return base + "-" + run + "-" + i
	}
	return base + "-" + run
}

// ListSize is how many prompts one list request holds at most: its whole answer
// is in memory at once.
const ListSize = 256
