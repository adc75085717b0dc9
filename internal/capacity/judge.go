package capacity

import (
	"fmt"
	"strconv"

	"github.com/invar-ops/invar/internal/metrics"
)

// A Load is what a server will be asked to do.
type Load struct {
	Requests int `json:"requests"` // at the same time
	Tokens   int `json:"tokens"`   // of one request: prompt and answer together
}

// An Answer says whether a load fits, and what would make it fit.
type Answer struct {
	Cache    Cache    `json:"cache"`
	Load     Load     `json:"load"`
	Fits     *bool    `json:"fits"`   // nil: it cannot be told
	Need     int      `json:"need"`   // tokens of KV cache that the load can fill
	Most     int      `json:"most"`   // requests of that size that fit at once
	Reason   string   `json:"reason"` // why, in one line
	Change   []string `json:"change"` // flags that prevent preemption, with the numbers that result
	Warnings []string `json:"warnings,omitempty"`
}

// Judge compares a load with a cache. What the load leaves open is taken from
// the cache: the server's own limits on requests and length.
func Judge(c Cache, l Load) Answer {
	if l.Requests == 0 {
		l.Requests = c.MaxSeqs
	}
	if l.Tokens == 0 {
		l.Tokens = c.Length
	}
	a := Answer{Cache: c, Load: l, Change: []string{}}
	switch {
	case c.Refused:
		a.refused()
	case c.Tokens == 0 && c.Concurrency == 0:
		a.Reason = "the size of the KV cache is not known"
	case l.Requests == 0 || l.Tokens == 0:
		a.Reason = "the load is not known: how many requests at once, and how long"
	default:
		a.compare()
	}
	if c.Preemptions > 0 {
		a.Warnings = append(a.Warnings, fmt.Sprintf("%d preemptions were seen already", c.Preemptions))
	}
	if c.Failed {
		a.Warnings = append(a.Warnings, "the server printed these numbers and then did not start")
	}
	return a
}

func (a *Answer) refused() {
	fits := false
	a.Fits = &fits
	c := a.Cache
	a.Reason = "the server did not start: not even one request fits"
	if c.NeedGiB > 0 {
		a.Reason = fmt.Sprintf("the server did not start: one request of %d tokens needs %.2f GiB of KV cache, %.2f GiB are there", c.Length, c.NeedGiB, c.MemoryGiB)
	}
	longest := c.LongestFits
	if longest == 0 && c.NeedGiB > 0 { // a plain model: memory goes with the length
		longest = int(float64(c.Length) * c.MemoryGiB / c.NeedGiB)
	}
	if longest > 0 {
		a.Change = append(a.Change, fmt.Sprintf("--max-model-len %d: one request fits", longest))
	}
}

// compare fills in whether the load fits. Blocks are taken whole, and prefix
// caching is not counted on: it may miss.
func (a *Answer) compare() {
	c, l := a.Cache, a.Load
	size := roundUp(l.Tokens, max(c.BlockSize, 1))
	a.Need = l.Requests * size
	if c.Tokens == 0 || c.inconsistent() {
		// Only the server's own ratio can be used, for its own length.
		a.Most = int(c.Concurrency)
		if l.Tokens < c.Length {
			a.Warnings = append(a.Warnings, fmt.Sprintf("for requests of %d tokens more may fit than for %d, which is all that this server tells", l.Tokens, c.Length))
		}
	} else {
		a.Most = c.Tokens / size
	}
	fits := l.Requests <= a.Most
	a.Fits = &fits
	if fits {
		a.Reason = fmt.Sprintf("%d requests of %d tokens fit at once, %d are planned: no preemption", a.Most, l.Tokens, l.Requests)
		return
	}
	a.Reason = fmt.Sprintf("%d requests of %d tokens fit at once, %d are planned: the others are preempted as they grow", a.Most, l.Tokens, l.Requests)
	if a.Most > 0 {
		a.Change = append(a.Change, fmt.Sprintf("--max-num-seqs %d: at most %s tokens at once", a.Most, strconv.Itoa(a.Most*size)))
	}
	if c.Tokens > 0 && !c.inconsistent() {
		length := c.Tokens / l.Requests / max(c.BlockSize, 1) * max(c.BlockSize, 1)
		if length > 0 {
			a.Change = append(a.Change, fmt.Sprintf("--max-model-len %d: %d requests fit", length, l.Requests))
		}
		if c.MemoryGiB > 0 {
			need := c.MemoryGiB * float64(a.Need) / float64(c.Tokens)
			a.Change = append(a.Change, fmt.Sprintf("%.2f GiB more for the KV cache (--gpu-memory-utilization, --tensor-parallel-size): %.2f GiB hold the load", need-c.MemoryGiB, need))
		}
	}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// FromMetrics reads a running server's /metrics.
func FromMetrics(s metrics.Snapshot) Cache {
	var c Cache
	labels := s.Labels("vllm:cache_config_info")
	c.Blocks, c.BlockSize = integer(labels["num_gpu_blocks"]), integer(labels["block_size"])
	c.Tokens = c.Blocks * c.BlockSize
	c.Preemptions = Preemptions(s)
	if sums, ok := s.Sum("", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"); ok {
		for _, v := range sums {
			c.Usage = max(c.Usage, 100*v)
		}
	}
	return c
}

// Preemptions is the counter of a running server over all its engines.
func Preemptions(s metrics.Snapshot) int {
	n := 0.0
	if sums, ok := s.Sum("engine", "vllm:num_preemptions_total", "vllm:num_preemptions"); ok {
		for _, v := range sums {
			n += v
		}
	}
	return int(n)
}
