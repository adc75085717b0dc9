package host

import (
	"context"

	"github.com/invar-ops/invar/internal/host/chip"
)

// Limits is how much of a machine a process may use.
type Limits struct {
	CPUs        int   // affinity and cgroup quota, rounded up; 0 is not known
	MemoryBytes int64 // the smaller of the machine's and the cgroup's; 0 is not known
}

// ReadLimits reads the limits of this process below root ("" is "/"). It
// starts nothing and takes less than a millisecond.
func ReadLimits(root string) Limits {
	rules, err := chip.Load()
	if err != nil {
		return Limits{}
	}
	a := &asker{root: root}
	if root == "" {
		a.root = "/"
	}
	evidence := append(askCPU(context.Background(), a), askLimits(context.Background(), a)...)
	return understand(rules, evidence).Limits()
}

// Limits is how much of the machine a process may use.
func (f Facts) Limits() Limits {
	l := Limits{CPUs: f.CPU.Cores, MemoryBytes: f.Memory.TotalBytes}
	if f.CPU.Affinity > 0 && (l.CPUs == 0 || f.CPU.Affinity < l.CPUs) {
		l.CPUs = f.CPU.Affinity
	}
	// A quota of 1.5 CPUs keeps two jobs busy.
	if q := int(f.CPUQuota + 0.999); f.CPUQuota > 0 && (l.CPUs == 0 || q < l.CPUs) {
		l.CPUs = q
	}
	if c := f.Memory.CgroupLimitBytes; c > 0 && (l.MemoryBytes == 0 || c < l.MemoryBytes) {
		l.MemoryBytes = c
	}
	return l
}
