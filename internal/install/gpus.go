package install

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/runpkg"
)

// checkGPUs refuses a run package whose GPU code runs on none of the devices of
// this host, by what its manifest says. A host without a device is let be: the
// package may be for another one, and the operators of the CPU work here.
func checkGPUs(m *runpkg.Manifest, devices []int) error {
	if m == nil || len(devices) == 0 || m.Extra["cuda"] == nil {
		return nil
	}
	var code struct {
		Arches []string `json:"arches"`
	}
	if err := json.Unmarshal(m.Extra["cuda"], &code); err != nil {
		return fmt.Errorf("%s: architectures in the manifest: %w", m.Name, err)
	}
	arches, err := cuda.ParseList(strings.Join(code.Arches, ","))
	if err != nil {
		return fmt.Errorf("%s: architectures in the manifest: %w", m.Name, err)
	}
	if missing := cuda.Unserved(arches, devices); len(missing) < len(devices) {
		return nil
	}
	var own []string
	for _, d := range devices {
		own = append(own, fmt.Sprintf("%d.%d", d/10, d%10))
	}
	p := report.Problemf(report.Unmet, "%s %s has no code for the GPUs of this host", m.Name, m.Version).
		WithWant("code that runs on compute capability "+strings.Join(own, ", "), cuda.Join(arches)).
		WithHint("build it for them: invar build cuda --arch %s", strings.Join(own, ","))
	p.State = "nothing was changed"
	return p
}
