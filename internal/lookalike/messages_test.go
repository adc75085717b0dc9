package lookalike

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/explain"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// A message is produced by the real programs and then explained. Its numbers
// are those under which it was first written down.
type message struct {
	name string
	env  func(*scene) []string // besides that of CANN; may change files first
	code string                // Python
	says string                // that the programs print
	rule []string              // of explain, one of which must match
}

// A scene is a tree of CANN with the operators in it, and a Python.
type scene struct {
	t    *testing.T
	tree *cann.Tree
	py   python.Python
	opp  string // the vendor's folder
	site string // with batch_invariant_ops
}

const (
	start = "import torch, torch_npu, batch_invariant_ops\no = torch.ops.batch_invariant_ops\nx = torch.ones(2, 2).npu()\n"
	call  = start + "o.npu_mm_batch_invariant(x, x).cpu()\n"
)

// without removes a library of CANN.
func without(name string) func(*scene) []string {
	return func(s *scene) []string {
		s.remove(filepath.Join(s.tree.Lib, name))
		return nil
	}
}

func (s *scene) remove(path string) {
	s.t.Helper()
	if err := os.RemoveAll(path); err != nil {
		s.t.Fatal(err)
	}
}

func set(kv ...string) func(*scene) []string { return func(*scene) []string { return kv } }

// notFound: torch_npu has one text for all of these.
const notFound = "aclnnMmBatchInvariant or aclnnMmBatchInvariantGetWorkspaceSize not in libopapi.so, or libopapi.so not found."

