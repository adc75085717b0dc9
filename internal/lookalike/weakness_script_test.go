package lookalike

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// The weaknesses of the script and of what is around it (numbers 1 to 30), each
// shown on the real files of vllm-ascend 0.23.0.post1. What invar does instead
// is in weakness_invar_test.go under the same number.

const success = "batch_invariant run package installed successfully"

func TestScript01CertificateIsNotChecked(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil) // its certificate is for no such name, and nobody signed it
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, success)
	if !there(s.installed()) {
		t.Error("nothing was installed")
	}
}

func TestScript02NoChecksum(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{Variant: cann.BatchDependent}, nil)
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, success)
}

func TestScript03ErrorPageIsExecuted(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, map[string]cann.Fault{"run": cann.ErrorStatus})
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, "Running installer", "syntax error near unexpected token")
}

func TestScript04ShortTimeNoRetryNoResume(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, map[string]cann.Fault{"run": cann.DropsOnce, "zip": cann.Stalls})
	began := time.Now()
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, "Failed to download batch_invariant run package", "Failed to download batch_invariant whl package")
	if n := len(s.server.Requests()); n != 2 {
		t.Errorf("%d requests, want one of each file: %v", n, s.server.Requests())
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("gave up after %v", d)
	}
}

func TestScript05Stage2AfterAFailedStage1(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{Variant: cann.FailsToInstall}, nil)
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, "Failed to install batch_invariant run package", "batch_invariant whl package installed successfully")
	if !there(filepath.Join(s.home, "stage2")) {
		t.Error("stage 2 was not built")
	}
}

func TestScript06EndsWith0(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{Variant: cann.Truncated}, map[string]cann.Fault{"zip": cann.ErrorPage})
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, "Failed to install", "Failed to unzip", "batch_invariant_ops build completed")
}

func TestScript07UnknownTargetEndsWith0(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	for _, soc := range []string{"ascend950", "ascend910b1", "nonsense"} {
		text, code := s.run(soc)
		wants(t, text, code, 0, "not available for SOC_ARG="+soc+"; skipping")
	}
	s.tool("uname", "echo riscv64\n")
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, "unknown architecture riscv64")
}

func TestScript08NoMatchWithCANN(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{CANN: "7.0.0"}, nil)
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, success)
}

func TestScript09NamesCarryOtherContent(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, success)
	cann.RunPackage(t, cann.Package{Dir: s.files, CANN: "8.5.0"}) // the same name
	text, code = s.run("ascend910b")
	wants(t, text, code, 0, success)
	b, err := os.ReadFile(filepath.Join(s.installed(), "version.info"))
	if err != nil || !strings.Contains(string(b), "8.5.0") {
		t.Errorf("the second content was not installed: %q, %v", b, err)
	}
}

func TestScript10WorksInTheCallersFolder(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	mine := filepath.Join(s.cwd, "torch_ops_extension", "mine")
	put(t, mine, "work of a week\n")
	s.run("ascend910b")
	if there(mine) {
		t.Error("the script did not delete torch_ops_extension of the caller")
	}
}

func TestScript11InstallsIntoCANN(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	s.run("ascend910b")
	info, err := os.Stat(filepath.Join(s.opp, "vendors", "config.ini"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("config.ini of CANN: %v, %v; want it written, for root only", info, err)
	}
}

func TestScript12NoWayBack(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	s.run("ascend910b")
	cann.RunPackage(t, cann.Package{Dir: s.files, CANN: "8.5.0", Variant: cann.FailsToInstall})
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, "Failed to install")
	b, _ := os.ReadFile(filepath.Join(s.installed(), "version.info"))
	if !strings.Contains(string(b), "8.5.0") {
		t.Errorf("the failed package left the old one: %q", b)
	}
}

func TestScript13NoCheckAfterwards(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{Variant: cann.MissingSymbol}, nil)
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, success, "batch_invariant whl package installed successfully")
}

func TestScript14TwoAtOnceCollide(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, map[string]cann.Fault{"run": cann.Slow})
	s.server.Rate = 24 << 10
	var wg sync.WaitGroup
	texts := make([]string, 2)
	for i := range texts {
		wg.Go(func() { texts[i], _ = s.run("ascend910b") })
		time.Sleep(600 * time.Millisecond)
	}
	wg.Wait()
	if both := texts[0] + texts[1]; !strings.Contains(both, "Failed") {
		t.Errorf("two runs in one folder did not disturb each other:\n%s", both)
	}
}

func TestScript15NoMirrorNoCache(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	put(t, filepath.Join(s.home, ".curlrc"), "connect-to = \""+host+":443:127.0.0.1:1\"\n")
	local := cann.RunPackage(t, cann.Package{Dir: s.cwd})
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, "Failed to download")
	if there(local) {
		t.Error("the package that lay there was used or kept; it was expected to be deleted")
	}
}

