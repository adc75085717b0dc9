package probe

import (
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
)

// deviceSchedule is the built-in one with few rows: what is tested is the way
// that tensors, counts and settings take for a device, not the kernels.
func deviceSchedule(t *testing.T) Schedule {
	t.Helper()
	s, err := LoadSchedule("quick")
	if err != nil {
		t.Fatal(err)
	}
	s.Observe = nil
	s.Sweeps = []Sweep{
		{Name: "sizes", Rows: []int{1, 2, 3, 17, 33, 65}},
		{Name: "layouts", Rows: []int{17}, Layouts: []string{"offset", "padded", "spaced", "transposed"}},
		{Name: "neighbours", Rows: []int{17}, Orders: []string{}, Fills: []string{"zeros", "huge", "nan"}, Positions: []string{"0", "7", "last"}},
		{Name: "routed", Rows: []int{1, 17}, Routed: true},
	}
	for i := range s.Sweeps {
		s.Sweeps[i].fillIn()
	}
	s.Settings = []Setting{
		{ISA: "best", Threads: 1, Sweeps: []string{"sizes", "layouts", "neighbours", "routed"}},
		{ISA: "best", Threads: 0, Sweeps: []string{"sizes"}},
		{ISA: "slow", Threads: 1, Sweeps: []string{"sizes"}},
	}
	return s
}

// onDevice runs levels 6 and 7 as for a GPU, on torch's device "cpu", and gives
// what judges the answers.
func onDevice(t *testing.T, i *fixture, s Schedule) *prober {
	t.Helper()
	session, err := newSession(i.py.Exe, cleanEnv(), run.System{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.close()
	p := &prober{target: target.Target{}, plan: s}
	for _, o := range s.Operators {
		p.target.Operators = append(p.target.Operators, target.Operator{Name: o.Operator})
	}
	var m measured
	err = session.ask(t.Context(), measureRequest{
		Do: "measure", Module: install.Package, Namespace: install.Package, Schedule: s, Invariance: true, Device: "cpu",
	}, &m, measureLimit, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.measured = &m
	return p
}

// TestDevicePath runs the code of levels 6 and 7 that a GPU gets, with tensors
// on the CPU: every operator passes, the control is caught, routed calls are
// counted, and there is one level, the device.
func TestDevicePath(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := deviceSchedule(t)
	p := onDevice(t, setUp(t, makeBundle(t, "good")), s)
	checks, err := p.invariance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range p.operatorNames() {
		checks = append(checks, p.numberCheck(name, p.measured.Numbers))
	}
	for _, c := range checks {
		if c.Status != report.Pass {
			t.Errorf("%s: %s, %s%s", c.Name, c.Status, c.Got, c.Reason)
		}
	}
	if !slices.Equal(p.coverage.ISALevels, []string{"cpu"}) || p.coverage.Control == 0 || p.coverage.Pairs == 0 || len(p.coverage.Functions) == 0 {
		t.Errorf("covered %+v; want the device as the only level, pairs, functions and a control that differs", p.coverage)
	}
}

// TestDevicePathFindsFaults: an operator that depends on the batch, one that is
// wrong, data that show nothing and a control that is no control are told apart.
func TestDevicePathFindsFaults(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := deviceSchedule(t)
	s.Dtypes, s.Routed = []string{"float32"}, nil
	s.Operators = []Spec{
		{Operator: "_control_mm", Family: "product", Size: 256, Columns: 24},
		{Operator: "torch:amax", Family: "reduce", Size: 100}, // no sum, and no order shows in it
		{Operator: "no_such", Family: "reduce", Size: 100},    // resolves to nothing
		{Operator: "mm", Family: "product", Size: 300, Columns: 20},
	}
	s.Control = &Spec{Operator: "mm", Family: "product", Size: 256, Columns: 24}
	p := onDevice(t, setUp(t, makeBundle(t, "good")), s)
	f := p.measured.Invariance
	for _, tc := range []struct {
		c      report.Check
		status report.Status
		text   string
	}{
		{p.bits("_control_mm", f), report.Fail, "pairs differ, at m = "},
		{p.bits("torch:amax", f), report.Unclear, "no bit changes when the reduction runs in another order"},
		{p.bits("no_such", f), report.Fail, "no_such"},
		{p.bits("mm", f), report.Pass, " 0 differ"},
		{p.numberCheck("torch:amax", p.measured.Numbers), report.Fail, "want"},
		{p.numberCheck("no_such", p.measured.Numbers), report.Fail, "AttributeError"},
		{p.numberCheck("mm", p.measured.Numbers), report.Pass, "largest error"},
		{control(f), report.Unclear, "the control was not caught in float32"},
	} {
		if tc.c.Status != tc.status || !strings.Contains(tc.c.Got+tc.c.Reason, tc.text) {
			t.Errorf("%s: %s, %s%s; want %s with %q", tc.c.Name, tc.c.Status, tc.c.Got, tc.c.Reason, tc.status, tc.text)
		}
	}
}
