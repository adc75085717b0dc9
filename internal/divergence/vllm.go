package divergence

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// blocks reads the [DIVERGENCE] blocks of vLLM's test_batch_invariance.
type blocks struct {
	prompts map[string]bool
	worst   float64
	at      [2]int
	ids     int // lines with ids
	moved   int // of them with different ones
}

var (
	blockRE = regexp.MustCompile(`\[DIVERGENCE\] Prompt (\d+), Token (\d+): max_diff=([-+0-9.eE]+|nan|inf)`)
	idsRE   = regexp.MustCompile(`Token IDs: bs1=(\S+), bsN=(\S+)`)
)

func (b *blocks) take(line string) {
	if m := blockRE.FindStringSubmatch(line); m != nil {
		if b.prompts == nil {
			b.prompts = map[string]bool{}
		}
		b.prompts[m[1]] = true
		if v, err := strconv.ParseFloat(m[3], 64); err == nil && larger(b.worst, v) {
			b.worst, b.at = v, [2]int{number(m[1]), number(m[2])}
		}
	}
	if m := idsRE.FindStringSubmatch(line); m != nil {
		b.ids++
		if m[1] != m[2] {
			b.moved++
		}
	}
}

func (b *blocks) report() *Report {
	if len(b.prompts) == 0 {
		return nil
	}
	return differ(len(b.prompts), 0, b.worst, b.at[0], b.at[1], b.ids > 0 && b.moved == 0)
}

// script reads the [PASS] and [FAIL] lines of the script of vLLM's PR 45683.
type script struct {
	failed, passed map[string]bool
	worst          float64
	at             [2]int
	pending        string // the BS=1 tokens of the last failure
	moved, shown   int
}

var (
	failRE   = regexp.MustCompile(`\[FAIL\] Prompt (\d+)(?: Step (\d+))?: .*?(?:\(abs diff=([-+0-9.eE]+|nan|inf)\))?\.?$`)
	passRE   = regexp.MustCompile(`\[PASS\] Prompt (\d+): tokens and logprobs match`)
	tokensRE = regexp.MustCompile(`BS=(1|N) tokens: (.*)$`)
)

func (s *script) take(line string) {
	if s.failed == nil {
		s.failed, s.passed = map[string]bool{}, map[string]bool{}
	}
	if m := passRE.FindStringSubmatch(line); m != nil {
		s.passed[m[1]] = true
	}
	if m := failRE.FindStringSubmatch(line); m != nil {
		if v, err := strconv.ParseFloat(m[3], 64); len(s.failed) == 0 || err == nil && larger(s.worst, v) {
			s.worst, s.at = v, [2]int{number(m[1]), number(m[2])}
		}
		s.failed[m[1]] = true
	}
	switch m := tokensRE.FindStringSubmatch(line); {
	case m == nil:
	case m[1] == "1":
		s.pending = m[2]
	default:
		s.shown++
		if m[2] != s.pending {
			s.moved++
		}
	}
}

func (s *script) report() *Report {
	if len(s.failed) == 0 {
		return nil
	}
	r := differ(len(s.failed), len(s.passed), s.worst, s.at[0], s.at[1], s.shown > 0 && s.moved == 0)
	r.Try = "a mixture of experts on several ranks needs vLLM 0.28.0 or newer (#45683); else " + r.Try
	return r
}

// number is the integer in text; 0 where there is none.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}

// count names a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