func TestScript16NeedsUnzip(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	s.only("bash", "uname", "curl", "chmod", "rm", "sed", "grep", "cut", "tr", "date", "mkdir", "cp", "touch", "head", "wc", "cat", "dirname", "basename", "tar", "gzip", "id", "expr", "df", "awk", "dd", "sha256sum", "mktemp", "tail", "ls", "sh", "env", "pwd", "test", "cksum", "md5sum", "which", "du", "stty", "mv", "find")
	res, _ := run.System{}.Run(t.Context(), run.Cmd{
		Argv: []string{"bash", filepath.Join(s.tree, "csrc", "build_batch_invariant_ops.sh"), "ascend910b"}, Dir: s.cwd,
		Env: []string{"HOME=" + s.home, "PATH=" + s.bin, "ASCEND_OPP_PATH=" + s.opp},
	})
	text := string(res.Stdout) + string(res.Stderr)
	wants(t, text, res.Code, 0, "Failed to unzip batch_invariant whl package")
	if strings.Contains(text, "unzip: command not found") {
		t.Error("the cause is shown; it was expected to be hidden")
	}
}

func TestScript17PythonOfPATH(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	s.tool("python3", "exit 0\n")
	s.run("ascend910b")
	b, err := os.ReadFile(filepath.Join(s.home, "stage2"))
	if err != nil || !strings.Contains(string(b), filepath.Join(s.bin, "python3")) {
		t.Errorf("stage 2 ran with %q, %v", b, err)
	}
}

// TestScript18 uses the pattern of build_and_install.sh that public projects
// have; the released one was not at hand.
func TestScript18StatusOfPipIsLost(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	pattern := "rm -rf build\npython3 setup.py build_ext\npython3 setup.py bdist_wheel\ncd dist\npip3 install *.whl -I\ncd -\n"
	s.project(filepath.Join(s.files, cann.Stage2Name("1.0.0")), pattern)
	s.tool("python3", "mkdir -p dist; touch dist/old.whl dist/new.whl; exit 0\n")
	s.tool("pip3", "echo \"$@\" >\"$HOME/pip\"; exit 1\n")
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, "batch_invariant whl package installed successfully")
	if b, _ := os.ReadFile(filepath.Join(s.home, "pip")); string(b) != "install new.whl old.whl -I\n" {
		t.Errorf("pip was called with %q", b)
	}
}

func TestScript19Aliases(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	tree := s.copied("exit 7\n")
	for _, soc := range []string{"910b", "910c", "Ascend910B1", "ASCEND910_93"} {
		text, code := s.bash(filepath.Join(tree, "csrc", "build_aclnn.sh"), tree, soc)
		wants(t, text, code, 0, "no custom ACLNN ops configured for SOC_VERSION="+soc+"; skip build_aclnn")
	}
	// setup.py of the same tree takes the first two.
	b, err := os.ReadFile(filepath.Join(s.tree, "setup.py"))
	if err != nil || !strings.Contains(string(b), `"910b": "ascend910b1"`) {
		t.Error("setup.py has no alias 910b", err)
	}
}

func TestScript20ChangesGitOfTheUser(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	tree := s.copied("exit 7\n")
	s.bash(filepath.Join(tree, "csrc", "build_aclnn.sh"), tree, "ascend910b1")
	if b, _ := os.ReadFile(filepath.Join(s.home, ".gitconfig")); !strings.Contains(string(b), "directory = "+tree) {
		t.Errorf("~/.gitconfig: %q", b)
	}
}

func TestScript21StaleInstaller(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	tree := s.copied("mkdir -p build; touch build/cann-ops-transformer-custom_linux-new.run\n")
	put(t, filepath.Join(tree, "csrc", "build", "cann-ops-transformer-old.run"), "")
	text, code := s.bash(filepath.Join(tree, "csrc", "build_aclnn.sh"), tree, "ascend910b1")
	wants(t, text, code, 1, "ERROR: expected 1 installer, got 2")
}

// fetchingCMake is what the tree's files do, with an address of ours.
const fetchingCMake = "file(DOWNLOAD \"${URL}\" out.zip TLS_VERIFY OFF STATUS status)\nlist(GET status 0 code)\nmessage(\"fetched with ${code}\")\n"

