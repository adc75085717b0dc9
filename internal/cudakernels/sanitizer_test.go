package cudakernels

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

// The tools of compute-sanitizer. Each has a kernel of its own name in
// targets/cuda/conformance/faults.cu, which it must report.
var sanitizers = []string{"memcheck", "racecheck", "initcheck", "synccheck"}

// sanitizer is compute-sanitizer of the toolkit that .ci/setup installs.
func sanitizer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(toolkit(t), "bin", "compute-sanitizer")
	if _, err := os.Stat(program); err != nil {
		text := "no compute-sanitizer in the environment " + testkit.CUDA + "; .ci/setup makes it"
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	return program
}

var (
	summaryRE = regexp.MustCompile(`(?m)^=+ (?:ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards? displayed)`)
	blindRE   = regexp.MustCompile(`(?m)^=+ (?:Error: )?(?:Target application terminated before .*|No attachable process found|couldn't .*|Internal Sanitizer Error.*|Unable to .*)`)
)

// findings counts what compute-sanitizer reports. An error is a report that
// says nothing: without a summary, or of a program that it did not look into.
func findings(said string) (int, error) {
	if blind := blindRE.FindString(said); blind != "" {
		return 0, fmt.Errorf("nothing was looked into: %s", blind)
	}
	all := summaryRE.FindAllStringSubmatch(said, -1)
	if len(all) == 0 {
		return 0, errors.New("the report has no summary")
	}
	total := 0
	for _, m := range all {
		n, err := strconv.Atoi(m[1] + m[2])
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// faults builds the program with the faulty kernels.
func faults(t *testing.T, arch string) string {
	t.Helper()
	home, exe := toolkit(t), filepath.Join(t.TempDir(), "faults")
	mustRun(t, filepath.Join(home, "bin", "nvcc"), "-arch=sm_"+arch, "-std=c++17", "-L"+filepath.Join(home, "lib"),
		filepath.Join(conformanceDir, "faults.cu"), "-o", exe)
	return exe
}

// sanitizerCases are calls of every operator in every variant and layout: few
// and small, for each runs a hundred times slower than usual.
func sanitizerCases() *suite {
	s := new(suite)
	for _, from := range []*suite{alignedCases(5, 72, 1100), alignedCases(130, 136, 520), anyhow(5, true), rowCases(6, true)} {
		for i, c := range from.cases {
			if i%3 == 0 || c.op == opMM {
				s.add(c)
			}
		}
	}
	return s
}

// TestSanitizer: on a GPU the kernels step over no end of memory, race for no
// shared memory, read nothing that nobody wrote and miss no barrier, and have
// the same bits while they are watched. Each tool reports its control.
func TestSanitizer(t *testing.T) {
	driver, program := gpuDriver(t), sanitizer(t)
	control := faults(t, needGPU(t))
	s, m := sanitizerCases(), mode{"0", "early", "chain"}
	want := s.results(t, driver, m)
	for _, tool := range sanitizers {
		t.Run(tool, func(t *testing.T) {
			watched := []string{"env", "INVAR_UNWRITTEN=1", program, "--tool", tool, driver}
			got, said := s.resultsOf(t, watched, m)
			n, err := findings(said)
			if err != nil || n > 0 {
				t.Errorf("%d findings, %v:\n%s", n, err, run.LastLines(said, 60))
			}
			for i := range got {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("other bits while %s watches: %s", tool, &s.cases[i])
				}
			}
			t.Logf("%s: %d calls, %d findings", tool, len(got), n)
			for fault, found := range map[string]bool{tool: true, "none": false} {
				res, _ := start(t, program, "--tool", tool, control, fault)
				said := string(res.Stdout) + string(res.Stderr)
				if n, err := findings(said); err != nil || n > 0 != found {
					t.Errorf("control %s: %d findings, %v:\n%s", fault, n, err, said)
				}
			}
		})
	}
}

// Reports as compute-sanitizer 2026.1 prints them.
var reports = map[string]struct {
	said string
	n    int
	err  bool
}{
	"clean":       {"========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", 0, false},
	"one":         {"========= Invalid __global__ write of size 4 bytes\n=========     at memcheck(int *)+0x50\n========= ERROR SUMMARY: 1 error\n", 1, false},
	"races":       {"========= Error: Race reported between Write access at x and Read access at y [12 hazards]\n========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n", 1, false},
	"no races":    {"========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", 0, false},
	"not watched": {"========= COMPUTE-SANITIZER\n========= Error: Target application terminated before first instrumented API call\n========= ERROR SUMMARY: 0 errors\n", 0, true},
	"no process":  {"========= COMPUTE-SANITIZER\n========= Error: Target application terminated before first instrumented API call\n========= Error: couldn't find exit code.\n", 0, true},
	"cut off":     {"========= COMPUTE-SANITIZER\n", 0, true},
	"nothing":     {"", 0, true},
	"two":         {"========= ERROR SUMMARY: 0 errors\n========= ERROR SUMMARY: 3 errors\n", 3, false},
}

func TestSanitizerReports(t *testing.T) {
	t.Parallel()
	for name, r := range reports {
		n, err := findings(r.said)
		if n != r.n || (err != nil) != r.err {
			t.Errorf("%s: %d, %v; want %d, error %t", name, n, err, r.n, r.err)
		}
	}
}

// TestSanitizerIsNoPassWithoutGPU runs the real program where it can see
// nothing: its report must not read as a clean one.
func TestSanitizerIsNoPassWithoutGPU(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("there is a GPU: TestSanitizer uses it")
	}
	if testing.Short() {
		t.Skip("short: runs nvcc")
	}
	program, control := sanitizer(t), faults(t, "90")
	for _, tool := range sanitizers {
		res, _ := start(t, program, "--tool", tool, control, "none")
		said := string(res.Stdout) + string(res.Stderr)
		if n, err := findings(said); err == nil && n == 0 {
			t.Errorf("%s without a GPU reads as clean:\n%s", tool, said)
		}
	}
}
