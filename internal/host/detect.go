package host

import (
	"context"
	"sync"
	"time"

	"github.com/invar-ops/invar/internal/host/chip"
	"github.com/invar-ops/invar/internal/run"
)

// DefaultTimeout bounds one question to a vendor tool. npu-smi on a node with
// 16 cards under load takes seconds.
const DefaultTimeout = 15 * time.Second

// Options say which machine to ask.
type Options struct {
	Root string // "" or "/" is this machine; any other folder is read as one
	// Runner starts vendor tools. nil starts none. With another root it must
	// answer for that root: System would ask this machine.
	Runner  run.Runner
	Env     []string      // KEY=VALUE: SOC_VERSION, visibility variables, PATH
	SoC     string        // what the user said it is; decides over every source
	Timeout time.Duration // of one question; 0 is DefaultTimeout
	// Whole asks vendor tools everything, though the first answers told all that
	// decides: for a record, and for who wants to see every source.
	Whole bool
}

// Detect asks every source at once and reads what they say. A fact that it
// cannot read is left unknown with the reason in the evidence; Detect itself
// fails only on ctx.
func Detect(ctx context.Context, o Options) (Facts, error) {
	rules, err := chip.Load()
	if err != nil {
		return Facts{}, err
	}
	a := &asker{root: o.Root, runner: o.Runner, env: o.Env, timeout: o.Timeout, whole: o.Whole}
	if a.root == "" {
		a.root = "/"
	}
	if a.timeout == 0 {
		a.timeout = DefaultTimeout
	}
	var all []source
	all = append(all, toolSources...)
	all = append(all, deviceSources...)
	all = append(all, systemSources...)
	answers := make([][]Evidence, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { answers[i] = s(ctx, a) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Facts{}, context.Cause(ctx)
	}
	evidence := option(o.SoC)
	for _, e := range answers {
		evidence = append(evidence, e...)
	}
	return understand(rules, evidence), nil
}

// option is the evidence of --soc.
func option(soc string) []Evidence {
	if soc == "" {
		return nil
	}
	return []Evidence{{Source: "--soc", Asked: "--soc " + soc, Answer: soc}}
}

// With returns f as if --soc had been given when it was read.
func (f Facts) With(soc string) Facts {
	rules, err := chip.Load()
	if err != nil || soc == "" {
		return f
	}
	evidence := option(soc)
	for _, e := range f.Evidence {
		if e.Source != "--soc" {
			evidence = append(evidence, e)
		}
	}
	g := f
	g.Evidence = evidence
	readValue(rules, &g, &g.Evidence[0])
	return g
}

// settle fills in what several sources may know.
func settle(f *Facts) {
	for _, e := range f.Evidence {
		r := e.Reading
		if r == nil {
			continue
		}
		driver, firmware := &f.NVIDIA.Driver, new(string)
		if r.Vendor == chip.Huawei {
			driver, firmware = &f.Ascend.Driver, &f.Ascend.Firmware
		}
		if *driver == "" {
			*driver = r.Driver
		}
		if r.Firmware != "" {
			*firmware = r.Firmware // what runs comes before what a file says
		}
		if f.NVIDIA.CUDA == "" {
			f.NVIDIA.CUDA = r.CUDA
		}
	}
	if f.Ascend.Driver == "" {
		f.Ascend.Driver = f.Ascend.Installed
	}
}
