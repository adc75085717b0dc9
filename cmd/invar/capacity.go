package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/capacity"
	"github.com/invar-ops/invar/internal/deployment"
	"github.com/invar-ops/invar/internal/lint"
	"github.com/invar-ops/invar/internal/metrics"
	"github.com/invar-ops/invar/internal/report"
)

func capacityCommand() *cli.Command {
	return &cli.Command{
		Name: "capacity", Usage: "can the planned load preempt requests",
		Description: "Reads the size of the KV cache from a start-up log or a running server's /metrics, the limits\n" +
			"from the server's flags after \"--\", and says whether the load fits without preemption, which\n" +
			"recomputes and breaks batch invariance on Ascend. Exit code 5: it does not fit; 6: it cannot be told.",
		UsageText: "invar capacity server.log --requests 64 --tokens 4096\n" +
			"invar capacity http://127.0.0.1:8000 -- vllm serve MODEL --max-num-seqs 32 --max-model-len 4096\n" +
			"invar capacity --watch http://127.0.0.1:8000 --for 10m",
		ArgsUsage: "[LOG|-|URL] [-- COMMAND...]",
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.IntFlag{Name: "requests", Usage: "requests at the same time (default --max-num-seqs of the command)"},
			&cli.IntFlag{Name: "tokens", Usage: "tokens of one request, prompt and answer (default the longest that the server takes)"},
			&cli.StringFlag{Name: "watch", Usage: "watch the server at `URL` and report preemptions as they happen"},
			&cli.DurationFlag{Name: "for", Usage: "end of --watch (default: until it is interrupted)"},
			&cli.DurationFlag{Name: "interval", Value: 2 * time.Second, Usage: "how often --watch asks"},
		},
		Action: runCapacity,
	}
}

func runCapacity(c *cli.Context) error {
	if c.Int("requests") < 0 || c.Int("tokens") < 0 || c.Duration("interval") <= 0 {
		return report.Usagef("--requests, --tokens and --interval are positive")
	}
	if url := c.String("watch"); url != "" {
		return watchCapacity(c, url)
	}
	caches, err := capacityInput(c)
	if err != nil {
		return err
	}
	load := capacity.Load{Requests: c.Int("requests"), Tokens: c.Int("tokens")}
	var answers []capacity.Answer
	for _, cache := range caches {
		answers = append(answers, capacity.Judge(cache, load))
	}
	verdict := capacityVerdict(answers)
	if c.Bool("json") {
		return printed(c, "capacity", map[string]any{"starts": answers}, verdict)
	}
	for i, a := range answers {
		if i > 0 {
			fmt.Fprintln(c.App.Writer)
		}
		showCapacity(c.App.Writer, a)
	}
	return verdict
}

// capacityInput reads the log or the metrics, and the flags after "--".
func capacityInput(c *cli.Context) ([]capacity.Cache, error) {
	args := c.Args().Slice()
	var command []string
	source := ""
	if len(args) > 0 && (len(args) == 1 || !strings.HasPrefix(args[0], "vllm") && !strings.HasPrefix(args[0], "python")) {
		source, command = args[0], args[1:]
	} else {
		command = args
	}
	if source == "" && len(command) == 0 {
		return nil, report.Usagef("capacity needs something to read").WithWant("a log, -, a URL or -- COMMAND", "nothing").WithHint("invar capacity --help")
	}
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	caches := []capacity.Cache{{}}
	if source != "" {
		var err error
		if caches, err = readCaches(c.Context, source); err != nil {
			return nil, err
		}
	}
	limits, err := limitsOf(command)
	if err != nil {
		return nil, err
	}
	for i := range caches {
		limits.apply(&caches[i])
	}
	return caches, nil
}

func readCaches(ctx context.Context, source string) ([]capacity.Cache, error) {
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		s, err := capacity.Fetch(ctx, &http.Client{Timeout: 30 * time.Second}, source)
		if err != nil {
			return nil, report.Problemf(report.Failed, "%w", err).WithHint("is the server up, and is %s its address?", source)
		}
		return []capacity.Cache{capacity.FromMetrics(s)}, nil
	}
	var b []byte
	var err error
	if source == "-" {
		b, err = io.ReadAll(io.LimitReader(os.Stdin, 1<<30))
	} else {
		b, err = os.ReadFile(source)
	}
	if err != nil {
		return nil, report.Problemf(report.Failed, "%w", err).WithHint("name a log, - for standard input, or a URL")
	}
	if s, err := metrics.Parse(b); err == nil && s.HasPrefix("vllm:") { // a saved /metrics
		return []capacity.Cache{capacity.FromMetrics(s)}, nil
	}
	caches, err := capacity.Log(string(b))
	if err == nil && len(caches) == 0 {
		return nil, report.Problemf(report.Inconclusive, "%s says nothing about a KV cache", source).
			WithWant("the log of a start (\"GPU KV cache size: N tokens\"), or /metrics", "no such line").WithHint("read the server's own log from its start")
	}
	return caches, err
}