// TestScript22 finds the option in the real files, and shows with the real
// cmake that a server which nobody vouches for is believed then.
func TestScript22DownloadsUnverified(t *testing.T) {
	t.Parallel()
	needTool(t, "cmake")
	s := newScript(t, cann.Package{}, nil)
	dir := filepath.Join(s.tree, "csrc", "cmake", "third_party")
	for file, line := range map[string]string{"json.cmake": "TLS_VERIFY OFF", "gtest.cmake": "TLS_VERIFY OFF", "makeself-fetch.cmake": "CMAKE_TLS_VERIFY=0"} {
		if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(b), line) {
			t.Errorf("%s has no %s: %v", file, line, err)
		}
	}
	put(t, filepath.Join(s.cwd, "fetch.cmake"), fetchingCMake)
	text, code := s.bash("-c", "cmake -DURL="+s.server.URL+"/"+cann.Stage2Name("1.0.0")+" -P fetch.cmake")
	wants(t, text, code, 0, "fetched with 0")
}

// TestScript23 runs the very command of setup.py where python3 has no pip.
func TestScript23TorchNPUByPip(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	b, err := os.ReadFile(filepath.Join(s.tree, "setup.py"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), `torch_npu_command = "`)
	command, _, ok := strings.Cut(rest, "\"\n")
	if !ok {
		t.Fatal("setup.py has no such command")
	}
	s.tool("python3", "echo 'No module named pip' >&2; exit 1\n")
	text, code := s.bash("-c", command)
	if code != 0 || strings.Contains(text, "/") {
		t.Errorf("ended with %d and %q; an empty answer with 0 makes the path /torch_npu", code, text)
	}
}

// cmakeTwice is a cmake whose second configuration finds what the first did
// not: it stands for a network or a disk that went away in between.
const cmakeTwice = `#!/bin/sh
[ "$1" = --version ] && { echo cmake version 3.31; exit 0; }
echo x >>"$HOME/configured"
[ "$(wc -l <"$HOME/configured")" -lt 2 ] && exit 0
echo "CMake Error at CMakeLists.txt:22 (message):" >&2
echo "  Expected PyTorch version 2.10.0, but found 2.9.0" >&2
exit 1
`

// standIn is a build.sh that leaves an installer, as far as it goes without bisheng.
const standIn = "ls build 2>/dev/null\nmkdir -p build\nprintf '#!/bin/sh\\nexit 0\\n' >build/cann-ops-transformer-custom_linux-new.run\n"

// setupFiles are what setup.py of the tree needs beside csrc.
func (s *script) setupFiles(tree string) {
	s.t.Helper()
	for _, f := range []string{"setup.py", "requirements.txt", "README.md", "PKG-INFO", "pyproject.toml", "vllm_ascend/envs.py", "vllm_ascend/__init__.py"} {
		b, err := os.ReadFile(filepath.Join(s.tree, f))
		if err != nil {
			s.t.Fatal(err)
		}
		put(s.t, filepath.Join(tree, f), string(b))
	}
}

// TestScript24 runs the real setup.py: it configures twice, and the failure of
// the second one comes out as a bare traceback.
func TestScript24ConfiguresTwice(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	tree := s.copied(standIn)
	s.setupFiles(tree)
	s.tool("cmake", strings.TrimPrefix(cmakeTwice, "#!/bin/sh\n"))
	py := filepath.Join(testkit.Cache(), "sdist", "bin", "python")
	res, err := run.System{}.Run(t.Context(), run.Cmd{
		Argv: []string{py, "setup.py", "build_ext"}, Dir: tree, Env: append(s.env(), "SOC_VERSION=ascend910b1"),
	})
	text := string(res.Stdout) + string(res.Stderr)
	wants(t, text, 0, 0, "build_aclnn.sh executed successfully!", "subprocess.CalledProcessError: Command '['cmake'")
	if err == nil || strings.Contains(text, "CMake configuration failed") {
		t.Errorf("the second failure is wrapped: %v\n%s", err, text)
	}
	if b, _ := os.ReadFile(filepath.Join(s.home, "configured")); string(b) != "x\nx\n" {
		t.Errorf("configured %q", b)
	}
}

func TestScript25KeepsAStaleBuild(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	tree := s.copied("ls build\nexit 7\n")
	put(t, filepath.Join(tree, "csrc", "build", "CMakeCache.txt"), "of another environment\n")
	text, code := s.bash(filepath.Join(tree, "csrc", "build_aclnn.sh"), tree, "ascend910b1")
	wants(t, text, code, 7, "preserving csrc/build", "CMakeCache.txt")
}

// TestScript26 runs the lines of build.sh that choose the jobs.
func TestScript26JobsIgnoreMemory(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	b, err := os.ReadFile(filepath.Join(s.tree, "csrc", "build.sh"))
	if err != nil {
		t.Fatal(err)
	}
	var line string
	for l := range strings.Lines(string(b)) {
		if strings.Contains(l, "CPU_NUM=$(($(cat /proc/cpuinfo") {
			line = l
		}
	}
	text, code := s.bash("-c", "ulimit -v 4000000; "+line+"\necho jobs=$CPU_NUM processors=$(grep -c ^processor /proc/cpuinfo)")
	fields := strings.FieldsFunc(strings.TrimSpace(text), func(r rune) bool { return r == '=' || r == ' ' })
	if code != 0 || len(fields) != 4 || fields[1] == fields[3] {
		t.Errorf("%d, %q; want twice the processors, whatever the memory", code, text)
	}
}

