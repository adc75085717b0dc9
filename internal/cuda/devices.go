package cuda

import (
	"slices"

	"github.com/invar-ops/invar/internal/host"
)

// Devices are the compute capabilities of the NVIDIA devices that programs can
// use, each once, the driver, and the newest CUDA that it supports, as far as
// the host tells.
func Devices(f host.Facts) (capabilities []int, driver, newest string) {
	v := host.Judge(f)
	add := func(text string) {
		if a, err := ParseArch(text); err == nil && !slices.Contains(capabilities, a.CC) {
			capabilities = append(capabilities, a.CC)
		}
	}
	if v.Vendor != "nvidia" || !v.Health.Usable {
		return nil, f.NVIDIA.Driver, f.NVIDIA.CUDA
	}
	for _, d := range v.Devices {
		if d.ComputeCap != "" {
			add(d.ComputeCap)
		}
	}
	for _, soc := range append([]string{v.SoC}, v.SoCs...) {
		if len(capabilities) == 0 || v.State == host.Conflict {
			add(soc)
		}
	}
	slices.Sort(capabilities)
	return capabilities, v.Driver, v.CUDA
}
