package probe

import (
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/proof"
	"github.com/invar-ops/invar/internal/report"
)

// TestDriverServes: the runtime in the library is that of the toolkit, so its
// driver is asked for, whatever torch was built for.
func TestDriverServes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		toolkit, driver string
		asked           bool
		status          report.Status
	}{
		{"13.2.86", "580.65.06", true, report.Pass},
		{"13.2.86", "575.57.08", true, report.Fail},
		{"12.8.93", "575.57.08", true, report.Pass},
		{"12.8.93", "470.256.02", true, report.Fail},
		{"13.2.86", "", false, ""},
		{"9.2", "580.65.06", false, ""},
	} {
		c, ok := driverServes(proof.Proof{Toolkit: tc.toolkit}, gpuState{driver: tc.driver})
		if ok != tc.asked || c.Status != tc.status {
			t.Errorf("CUDA %s on driver %s: %v %s, want %v %s", tc.toolkit, tc.driver, ok, c.Status, tc.asked, tc.status)
		}
		if c.Status == report.Fail && (!strings.Contains(c.Want, ">= ") || c.Got != tc.driver || c.Hint == "") {
			t.Errorf("CUDA %s on driver %s: %+v", tc.toolkit, tc.driver, c)
		}
	}
}
