package probe

import (
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

// TestSimulatedLine: what was skipped is not said to have run on the simulated device.
func TestSimulatedLine(t *testing.T) {
	t.Parallel()
	for want, status := range map[string][2]report.Status{
		"levels 6 and 7 ran on a look-alike":    {report.Pass, report.Fail},
		"level 6 ran on a look-alike":           {report.Fail, report.Skip},
		"that of a look-alike: no level ran on": {report.Skip, report.Skip},
	} {
		res := Result{Simulated: "look-alike", Levels: []Level{{Level: Kernels, Status: report.Pass}, {Level: 6, Status: status[0]}, {Level: 7, Status: status[1]}}}
		if got := strings.Join(summarize(res), "\n"); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", status, got, want)
		}
	}
}
