package simserver

// taint is what the kernels of a step leave in the KV of one request: 0 where
// they are the ones that always run.
func (e *engine) taint(plan []slice, s slice, row int) uint64 {
	t := s.r.taint
	mark := func(d Defect, on bool, by uint64) {
		if on && e.cfg.has(d) {
			t = mix(t, by)
		}
	}
	total, longest := 0, 0
	for _, p := range plan {
		total += p.n
		longest = max(longest, p.n)
	}
	fresh := s.r.position == 0 && s.r.done == s.r.hit // the request's first step
	mark(BatchOfOne, len(plan) == 1, 11)
	mark(RMSNorm256, total >= 256, 12)
	mark(RankOrder, fresh && e.rank > 0, 20+uint64(e.rank)) //nolint:gosec // a rank
	mark(FA3Tile, s.n == 1 && s.r.position > 0 && longest >= 10, 14)
	mark(Cascade, len(plan) >= 4 && samePrefix(plan), 15)
	mark(FP8Scale, outlierBeside(plan, row), 16)
	mark(FirstAfter, fresh && s.r.answered <= 2, 17)
	mark(Autotune, fresh && s.r.hit == 0, 100+e.cfg.Lifetime) // a cached prefix has it already
	mark(FlakyRun, len(plan) > 1 && unit(mix(e.step, e.cfg.Seed+3)) < 0.1, 18)
	return t
}

func samePrefix(plan []slice) bool {
	for _, p := range plan {
		if len(p.r.prompt) < block {
			return false
		}
		for i := range block {
			if p.r.prompt[i] != plan[0].r.prompt[i] {
				return false
			}
		}
	}
	return true
}

// outlierBeside looks for unusual tokens that others compute in this step.
func outlierBeside(plan []slice, row int) bool {
	for i, p := range plan {
		if i == row || p.r.position > 0 {
			continue
		}
		for _, t := range p.r.prompt[p.r.done:min(p.r.done+p.n, len(p.r.prompt))] {
			if t >= outlierID {
				return true
			}
		}
	}
	return false
}