var messages = []message{
	{"M3a a library is missing", without("libhccl.so"), "import torch_npu", "ImportError: libhccl.so: cannot open shared object file", []string{"cann-library-missing"}},
	{"M3b torch first", without("libhccl.so"), "import torch", "RuntimeError: Failed to load the backend extension: torch_npu", []string{"cann-library-missing"}},
	{"M3 driver missing", func(s *scene) []string { return []string{"LD_LIBRARY_PATH=" + s.tree.Lib} }, "import torch_npu", "libascend_hal.so: cannot open shared object file", []string{"ascend-driver-library-missing"}},
	{"M3 opp unset", set("ASCEND_OPP_PATH="), "import torch_npu", "ASCEND_OPP_PATH", []string{"cann-env-not-sourced"}},
	{"M3 opp missing", set("ASCEND_OPP_PATH=/nowhere"), "import torch_npu", "ASCEND_OPP_PATH : /nowhere does not exist.", []string{"cann-env-not-sourced"}},
	{"M3 home missing", set("ASCEND_HOME_PATH=/nowhere"), "import torch_npu", "ASCEND_HOME_PATH : /nowhere does not exist.", []string{"cann-env-not-sourced"}},
	{"M3c CANN too old", func(s *scene) []string {
		cann.Rename(s.t, filepath.Join(s.tree.Lib, "libascendcl.so"), "aclrtDeviceGetBareTgid", "aclrtDeviceGetBare____")
		return nil
	}, "import torch_npu", "libtorch_npu.so: undefined symbol: aclrtDeviceGetBareTgid", []string{"cann-too-old-symbol"}},
	{"M4 no vendor", func(s *scene) []string { s.remove(s.opp); return nil }, call, notFound, []string{"aclnn-op-not-found"}},
	{"M4 not a library", func(s *scene) []string {
		put(s.t, filepath.Join(s.opp, "op_api", "lib", "libcust_opapi.so"), "")
		return nil
	}, call, notFound, []string{"aclnn-op-not-found"}},
	{"M5 the log tells", func(s *scene) []string {
		put(s.t, filepath.Join(s.opp, "op_api", "lib", "libcust_opapi.so"), "")
		return []string{"LOOKALIKE_LOG=1", "ASCEND_GLOBAL_LOG_LEVEL=2"}
	}, call, "libcust_opapi.so failed, error:", []string{"opapi-dlopen-failed"}},
	{"M6 not imported", nil, "import torch, torch_npu\ntorch.ops.batch_invariant_ops.npu_mm_batch_invariant", "'_OpNamespace' 'batch_invariant_ops' object has no attribute 'npu_mm_batch_invariant'", []string{"operator-not-registered"}},
	{"M7 CPU tensors", nil, start + "y = torch.ones(2, 2)\no.npu_mm_batch_invariant(y, y)", "Could not run 'batch_invariant_ops::npu_mm_batch_invariant' with arguments from the 'CPU' backend", []string{"operator-wrong-backend"}},
	{"M8 one CPU tensor", nil, start + "o.npu_mm_batch_invariant(x, torch.ones(2, 2))", "Expected all tensors to be on the same device. Expected NPU tensor", []string{"tensor-device-mixed"}},
	{"M9 no device", set("LOOKALIKE_DEVICES=0"), "import torch, torch_npu\nassert not torch.npu.is_available()\ntorch.ones(2).npu()", "No NPUs are available", []string{"npu-none"}},
	{"M10 unknown SoC", set("LOOKALIKE_SOC=Ascend999"), "import torch, torch_npu\ntorch.ones(2).npu()", "Unsupported soc version: Ascend999", []string{"soc-version-unknown"}},
	{"M10 lower case", set("LOOKALIKE_SOC=ascend910b4"), "import torch, torch_npu\ntorch.ones(2).npu()", "Unsupported soc version: ascend910b4", []string{"soc-version-torch-npu-case"}},
	{"M11 a function is missing", func(s *scene) []string {
		cann.Rename(s.t, filepath.Join(s.tree.Lib, "libascendcl.so"), "aclrtSetDeviceSatMode", "aclrtSetDeviceSat____")
		return nil
	}, "import torch, torch_npu\ntorch.ones(2).npu()", "RuntimeError: Failed to find function aclrtSetDeviceSatMode", []string{"cann-function-missing"}},
	{"M12 owner", func(s *scene) []string {
		if err := os.Chown(filepath.Join(s.opp, "op_api", "lib", "libcust_opapi.so"), 1000, 1000); err != nil {
			s.t.Skip(err)
		}
		return nil
	}, call, "owner does not match current owner", []string{"opapi-dlopen-failed"}},
	{"M13 operator fails", set("LOOKALIKE_FAIL_aclnnMmBatchInvariant=561003"), call, "OPS function error: aclnnMmBatchInvariant, error code is 161001", []string{"aclnn-call-failed"}},
	{"M13 asynchronous", set("LOOKALIKE_FAIL_aclnnMmBatchInvariant=561003", "ASCEND_LAUNCH_BLOCKING=0"), call + "torch.npu.synchronize()", "The Inner error is reported as above. The process exits for this inner error, and the current working operator name is aclnnMmBatchInvariant.", []string{"aclnn-call-failed"}},
	{"M14 own header", func(s *scene) []string {
		return []string{"PYTHONPATH=" + cann.Site(s.t, cann.OwnHeader), "LOOKALIKE_FAIL_aclnnMmBatchInvariant=561003", "LOOKALIKE_ERROR=EZ9999: Inner Error!"}
	}, call, "call aclnnMmBatchInvariant failed, detail:EZ9999: Inner Error!", []string{"aclnn-call-failed"}},
	{"M15 loaded twice", nil, start + `
import glob, os, shutil, tempfile
lib = glob.glob(os.path.dirname(batch_invariant_ops.__file__) + "/_C*.so")[0]
copy = os.path.join(tempfile.mkdtemp(), "again.so"); shutil.copy(lib, copy)
torch.ops.load_library(copy)`, "Only a single TORCH_LIBRARY can be used to register the namespace batch_invariant_ops", []string{"operator-registered-twice"}},
	{"M17 sum without dim", nil, start + "lib = torch.library.Library('aten', 'IMPL')\nlib.impl('aten::sum', o.npu_reduce_sum_batch_invariant, 'NPU')\ntorch.sum(x)", "npu_reduce_sum_batch_invariant() is missing value for argument 'dim'", []string{"operator-missing-argument"}},
	{"M18 another Python", func(s *scene) []string {
		found, _ := filepath.Glob(filepath.Join(s.site, "batch_invariant_ops", "_C.*"))
		for _, f := range found {
			if err := os.Rename(f, strings.Replace(f, "cpython-311", "cpython-312", 1)); err != nil {
				s.t.Fatal(err)
			}
		}
		return nil
	}, "import batch_invariant_ops", "cannot import name '_C' from partially initialized module 'batch_invariant_ops'", []string{"extension-not-built"}},
	{"M2 EXEC_NPU_CMD", func(s *scene) []string { return []string{"PYTHONPATH=" + cann.Site(s.t, cann.OldMacro)} }, start, "_C.cpython-311-" + cann.Arch() + "-linux-gnu.so: undefined symbol: ", []string{"torch-npu-internal-symbol"}},
	{"module not found", func(s *scene) []string { return []string{"PYTHONPATH="} }, "import torch_npu, batch_invariant_ops", "No module named 'batch_invariant_ops'", []string{"module-missing"}},
	{"M1 CUDA build of torch", func(s *scene) []string {
		s.py = testkit.Need(s.t, "torch-npu-2.10")
		return []string{"PYTHONPATH="}
	}, "import torch, torch_npu", "Duplicated key 'pinned_reserve_segment_size_mb'", []string{"duplicated-allocator-key"}},
	{"M3d another torch", func(s *scene) []string {
		site := s.t.TempDir()
		if err := os.Symlink(filepath.Join(s.py.Purelib, "torch_npu"), filepath.Join(site, "torch_npu")); err != nil {
			s.t.Fatal(err)
		}
		s.py = testkit.Need(s.t, "torch-npu-2.10")
		return []string{"PYTHONPATH=" + site, "TORCH_DEVICE_BACKEND_AUTOLOAD=0"}
	}, "import torch, torch_npu", "libtorch_npu.so: undefined symbol: _Z", []string{"torch-npu-torch-mismatch"}},
}

func TestMessages(t *testing.T) {
	t.Parallel()
	py := testkit.Need(t, cann.Environment)
	for _, m := range messages {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := &scene{t: t, py: py, tree: cann.New(t, cann.Options{}), site: cann.Site(t, cann.ExecExt)}
			s.opp = s.tree.Install(t, cann.Package{})
			env := []string{"PYTHONPATH=" + s.site}
			if m.env != nil {
				env = append(env, m.env(s)...)
			}
			res, err := cann.Run(t, s.tree.Env(env...), s.py.Exe, "-c", m.code)
			log := string(res.Stdout) + string(res.Stderr)
			if err == nil || !strings.Contains(log, m.says) {
				t.Fatalf("want a failure that says %q, got %v\n%s", m.says, err, log)
			}
			d, err := explain.Log(t.Context(), strings.NewReader(log), explain.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d.Verdict != explain.Found || !slices.Contains(m.rule, d.Rule) {
				t.Errorf("explained as %s by %s (%s), want %v\n%s", d.Verdict, d.Rule, d.Cause, m.rule, log)
			}
		})
	}
}
