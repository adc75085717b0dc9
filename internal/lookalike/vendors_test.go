package lookalike

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/opp"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// vllmAscend puts a package vllm_ascend into the machine's Python, with the
// vendor that it brings itself, and gives the folder of that.
func (m *machine) vllmAscend(p cann.Package) string {
	m.t.Helper()
	dir := filepath.Join(m.py.Purelib, "vllm_ascend")
	put(m.t, filepath.Join(dir, "__init__.py"), "")
	p.Vendor = "custom_transformer"
	return cann.InstallInto(m.t, filepath.Join(dir, "_cann_ops_custom"), p)
}

// TestVendorThatWins builds where vllm-ascend's own vendor has the operators,
// too. It comes first in its processes, so nothing is installed: first when the
// functions are known beforehand, then when only the built wheel tells one.
func TestVendorThatWins(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	own := filepath.Join(m.vllmAscend(cann.Package{}), opp.Library)
	args := append([]string{"build", "ascend910b"}, m.stages("ascend910b", cann.Package{Variant: cann.MissingSymbol})...)
	text := m.invar(report.Unmet, args...)
	wants(t, text, 0, 0, "vendor that serves vllm-ascend", "aclnnMmBatchInvariant", own, "vllm-ascend puts its own vendor first")
	if strings.Contains(text, "stage 2: wheel") {
		t.Errorf("the wheel was built before the refusal:\n%s", text)
	}
	m.nothing()
	// aclnnReduceSumBatchInvariant is in no list of functions; the wheel calls it.
	for _, f := range []string{"aclnnMm", "aclnnMatmul", "aclnnReduceMean", "aclnnLogSoftmax", "aclnnFusedInferAttentionScore"} {
		cann.Rename(t, own, f+"BatchInvariant", f+"SomethingOther")
	}
	text = m.invar(report.Unmet, args...)
	wants(t, text, 0, 0, "aclnnReduceSumBatchInvariant from "+own)
	m.nothing()
}

// inProcesses calls an operator in a process that has gone through
// vllm-ascend's own start, and in a worker of it.
const inProcesses = `import ast, multiprocessing, os, sys

def start(utils, package):
    wanted = ("_prepend_env_path", "bootstrap_custom_op_env")
    body = [n for n in ast.parse(open(utils).read()).body if isinstance(n, ast.FunctionDef) and n.name in wanted]
    scope = {"os": os, "_CUSTOM_OP_BASE_DIR": package, "_CUSTOM_OP_VENDOR_DIR": "custom_transformer"}
    exec(compile(ast.Module(body, []), utils, "exec"), scope)
    scope["bootstrap_custom_op_env"]()

def call(who, utils, package):
    start(utils, package)
    order = os.environ["ASCEND_CUSTOM_OPP_PATH"]
    import torch, torch_npu, batch_invariant_ops
    x = torch.ones(2, 2).npu()
    total = torch.ops.batch_invariant_ops.npu_mm_batch_invariant(x, x).cpu().sum().item()
    print(who, total, order, sep="|", flush=True)

if __name__ == "__main__":
    call("parent", *sys.argv[1:])
    worker = multiprocessing.get_context("spawn").Process(target=call, args=("worker", *sys.argv[1:]))
    worker.start(); worker.join(); sys.exit(worker.exitcode)
`

// inBoth is inProcesses on the machine; own must serve in both, in the order
// that the rules give.
func (m *machine) inBoth(t *testing.T, own, vllm, other string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "both.py")
	put(t, file, inProcesses)
	utils := filepath.Join(cann.NeedVLLMAscend(t), "vllm_ascend", "utils.py")
	env := []string{"ASCEND_CUSTOM_OPP_PATH=" + other, "LOOKALIKE_LOG=1", "ASCEND_GLOBAL_LOG_LEVEL=1"}
	text := m.invarIn(0, env, "exec", "--", m.py.Exe, file, utils, filepath.Join(m.py.Purelib, "vllm_ascend"))
	start := opp.Env{Custom: other}.First(own)
	parent := start.Prepend(vllm)
	for who, order := range map[string]string{"parent": parent.Custom, "worker": parent.First(own).Prepend(vllm).Custom} {
		line := ""
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, who+"|") {
				line = strings.TrimSpace(l)
			}
		}
		got := strings.Split(line, "|")
		if len(got) != 3 || got[1] != "8.0" || got[2] != order {
			t.Errorf("%s: %q, want 8.0 in the order %s\n%s", who, line, order, text)
		}
	}
	// torch_npu notes at info level which library serves a name.
	const served = "aclnnMmBatchInvariant is found in "
	if n, all := strings.Count(text, served+own+"/"), strings.Count(text, served); n != 2 || all != 2 {
		t.Errorf("%d of %d lookups end in %s, want that of the parent and that of the worker", n, all, own)
	}
}

// TestOption2 names the tree of the installed vllm-ascend: the real sdist says
// which operators belong to it, and a tree of another version is refused.
func TestOption2(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	tree := cann.NeedVLLMAscend(t)
	args := []string{"build", "ascend910b", "--python", m.py.Prefix, "--vllm-ascend", tree, "--dry-run"}
	wants(t, m.invar(report.Unmet, args...), 0, 0, "vllm-ascend is not installed", "--install-vllm-ascend")
	info := filepath.Join(m.py.Purelib, "vllm_ascend-0.23.0.post1.dist-info")
	put(t, filepath.Join(info, "METADATA"), "Name: vllm-ascend\nVersion: 0.23.0.post1\n")
	wants(t, m.invar(0, args...), 0, 0, "cann-ops-batch_invariant-910b-1.0.0-linux", "batch_invariant-torch_ops_extension-1.0.0.zip")
	other := filepath.Join(m.py.Purelib, "vllm_ascend-0.22.1rc1.dist-info")
	if err := os.Rename(info, other); err != nil {
		t.Fatal(err)
	}
	wants(t, m.invar(report.Unmet, args...), 0, 0, "0.22.1rc1", "0.23.0.post1", "--allow-version-skew")
	wants(t, m.invar(0, append(args, "--allow-version-skew")...), 0, 0, "cann-ops-batch_invariant-910b-1.0.0-linux")
}
