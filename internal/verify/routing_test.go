package verify

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/invar-ops/invar/internal/launch"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit/simserver"
	"github.com/invar-ops/invar/internal/verify/judge"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// TestEveryEngineHasARecord: an engine whose workers say nothing may run
// without the operators, whatever the others say.
func TestEveryEngineHasARecord(t *testing.T) {
	t.Parallel()
	for records, want := range map[int]judge.Word{0: judge.Invariant, 1: judge.Inconclusive, 2: judge.Invariant, 3: judge.Invariant} {
		synctest.Test(t, func(t *testing.T) {
			ws, err := workload.Select("pr-45683", nil, 8)
			if err != nil {
				t.Fatal(err)
			}
			v := &verification{workloads: ws, nonce: "n"}
			v.URL, v.Timeout, v.Progress = "http://sim", time.Minute, report.Discard
			v.Transport = simserver.Transport{Handler: simserver.New(simserver.Config{Seed: 1, Engines: 2})}
			v.facts.Workloads = ws
			defer v.close()
			err = v.all(t.Context())
			v.routing(make([]launch.Routing, records), false)
			res, err := v.conclude(err)
			if res == nil || res.Verdict.Word != want {
				t.Fatalf("%d records for 2 engines: %+v, %v, want %s", records, res, err, want)
			}
			if named := slices.ContainsFunc(res.Verdict.Reasons, func(r judge.Reason) bool { return r.ID == "routing" }); named != (want == judge.Inconclusive) {
				t.Errorf("%d records: %+v", records, res.Verdict)
			}
			time.Sleep(time.Minute) // engines end when they have been idle
		})
	}
}
