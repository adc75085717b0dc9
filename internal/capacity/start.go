package capacity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A builder collects the events of one start.
type builder struct {
	c       Cache
	any     bool
	seen    map[string]bool
	resumed map[string]bool
}

// starts reports whether e belongs to the next start: what a server prints once
// has been printed already.
func (b *builder) starts(e event) bool {
	once := e.name == "kv_tokens" || e.name == "refused" || e.name == "available" || e.name == "blocks"
	return once && (b.seen[e.name] || e.name == "refused" && b.seen["kv_tokens"])
}

func (b *builder) add(e event) {
	if b.seen == nil {
		b.seen, b.resumed = map[string]bool{}, map[string]bool{}
	}
	b.any, b.seen[e.name] = true, true
	v := e.values
	switch e.name {
	case "kv_tokens":
		b.c.Tokens = integer(v["tokens"])
	case "concurrency":
		b.c.Length, b.c.Concurrency = integer(v["length"]), number(v["times"])
	case "blocks":
		b.c.Blocks = integer(v["blocks"])
	case "available":
		b.c.MemoryGiB = number(v["gib"])
	case "weights":
		b.c.WeightsGiB = number(v["gib"])
	case "refused":
		b.c.Refused, b.c.Length, b.c.NeedGiB, b.c.MemoryGiB = true, integer(v["length"]), number(v["need"]), number(v["have"])
	case "estimate":
		b.c.LongestFits = integer(v["length"])
	case "no_memory":
		b.c.Refused = true
		b.note("no memory was left for the KV cache: another process may hold the device (look with nvidia-smi or npu-smi); a higher --gpu-memory-utilization does not help then")
	case "preempted":
		b.c.Preemptions = max(b.c.Preemptions, integer(v["count"]))
	case "preempted_lately":
		b.c.Preemptions += integer(v["count"])
	case "resumed":
		b.resumed[v["id"]] = true
		b.c.Preemptions = max(b.c.Preemptions, len(b.resumed))
	case "usage":
		b.c.Usage = max(b.c.Usage, number(v["percent"]))
	case "padding":
		b.c.Waste = number(v["percent"])
	case "failed":
		b.c.Failed = true
	case "other_engine":
		b.note("the line of another engine (" + v["tokens"] + " tokens) was not counted")
	}
}

func (b *builder) note(text string) { b.c.Notes = append(b.c.Notes, text) }

// cache is what was collected, with what follows from it.
func (b *builder) cache() Cache {
	c := b.c
	if c.Tokens == 0 && c.Blocks > 0 {
		if size := c.impliedBlockSize(); size > 0 {
			c.BlockSize = size
			c.Notes = append(c.Notes, fmt.Sprintf("block size %d, which is what blocks and concurrency together say", size))
		} else {
			c.BlockSize = 16
			c.Notes = append(c.Notes, assumedBlock)
		}
		c.Tokens = c.Blocks * c.BlockSize
	}
	if c.inconsistent() {
		c.Notes = append(c.Notes, fmt.Sprintf("the log says %d tokens and %.2f requests of %d, which do not fit together (layers with a state of their own): neither is derived from the other", c.Tokens, c.Concurrency, c.Length))
	}
	if c.Usage > 90 && c.Preemptions == 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("the KV cache was %.1f %% full: preemption is near", c.Usage))
	}
	return c
}

// assumedBlock is said where nothing tells the block size.
const assumedBlock = "block size 16, V0's default"

// impliedBlockSize is the tokens of a block that make the printed concurrency
// true, 0 when there is none. Engines use powers of two (16 on GPUs, 128 on NPUs).
func (c Cache) impliedBlockSize() int {
	for size := 8; size <= 1024 && c.Length > 0 && c.Concurrency > 0; size *= 2 {
		if ratio := float64(c.Blocks) * float64(size) / (c.Concurrency * float64(c.Length)); ratio > 0.98 && ratio < 1.02 {
			return size
		}
	}
	return 0
}

// SetBlockSize takes --block-size, which goes before an assumed one.
func (c *Cache) SetBlockSize(size int) {
	if i := slices.Index(c.Notes, assumedBlock); i >= 0 {
		c.Notes = slices.Delete(c.Notes, i, i+1)
		c.Tokens = c.Blocks * size
	}
	c.BlockSize = size
}

// inconsistent reports whether tokens and concurrency contradict each other,
// as for hybrid models; a rounded ratio differs by less than two percent.
func (c Cache) inconsistent() bool {
	if c.Tokens == 0 || c.Length == 0 || c.Concurrency == 0 {
		return false
	}
	ratio := float64(c.Tokens) / float64(c.Length) / c.Concurrency
	return ratio < 0.98 || ratio > 1.02
}

func integer(s string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
	if err != nil {
		return 0 // the pattern lets digits and commas in only
	}
	return n
}

func number(s string) float64 {
	f, err := strconv.ParseFloat(strings.TrimSuffix(s, "."), 64)
	if err != nil {
		return 0
	}
	return f
}