// limits are the flags of the server that bound a load.
type limits struct{ maxSeqs, length, blockSize int }

func limitsOf(command []string) (limits, error) {
	if len(command) == 0 {
		return limits{}, nil
	}
	f, _, err := lint.FactsOf(deployment.Deployment{Argv: command}, lint.Given{})
	if err != nil {
		return limits{}, err
	}
	if f.Engine == "" {
		return limits{}, report.Usagef("%q starts no known engine", command[0]).WithHint("for example -- vllm serve MODEL --max-num-seqs 32")
	}
	number := func(fact string) int {
		n, err := strconv.Atoi(f.Values[fact])
		if err != nil {
			return 0 // not given, or "auto"
		}
		return n
	}
	return limits{number("max_num_seqs"), number("max_model_len"), number("block_size")}, nil
}

func (l limits) apply(c *capacity.Cache) {
	if l.maxSeqs > 0 {
		c.MaxSeqs = l.maxSeqs
	}
	if l.length > 0 && c.Length == 0 {
		c.Length = l.length
	}
	if l.blockSize > 0 {
		c.SetBlockSize(l.blockSize)
	}
}

func capacityVerdict(answers []capacity.Answer) error {
	for _, a := range answers {
		if a.Fits != nil && !*a.Fits {
			return report.Problemf(report.CheckFailed, "the load does not fit").WithWant("no preemption", a.Reason).
				WithHint("%s", strings.Join(a.Change, "; or "))
		}
	}
	for _, a := range answers {
		if a.Fits == nil {
			return report.Problemf(report.Inconclusive, "whether the load fits cannot be told").WithWant("the size of the KV cache, --requests and --tokens", a.Reason)
		}
		if a.Cache.Preemptions > 0 {
			return report.Problemf(report.CheckFailed, "requests were preempted").WithWant("0 preemptions", fmt.Sprint(a.Cache.Preemptions)).WithHint("lower --max-num-seqs")
		}
	}
	return nil
}

func showCapacity(w io.Writer, a capacity.Answer) {
	c := a.Cache
	row := func(name, value string, there bool) {
		if there {
			fmt.Fprintf(w, "%-12s %s\n", name, value)
		}
	}
	row("KV cache", fmt.Sprintf("%d tokens", c.Tokens), c.Tokens > 0)
	row("memory", fmt.Sprintf("%.2f GiB for the KV cache", c.MemoryGiB), c.MemoryGiB > 0)
	row("weights", fmt.Sprintf("%.2f GiB", c.WeightsGiB), c.WeightsGiB > 0)
	row("concurrency", fmt.Sprintf("%.2f requests of %d tokens, as the server says", c.Concurrency, c.Length), c.Concurrency > 0)
	row("usage", fmt.Sprintf("%.1f %% at most so far", c.Usage), c.Usage > 0)
	row("load", fmt.Sprintf("%d requests of %d tokens", a.Load.Requests, a.Load.Tokens), a.Load.Requests > 0 && a.Load.Tokens > 0)
	row("answer", a.Reason, true)
	for _, change := range a.Change {
		row("change", change, true)
	}
	for _, text := range append(a.Warnings, c.Notes...) {
		row("note", text, true)
	}
}

// watchCapacity reports preemptions until its time is over or Ctrl-C.
func watchCapacity(c *cli.Context, url string) error {
	if c.Args().Present() {
		return report.Usagef("--watch and %q: want one of them", c.Args().First())
	}
	ctx := c.Context
	if d := c.Duration("for"); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	began := time.Now()
	total, answers, err := capacity.Watch(ctx, &http.Client{Timeout: 30 * time.Second}, url, c.Duration("interval"), func(n int) {
		fmt.Fprintf(c.App.ErrWriter, "%s: %s: a verification that runs now is inconclusive on Ascend\n", time.Now().Format(time.TimeOnly), plural(n, "preemption", "preemptions"))
	})
	switch {
	case err != nil:
		err = report.Problemf(report.Failed, "watching ended: %w", err).WithHint("is the server up, and is %s its address?", url)
	case total > 0:
		err = report.Problemf(report.CheckFailed, "requests were preempted").WithWant("0 preemptions", fmt.Sprint(total)).WithHint("invar capacity %s --requests N --tokens N says what fits", url)
	case answers < 2:
		err = report.Problemf(report.Inconclusive, "the server was asked once only: nothing can have changed").WithHint("a longer --for, or a shorter --interval")
	}
	if c.Bool("json") {
		return printed(c, "capacity", map[string]any{"preemptions": total, "answers": answers, "seconds": time.Since(began).Seconds()}, err)
	}
	if err == nil {
		fmt.Fprintf(c.App.Writer, "no preemption in %s, asked %d times\n", time.Since(began).Round(time.Second), answers)
	}
	return err
}
