package lookalike

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/explain"
	"github.com/invar-ops/invar/internal/opp"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// TestMessageM16 has two vendors with the same operators. The first one serves,
// and there is no message to explain: torch_npu only notes at info level which
// library it took. What can be known beforehand is in the files.
func TestMessageM16TwoVendorsSayNothing(t *testing.T) {
	t.Parallel()
	py, tree := testkit.Need(t, cann.Environment), cann.New(t, cann.Options{})
	first := filepath.Join(tree.Install(t, cann.Package{}), opp.Library)
	last := filepath.Join(tree.Install(t, cann.Package{Vendor: "custom_transformer", Variant: cann.BatchDependent}), opp.Library) // its installer puts it first
	env := tree.Env("PYTHONPATH="+cann.Site(t, cann.ExecExt), "LOOKALIKE_LOG=1", "ASCEND_GLOBAL_LOG_LEVEL=0")
	res, err := cann.Run(t, env, py.Exe, "-c", call)
	if err != nil {
		t.Fatalf("%v\n%s", err, res.Stderr)
	}
	log, said := string(res.Stdout)+string(res.Stderr), ""
	for line := range strings.Lines(log) {
		if level, _, ok := strings.Cut(strings.TrimPrefix(line, "[acl log "), "]"); (!ok || level > "1") && strings.Contains(line, "BatchInvariant") {
			said += line
		}
	}
	if said != "" || !strings.Contains(log, "aclnnMmBatchInvariant is found in "+last) || strings.Contains(log, "aclnnMmBatchInvariant is found in "+first) {
		t.Errorf("said %q; want nothing, and %s to serve", said, last)
	}
	d, err := explain.Log(t.Context(), strings.NewReader(said), explain.Options{})
	if err != nil || d.Verdict == explain.Found {
		t.Errorf("a cause where nothing is said: %+v, %v", d, err)
	}
	rivals := opp.Rivals(opp.FromEnviron(env).Candidates(), first, opp.Pair("aclnnMmBatchInvariant"))
	if len(rivals) != 1 || rivals[0].Library != last || len(rivals[0].Wins) != 2 {
		t.Errorf("in the files: %+v", rivals)
	}
}

// TestMessageM18 asks uv to install the wheel of another Python.
func TestMessageM18OfUV(t *testing.T) {
	t.Parallel()
	needTool(t, "uv")
	m := newMachine(t, "ascend910b")
	wheel := cann.Wheel(t, "1.0.0", cann.ExecExt)
	b, err := os.ReadFile(wheel)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, strings.ReplaceAll(filepath.Base(wheel), "cp311", "cp312")), string(b))
	res, err := run.System{}.Run(t.Context(), run.Cmd{
		Argv: []string{"uv", "pip", "install", "--python", m.py.Exe, "--offline", "--no-index", "--find-links", dir, "batch_invariant_ops"},
		Dir:  m.home, Env: append(os.Environ(), "NO_COLOR=1", "UV_NO_CONFIG=1"),
	})
	log := string(res.Stdout) + string(res.Stderr)
	if err == nil || !strings.Contains(strings.Join(strings.Fields(log), " "), "has no wheels with a matching Python") {
		t.Fatalf("uv: %v\n%s", err, log)
	}
	d, err := explain.Log(t.Context(), strings.NewReader(log), explain.Options{})
	if err != nil || d.Verdict != explain.Found || d.Rule != "wheel-not-supported" {
		t.Errorf("explained as %s by %s (%s), %v\n%s", d.Verdict, d.Rule, d.Cause, err, log)
	}
}
