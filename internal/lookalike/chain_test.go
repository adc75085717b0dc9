package lookalike

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// stages makes both stages and gives the options that name them. The project of
// stage 2 holds the compiled library already: compiling it again in each test
// would take most of its time, and TestStage2 does it once.
func (m *machine) stages(target string, p cann.Package) []string {
	m.t.Helper()
	p.SoC = target
	if p.Version == "" {
		p.Version = "2.0.0"
	}
	p.Dir = m.t.TempDir()
	pkg := cann.RunPackage(m.t, p)
	// Both ways to call an aclnn function that load: torch_npu's macro, and on one
	// target the header of vllm-ascend, which reads the environment later.
	by := cann.ExecExt
	if target == "ascend950" {
		by = cann.OwnHeader
	}
	zip := cann.PrebuiltZip(m.t, p.Dir, p.Version, by)
	return []string{
		"--python", m.py.Prefix, "--run-package", pkg, "--extension", zip, "--lock", filepath.Join(m.home, "invar.lock"), "--ops-version", p.Version,
		"--accept-digest", digest(m.t, pkg), "--accept-digest", digest(m.t, zip), "--allow-version-skew",
	}
}

// build runs invar build with both stages from files.
func (m *machine) build(code int, target string, p cann.Package, more ...string) string {
	m.t.Helper()
	return m.invar(code, append(append([]string{"build", target}, m.stages(target, p)...), more...)...)
}

// digest is what a user passes who has looked at the file.
func digest(t *testing.T, file string) string {
	t.Helper()
	sum, _, err := store.Digest(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return "sha256:" + sum
}

// answer is what a command says with --json.
type answer struct {
	Result struct {
		probe.Result
		Probe *probe.Result `json:"probe"` // of a build
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
		State   string `json:"state"`
	} `json:"error"`
}

// asked runs a command with --json.
func (m *machine) asked(code int, args ...string) answer {
	m.t.Helper()
	res, err := run.System{}.Run(m.t.Context(), run.Cmd{Argv: append([]string{invar, args[0], "--json"}, args[1:]...), Dir: m.home, Env: m.env()})
	var got answer
	if jsonErr := json.Unmarshal(res.Stdout, &got); jsonErr != nil || res.Code != code {
		m.t.Fatalf("invar %s ended with %d, want %d (%v, %v)\n%s%s", args[0], res.Code, code, err, jsonErr, res.Stdout, res.Stderr)
	}
	return got
}

// TestChain builds, installs and probes each target and removes all.
func TestChain(t *testing.T) {
	t.Parallel()
	for _, s := range socs {
		t.Run(s.target, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, s.target)
			before := cann.Files(t, m.cann.Root)
			got := m.asked(0, append([]string{"build", s.target}, m.stages(s.target, cann.Package{})...)...)
			proved(t, *got.Result.Probe)
			if s.target == "ascend910b" {
				m.takenBack()
			}
			m.invar(0, "uninstall")
			if after := cann.Files(t, m.cann.Root); strings.Join(after, "\n") != strings.Join(before, "\n") {
				t.Errorf("the tree of CANN has changed:\n%s", strings.Join(after, "\n"))
			}
			if left, _ := filepath.Glob(filepath.Join(m.py.Purelib, "*invar*")); len(left) != 0 {
				t.Errorf("left in site-packages: %v", left)
			}
		})
	}
}

// proved wants all levels passed, and called simulated.
func proved(t *testing.T, res probe.Result) {
	t.Helper()
	for _, l := range res.Levels {
		if l.Status != report.Pass {
			t.Errorf("level %d: %s, %s", l.Level, l.Status, l.Reason)
		}
	}
	if res.Simulated == "" || res.Proved != probe.Kernels {
		t.Errorf("simulated %q, proved %d: a simulated device proves levels 1 to 5 only", res.Simulated, res.Proved)
	}
	if !strings.Contains(strings.Join(res.Summary, "\n"), "say nothing about hardware") {
		t.Errorf("the summary does not say that it was simulated: %q", res.Summary)
	}
	if c := res.Coverage; c == nil || len(c.Operators) != 6 || c.Differ != 0 || c.Control == 0 {
		t.Errorf("coverage: %+v", c)
	}
}

// takenBack installs a batch-dependent package over a good one: the probe finds
// it, and the good one is current again. Then it goes back by hand.
func (m *machine) takenBack() {
	m.t.Helper()
	const target = "ascend910b"
	bad := m.asked(report.CheckFailed, append([]string{"build", target}, m.stages(target, cann.Package{Variant: cann.BatchDependent})...)...)
	if !strings.Contains(bad.Error.Message, "level 7") || !strings.Contains(bad.Error.State, "generation 1 is active") {
		m.t.Errorf("a batch-dependent package: %+v", bad.Error)
	}
	if res := m.asked(0, "probe", "--level", "5").Result; res.Generation != 1 || res.Proved != probe.Kernels {
		m.t.Errorf("after it, generation %d is proved to level %d", res.Generation, res.Proved)
	}
	m.asked(report.Inconclusive, "probe", "--require", "7")
}

// TestPackageVariants refuses or finds what is wrong with a run package.
func TestPackageVariants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		variant cann.Variant
		code    int // of build
		says    string
	}{
		{cann.OtherSoC, report.Unmet, "kernels for ascend910_93"},
		{cann.OtherMachine, report.Unmet, "aarch64"},
		{cann.Truncated, report.BuildFailed, "bytes are missing"},
		{cann.HTMLPage, report.BuildFailed, "503 Service Unavailable"},
		{cann.WritesOutside, report.BuildFailed, ""},
		{cann.FailsToInstall, report.BuildFailed, "op_api"},
		{cann.MissingSymbol, report.CheckFailed, "aclnnReduceMeanBatchInvariant"},
		{cann.ExtraExports, report.CheckFailed, "aclnnAdds"},
	} {
		t.Run(string(c.variant), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, "ascend910b")
			text := m.build(c.code, "ascend910b", cann.Package{Variant: c.variant})
			if !strings.Contains(text, c.says) {
				t.Errorf("want %q in\n%s", c.says, text)
			}
			if _, err := os.Stat(filepath.Join(m.home, ".bashrc")); err == nil {
				t.Error("install.sh wrote into HOME")
			}
		})
	}
}
