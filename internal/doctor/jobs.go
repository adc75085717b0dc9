package doctor

import (
	"fmt"

	"github.com/invar-ops/invar/internal/report"
)

// Jobs is how many compile jobs fit, and how that was worked out.
type Jobs struct {
	Recommended int    `json:"recommended"`
	How         string `json:"how"`
	Set         string `json:"set,omitempty"` // MAX_JOBS
}

const gib = 1 << 30

// jobs divides the memory that may be used by the peak of one job.
func (j *judge) jobs() (*Jobs, []Finding) {
	l := j.f.Limits
	cost, ok := j.d.jobCost(j.t.Flavour)
	if !ok || l.Memory == 0 || l.CPUs == 0 {
		return nil, nil
	}
	room, from := l.Available, "MemAvailable"
	if l.Cgroup > 0 && l.Cgroup-l.CgroupUsed < room {
		room, from = l.Cgroup-l.CgroupUsed, fmt.Sprintf("cgroup limit %.1f GiB less %.1f GiB in use (%s)", float64(l.Cgroup)/gib, float64(l.CgroupUsed)/gib, l.CgroupFile)
	}
	fit := max(1, int(room/cost.Bytes))
	r := &Jobs{Recommended: min(fit, l.CPUs), Set: j.f.Env("MAX_JOBS")}
	r.How = fmt.Sprintf("%.1f GiB (%s) at %.1f GiB a job gives %d, %d CPUs", float64(room)/gib, from, float64(cost.Bytes)/gib, fit, l.CPUs)
	f := Finding{ID: "jobs", Group: "environment", For: "build", Status: report.Pass, Requirement: report.Requirement{
		Name: "MAX_JOBS", Want: fmt.Sprintf("at most %d", r.Recommended), Got: orText(r.Set, "unset") + "; " + r.How, OK: true,
		Source: cost.Why + " (" + cost.Source + ")",
	}}
	export := fmt.Sprintf("export MAX_JOBS=%d", r.Recommended)
	if j.t.Flavour == "cuda" {
		export += " NVCC_THREADS=1"
	}
	set := atoi(r.Set)
	switch {
	case room < cost.Bytes:
		f = f.unmet("fail", f.Got+": not enough for one", "give the container or the machine more memory")
	case set > fit:
		f = f.unmet("warn", f.Got+": the compiler may be killed (exit status 9 or 137)", export)
	case r.Set == "" && l.CPUs+2 > fit: // torch's default is CPUs + 2
		f = f.unmet("warn", f.Got+": torch starts CPUs + 2 jobs by default", export)
	}
	return r, []Finding{f}
}
