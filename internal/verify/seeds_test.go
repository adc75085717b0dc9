package verify

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit/simserver"
	"github.com/invar-ops/invar/internal/verify/judge"
)

// narrow are, for each defect, the workloads that show it: seeds are many, so
// each asks for little.
func narrow(c caught) []string {
	switch c.defect {
	case simserver.RMSNorm256:
		return []string{"steps-over-512"}
	case simserver.FA3Tile:
		return []string{"decode-prefill"}
	case simserver.Cascade:
		return []string{"prefix"}
	case simserver.TieOrder:
		return []string{"staggered"}
	case simserver.FP8Scale:
		return []string{"outliers"}
	case simserver.StalePrompt:
		return []string{"prompt-logprobs"}
	case simserver.FirstAfter:
		if c.starts > 0 {
			return []string{"first-request", "pr-45683"}
		}
	case simserver.FlakyRun, simserver.Preempts:
		return []string{"repeats-51187", "pr-45683"}
	}
	return []string{"pr-45683"}
}

// TestSeeds: over many models the verdicts are the same. INVAR_SEEDS sets how
// many; a clean server never fails and a defect never passes.
func TestSeeds(t *testing.T) {
	t.Parallel()
	seeds := uint64(100)
	if testing.Short() {
		seeds = 3
	}
	if s := os.Getenv("INVAR_SEEDS"); s != "" {
		if _, err := fmt.Sscan(s, &seeds); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range defects() {
		if c.config.SGLang || c.defect == simserver.NoLogprobs {
			continue // the same code with other names: TestDefects has them
		}
		t.Run(fmt.Sprintf("%s%+v, %d starts", c.defect, c.config, c.starts), func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				seeded(t, c, seed)
			}
		})
	}
}

func seeded(t *testing.T, c caught, seed uint64) {
	t.Helper()
	c.config.Seed = seed
	if c.defect != "" {
		c.config.Defects = []simserver.Defect{c.defect}
	}
	change := c.change()
	res, err := simulate(t, c.config, func(o *Options) {
		if change != nil {
			change(o)
		}
		o.Workloads = narrow(c)
		if !slices.Contains([]simserver.Defect{simserver.RMSNorm256, simserver.Preempts, simserver.Dies}, c.defect) {
			o.Count = 8 // the others need no size
		}
	})
	if res == nil {
		t.Fatalf("seed %d: no result: %v", seed, err)
	}
	if report.ExitCode(err) != c.code || res.Verdict.Word != c.word {
		t.Errorf("seed %d: got %s (%v)\n%+v\nwant %s, code %d", seed, res.Verdict.Word, err, res.Verdict, c.word, c.code)
	}
	if c.starts > 0 && c.defect != "" && !strings.Contains(res.Verdict.Sentence, c.names) {
		t.Errorf("seed %d: %q, want %q", seed, res.Verdict.Sentence, c.names)
	}
	if res.Verdict.Word == judge.Variant && res.Workloads[0].Details == nil && len(res.Workloads) == 1 {
		t.Errorf("seed %d: a difference without a description", seed)
	}
}
