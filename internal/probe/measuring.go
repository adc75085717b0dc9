package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
)

// measureRequest asks for levels 6 and 7.
type measureRequest struct {
	Do         string   `json:"do"`
	Module     string   `json:"module"`
	Namespace  string   `json:"namespace"`
	Schedule   Schedule `json:"schedule"`
	Invariance bool     `json:"invariance"`
	NPU        bool     `json:"npu,omitempty"`
	Device     string   `json:"device,omitempty"` // of torch, where tensors are put; empty leaves them on the CPU
}

// A measurement runs the operators in one process for levels 6 and 7 together.
// It starts with level 2, beside the process that answers levels 2 to 5: two
// imports of torch then take the time of one.
type measurement struct {
	cancel context.CancelFunc
	done   chan struct{}
	at     chan int64 // how far it is; old news may be dropped
	result measured
	err    error
}

// start begins the measurement. stop ends it when an earlier level failed.
func (p *prober) start(ctx context.Context) (*measurement, error) {
	schedule, err := p.schedule()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &measurement{cancel: cancel, done: make(chan struct{}), at: make(chan int64, 64)}
	req := measureRequest{
		Do: "measure", Module: install.Package, Namespace: install.Package,
		Schedule: schedule, Invariance: p.Level >= Invariance, NPU: p.onNPU(), Device: p.device(),
	}
	go func() {
		defer close(m.done)
		m.err = p.session.ask(ctx, req, &m.result, measureLimit, func(done, _ int64) {
			select {
			case m.at <- done:
			default:
			}
		})
	}()
	return m, nil
}

// stop ends the process, if it still runs, and waits until it is gone.
func (m *measurement) stop() {
	if m != nil {
		m.cancel()
		<-m.done
	}
}

// wait passes progress on to step until the process has answered.
func (m *measurement) wait(step report.Step) error {
	var last int64
	for {
		select {
		case now := <-m.at:
			step.Add(max(0, now-last))
			last = now
		case <-m.done:
			return m.err
		}
	}
}

// schedule is the built-in one, for the operators of the target.
func (p *prober) schedule() (Schedule, error) {
	profile := "quick"
	if p.Full {
		profile = "full"
	}
	load := LoadSchedule
	if p.onNPU() {
		load = loadAscendSchedule
	}
	s, err := load(profile)
	if err != nil {
		return s, err
	}
	var names []string
	for _, o := range p.target.Operators {
		names = append(names, o.Name)
	}
	p.plan, p.uncovered = s.only(names)
	return p.plan, nil
}

// numbers is level 6: each operator runs, and its results are within the error
// bound of float32 arithmetic in any order around the float64 result.
func (p *prober) numbers(ctx context.Context) ([]report.Check, error) {
	var err error
	if p.measuring == nil { // whether there is a device was known at level 2 only
		if p.measuring, err = p.start(ctx); err != nil {
			return nil, err
		}
	}
	err = p.measuring.wait(p.begin(p.Level))
	if d, ok := errors.AsType[*died](err); ok {
		return []report.Check{deadCheck(Numbers, "run", d)}, nil
	}
	if err != nil {
		return nil, err
	}
	m := &p.measuring.result
	p.measured = m
	var out []report.Check
	for _, name := range p.operatorNames() {
		out = append(out, p.numberCheck(name, m.Numbers))
	}
	return out, nil
}

func (p *prober) operatorNames() []string {
	var out []string
	for _, o := range p.target.Operators {
		out = append(out, o.Name)
	}
	return out
}

const numberWant = "within the float32 error bound of the float64 result (Higham, sections 3.1 and 4.2), infinities and NaN in their places"

// numberCheck judges one operator over its shapes and dtypes.
func (p *prober) numberCheck(name string, all []numberFacts) report.Check {
	var wrong []string
	worst, where, n := 0.0, "", 0
	for _, f := range all {
		if f.Operator != name && !p.through(f.Operator, f.Family, name) {
			continue
		}
		n++
		if f.Error != "" {
			wrong = append(wrong, fmt.Sprintf("%s %s: %s", f.Label, f.Dtype, f.Error))
			continue
		}
		for i, d := range append(f.Ordinary, f.Special...) {
			kind := "ordinary values"
			if i >= len(f.Ordinary) {
				kind = "infinities and NaN"
			}
			if text := numberFault(d); text != "" {
				wrong = append(wrong, fmt.Sprintf("%s %s, %s: %s", f.Label, f.Dtype, kind, text))
			}
			if d.Ratio > worst {
				worst, where = d.Ratio, f.Label+" "+f.Dtype
			}
		}
	}
	c := check(Numbers, "numbers of "+name, len(wrong) == 0, numberWant, strings.Join(wrong, "\n"))
	switch {
	case n == 0:
		c.Status, c.Reason, c.Got = report.Unclear, "no line of the schedule calls "+name, ""
	case len(wrong) > 0:
		c.Hint = "the kernels are wrong on this machine: compare INVAR_CPU_ISA=baseline, and report it with invar probe --json"
	default:
		c.Got = fmt.Sprintf("largest error %.2f of what is allowed (%s)", worst, where)
	}
	return c
}

// numberFault says what is wrong with one output; "" when nothing is.
func numberFault(d deviation) string {
	switch {
	case d.Error != "":
		return d.Error
	case d.Nonfinite > 0:
		return fmt.Sprintf("%d elements are NaN or infinite where they should not be, or the reverse; row %d element %d is %s, want %s", d.Nonfinite, d.Row, d.Element, d.Got, d.Want)
	case d.Ratio > 1:
		return fmt.Sprintf("row %d element %d is %s, want %s within %s", d.Row, d.Element, d.Got, d.Want, d.Allowed)
	case d.Elements == 0 || d.Zero:
		return "the result is empty or all zero"
	}
	return ""
}
