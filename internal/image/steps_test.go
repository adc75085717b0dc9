package image

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

// What both builders print of builds that fail in a step, shortened.
const (
	buildahSays = `[1/2] STEP 1/3: FROM 5bd8430eca2c AS build
[1/2] STEP 2/4: ARG TARGET
[1/2] STEP 2/3: COPY invar install-packages /usr/local/bin/
[1/2] STEP 3/3: RUN invar build ascend910b --prefix /opt/invar
target    ascend910b, because it was named
invar: error: this host does not meet ascend910b: 1 of 21 requirements
  CANN  want >= 8.5.0  got none found
        install the CANN toolkit and the operator package of this SoC, or name it with --cann DIR
nothing was changed. all requirements: invar doctor ascend910b
subprocess exited with status 3
`
	kitSays = `#1 [internal] load build definition from Dockerfile
#1 transferring dockerfile: 2.1kB done
#1 DONE 0.0s

#5 [build 1/3] FROM 127.0.0.1:5000/debian@sha256:0123
#5 DONE 0.1s

#6 [build 2/3] COPY invar install-packages /usr/local/bin/
#6 CACHED

#7 [build 3/3] RUN install-packages g++ python3
#7 0.152 E: Failed to fetch http://127.0.0.1:1/debian  Could not connect
#7 0.153
#7 0.190 invar: error: no network; want one, got none
#7 0.190   try     set HTTPS_PROXY
#7 0.191   log     /opt/invar/logs/x.log
#7 ERROR: process "/bin/sh -eu -c install-packages g++ python3" did not complete successfully: exit code: 100
------
 > [build 3/3] RUN install-packages g++ python3:
0.152 E: Failed to fetch http://127.0.0.1:1/debian  Could not connect
------
Dockerfile:15
--------------------
  15 | >>> RUN install-packages g++ python3
--------------------
error: failed to solve: process "/bin/sh -eu -c install-packages g++ python3" did not complete successfully: exit code: 100
`
)

// TestSteps: the steps are shown as they come, in pieces of any size, and what
// the failed one printed goes into the error.
func TestSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text        string
		shown       []string
		cause, hint string
		tail        string
	}{
		"buildah": {
			buildahSays,
			[]string{"1/2 1/3 FROM 5bd8430eca2c AS build done", "1/2 2/3 COPY invar install-packages /usr/local/bin/ done", "1/2 3/3 RUN invar build ascend910b --prefix /opt/invar failed"},
			"in the build: this host does not meet ascend910b: 1 of 21 requirements; CANN want >= 8.5.0 got none found; install the CANN toolkit and the operator package of this SoC, or name it with --cann DIR", "",
			"subprocess exited with status 3",
		},
		"BuildKit": {
			kitSays,
			[]string{"build 1/3 FROM 127.0.0.1:5000/debian@sha256:0123 done", "build 2/3 COPY invar install-packages /usr/local/bin/ done", "build 3/3 RUN install-packages g++ python3 failed"},
			"in the build: no network; want one, got none", "set HTTPS_PROXY",
			"E: Failed to fetch http://127.0.0.1:1/debian  Could not connect",
		},
	} {
		for _, size := range []int{1, 7, len(c.text)} {
			shown := &listed{}
			s := &steps{progress: shown}
			for piece := range slices.Chunk([]byte(c.text), size) {
				if n, err := s.Write(piece); n != len(piece) || err != nil {
					t.Fatal(n, err)
				}
			}
			s.end(errors.New("exit code 1"))
			if got := shown.all(); !slices.Equal(got, c.shown) {
				t.Errorf("%s in pieces of %d: shown\n%s\nwant\n%s", name, size, strings.Join(got, "\n"), strings.Join(c.shown, "\n"))
			}
			p := report.Problemf(report.BuildFailed, "not built")
			tell(p, s.failure())
			if p.Cause != c.cause || p.Hint != c.hint || !strings.Contains(p.Tail, c.tail) {
				t.Errorf("%s in pieces of %d: cause %q, hint %q, tail %q", name, size, p.Cause, p.Hint, p.Tail)
			}
		}
	}
}

// TestStepsOfNothing: a builder that fails before its first step has no lines to tell.
func TestStepsOfNothing(t *testing.T) {
	t.Parallel()
	s := &steps{progress: report.Discard}
	_, _ = s.Write([]byte("Error: no such image\n#1 ERROR: no\n"))
	s.end(errors.New("x"))
	p := report.Problemf(report.BuildFailed, "not built")
	if tell(p, s.failure()); p.Tail != "" || p.Cause != "" {
		t.Errorf("got %+v", p)
	}
}