func TestScript27TwoVendorsSilently(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	s.run("ascend910b")
	cann.RunPackage(t, cann.Package{Dir: s.files, Vendor: "custom_transformer", Variant: cann.BatchDependent})
	text, code := s.run("ascend910b")
	wants(t, text, code, 0, success)
	b, _ := os.ReadFile(filepath.Join(s.opp, "vendors", "config.ini"))
	if string(b) != "load_priority=custom_transformer,batch_invariant\n" || strings.Contains(text, "aclnn") {
		t.Errorf("config.ini %q; the second vendor was expected in front without a word\n%s", b, text)
	}
}

func TestScript28WrongNameIsNotRepaired(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{SoC: "ascend910_93"}, nil)
	text, code := s.run("ascend910_93")
	wants(t, text, code, 0, success)
	config := filepath.Join(s.installed(), "op_impl", "ai_core", "tbe", "kernel", "config", "ascend910_93")
	if !there(filepath.Join(config, "mat_mul_v3_batch_invariant.json")) || there(filepath.Join(config, "mat_mul_v_3_batch_invariant.json")) {
		t.Error("the name of the configuration is not the wrong one")
	}
}

// TestScript29 runs setup.py of the tree with COMPILE_CUSTOM_KERNELS=0.
func TestScript29NeedsCompiledKernels(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	tree := s.copied("exit 7\n")
	s.setupFiles(tree)
	put(t, filepath.Join(tree, "csrc", "build_aclnn.sh"), "touch \"$HOME/called\"\n")
	py := filepath.Join(testkit.Cache(), "sdist", "bin", "python")
	res, err := run.System{}.Run(t.Context(), run.Cmd{
		Argv: []string{py, "setup.py", "build_ext"}, Dir: tree,
		Env: append(s.env(), "SOC_VERSION=ascend910b1", "COMPILE_CUSTOM_KERNELS=0", "VLLM_BATCH_INVARIANT=1"),
	})
	if err != nil || there(filepath.Join(s.home, "called")) {
		t.Errorf("%v\n%s%s", err, res.Stdout, res.Stderr)
	}
}

// TestScript30 runs the real vllm_ascend/batch_invariant.py at vLLM's usual log
// level where batch_invariant_ops is missing and Triton is there.
func TestScript30FallbackIsNotSeen(t *testing.T) {
	t.Parallel()
	py := testkit.Need(t, cann.Environment)
	tree := cann.New(t, cann.Options{})
	module := filepath.Join(cann.NeedVLLMAscend(t), "vllm_ascend", "batch_invariant.py")
	res, err := cann.Run(t, tree.Env("VLLM_BATCH_INVARIANT=1"), py.Exe, "-c", `
import importlib.util, logging, sys, types
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
def module(name, **names):
    m = types.ModuleType(name); m.__dict__.update(names); sys.modules[name] = m
class Config: pass
module("vllm"); module("vllm.envs", VLLM_BATCH_INVARIANT=True); sys.modules["vllm"].envs = sys.modules["vllm.envs"]
module("vllm.logger", logger=logging.getLogger("vllm")); module("vllm.triton_utils", HAS_TRITON=True)
same = lambda *a, **k: a[0]
for n in ("vllm_ascend", "vllm_ascend.ops", "vllm_ascend.ops.triton", "vllm_ascend.ops.triton.batch_invariant"): module(n)
module("vllm_ascend.ops.triton.batch_invariant.matmul", **{n: same for n in ("addmm_batch_invariant", "bmm_batch_invariant", "linear_batch_invariant", "matmul_batch_invariant", "mm_batch_invariant")})
module("vllm_ascend.ops.triton.batch_invariant.softmax", softmax_batch_invariant=same)
module("vllm_ascend.ascend_config", get_ascend_config=lambda: Config())
spec = importlib.util.spec_from_file_location("bi", sys.argv[1]); bi = importlib.util.module_from_spec(spec); spec.loader.exec_module(bi)
bi.init_batch_invariance()
print("ascendc", bi.HAS_ASCENDC_BATCH_INVARIANT)
`, module)
	text := string(res.Stdout)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, text, res.Stderr)
	}
	wants(t, text, res.Code, 0, "INFO Enabling batch-invariant mode for vLLM on Ascend NPU.", "ascendc False")
	if strings.Contains(text, "Triton=") {
		t.Errorf("the choice is told at this level: %s", text)
	}
}
