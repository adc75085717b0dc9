package lookalike

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// What invar does where the script has a weakness, by the numbers of
// weakness_script_test.go.

// A mirror is a server with both files of a version, and a machine to build on.
type mirror struct {
	*machine
	server  *cann.Server
	digests []string
}

func newMirror(t *testing.T, p cann.Package, faults map[string]cann.Fault) *mirror {
	t.Helper()
	m := newMachine(t, "ascend910b")
	p.Dir, p.Version = t.TempDir(), "2.0.0"
	pkg := cann.RunPackage(t, p)
	zip := cann.PrebuiltZip(t, p.Dir, p.Version, cann.ExecExt)
	server := cann.Serve(t, map[string]cann.Fault{filepath.Base(pkg): faults["run"], filepath.Base(zip): faults["zip"]}, pkg, zip)
	return &mirror{m, server, []string{"--accept-digest", digest(t, pkg), "--accept-digest", digest(t, zip)}}
}

func (m *mirror) build(code int, more ...string) string {
	m.t.Helper()
	args := append([]string{"build", "ascend910b", "--python", m.py.Prefix, "--mirror", m.server.URL, "--lock", filepath.Join(m.home, "invar.lock"), "--allow-version-skew"}, more...)
	return m.invar(code, args...)
}

// trusting is for a server whose certificate the user trusts.
func (m *mirror) trusting(code int, more ...string) string {
	m.t.Helper()
	return m.build(code, append(append([]string{"--ca-file", m.server.CA}, m.digests...), more...)...)
}

// nothing wants that a refused build left nothing.
func (m *machine) nothing() {
	m.t.Helper()
	if found, _ := filepath.Glob(filepath.Join(m.prefix, "env", "*", "current")); len(found) != 0 {
		m.t.Errorf("installed: %v", found)
	}
	if found, _ := filepath.Glob(filepath.Join(m.cann.Opp, "vendors", "*")); len(found) != 0 {
		m.t.Errorf("in CANN: %v", found)
	}
}

func TestInvar01CertificateIsChecked(t *testing.T) {
	t.Parallel()
	m := newMirror(t, cann.Package{}, nil)
	text := m.build(report.BuildFailed, m.digests...)
	wants(t, text, 0, 0, "certificate")
	m.nothing()
}

func TestInvar02And09ContentIsPinned(t *testing.T) {
	t.Parallel()
	m := newMirror(t, cann.Package{}, nil)
	text := m.build(report.Unmet, "--ca-file", m.server.CA)
	wants(t, text, 0, 0, "--accept-digest sha256:")
	m.nothing()
	other := newMirror(t, cann.Package{}, map[string]cann.Fault{"run": cann.WrongContent})
	text = other.trusting(report.Unmet)
	wants(t, text, 0, 0, "sha256")
	other.nothing()
}

// TestInvar09 refuses with the address that served, which is not the public one.
func TestInvar09TheAddressThatServedIsNamed(t *testing.T) {
	t.Parallel()
	m := newMirror(t, cann.Package{}, nil)
	sum := strings.TrimPrefix(m.digests[3], "sha256:")
	put(t, filepath.Join(m.home, "invar.lock"), "schema: 1\nfiles:\n  - {name: batch_invariant-torch_ops_extension-2.0.0.zip, sha256: "+sum+", size: 0, from: x}\n")
	text := m.build(report.Unmet, "--ca-file", m.server.CA)
	wants(t, text, 0, 0, "nobody has accepted the content of cann-ops-batch_invariant-910b-2.0.0", "from "+m.server.URL+"/cann-ops-batch_invariant-910b-2.0.0")
	if strings.Contains(text, host) {
		t.Errorf("the public address is named, and the mirror served:\n%s", text)
	}
	m.nothing()
}

func TestInvar03ErrorPageIsNamed(t *testing.T) {
	t.Parallel()
	m := newMirror(t, cann.Package{}, map[string]cann.Fault{"run": cann.ErrorPage})
	text := m.trusting(report.BuildFailed)
	wants(t, text, 0, 0, "HTML page", "503 Service Unavailable")
	m.nothing()
}

// TestInvar04And05 gets both files in spite of the server, and stops at stage 1.
func TestInvar04And05ResumesAndStopsAtStage1(t *testing.T) {
	t.Parallel()
	m := newMirror(t, cann.Package{Variant: cann.FailsToInstall}, map[string]cann.Fault{"run": cann.DropsOnce, "zip": cann.BusyTwice})
	text := m.trusting(report.BuildFailed)
	wants(t, text, 0, 0, "copy new op_api files failed")
	if strings.Contains(text, "stage 2: wheel") {
		t.Errorf("stage 2 was started:\n%s", text)
	}
	if all := strings.Join(m.server.Requests(), "\n"); !strings.Contains(all, ".run bytes=") {
		t.Errorf("the download was not resumed:\n%s", all)
	}
	m.nothing()
}

func TestInvar06FailureHasACode(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	text := m.invar(report.Unmet, "build", "ascend910b", "--python", m.py.Prefix, "--mirror", t.TempDir(), "--offline", "--allow-version-skew")
	wants(t, text, 0, 0, "cann-ops-batch_invariant-910b-2.0.0")
}

func TestInvar07UnknownTargetIsRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	m.invar(report.Unmet, "build", "ascend310p")
	m.invar(report.Usage, "build", "nonsense")
}

func TestInvar08MatchesCANN(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	args := slices.DeleteFunc(m.stages("ascend910b", cann.Package{CANN: "7.0.0"}), func(a string) bool { return a == "--allow-version-skew" })
	text := m.invar(report.Unmet, append([]string{"build", "ascend910b"}, args...)...)
	wants(t, text, 0, 0, "release matrix")
	m.nothing()
}

func TestInvar10LeavesTheCallersFolder(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	put(t, filepath.Join(m.home, "torch_ops_extension", "mine"), "work of a week\n")
	m.build(report.BuildFailed, "ascend910b", cann.Package{Variant: cann.FailsToInstall})
	if !there(filepath.Join(m.home, "torch_ops_extension", "mine")) {
		t.Error("it deleted torch_ops_extension of the caller")
	}
}

func TestInvar14OneAtATime(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	args := append([]string{"build", "ascend910b", "--no-wait"}, m.stages("ascend910b", cann.Package{Variant: cann.MissingSymbol})...)
	codes, texts := make([]int, 2), make([]string, 2)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() {
			res, _ := run.System{}.Run(t.Context(), run.Cmd{Argv: append([]string{invar}, args...), Dir: m.home, Env: m.env()})
			codes[i], texts[i] = res.Code, string(res.Stdout)+string(res.Stderr)
		})
	}
	wg.Wait()
	slices.Sort(codes)
	if !slices.Equal(codes, []int{report.Failed, report.CheckFailed}) {
		t.Errorf("ended with %v; want one that gives way and one that goes on to the probe\n%s\n%s", codes, texts[0], texts[1])
	}
}

func TestInvar15MirrorAndOffline(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	dir := t.TempDir()
	pkg := cann.RunPackage(t, cann.Package{Dir: dir, Version: "2.0.0", Variant: cann.FailsToInstall})
	zip := cann.PrebuiltZip(t, dir, "2.0.0", cann.ExecExt)
	text := m.invar(report.BuildFailed, "build", "ascend910b", "--python", m.py.Prefix, "--mirror", dir, "--offline", "--allow-version-skew",
		"--lock", filepath.Join(m.home, "invar.lock"), "--accept-digest", digest(t, pkg), "--accept-digest", digest(t, zip))
	wants(t, text, 0, 0, "copy new op_api files failed") // it was found and tried
	if !there(pkg) {
		t.Error("the file of the mirror is gone")
	}
}

func TestInvar19OneSpelling(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	stages := m.stages("ascend910b", cann.Package{})
	for _, soc := range []string{"910b4", "Ascend910B4", "ASCEND910B4", "ascend910b4"} {
		text := m.invarIn(0, []string{"SOC_VERSION=" + soc}, append([]string{"build", "--dry-run"}, stages...)...)
		wants(t, text, 0, 0, "ascend910b")
	}
}

// sources is an operator source tree: the real third-party files of
// vllm-ascend, the lines of its real build.sh that choose the jobs, a package
// that an older build left, and a cmake download from a server that nobody
// vouches for. It leaves the package pkg.
func (m *machine) sources(pkg, url string) string {
	m.t.Helper()
	real, tree := filepath.Join(cann.NeedVLLMAscend(m.t), "csrc"), filepath.Join(m.t.TempDir(), "tree")
	if err := os.CopyFS(filepath.Join(tree, "csrc", "cmake"), os.DirFS(filepath.Join(real, "cmake"))); err != nil {
		m.t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(real, "build.sh"))
	if err != nil {
		m.t.Fatal(err)
	}
	_, jobs, _ := strings.Cut(string(b), "function get_cpu_num() {")
	jobs, _, ok := strings.Cut(jobs, "\n}\n")
	if !ok {
		m.t.Fatal("build.sh chooses its jobs in another way")
	}
	put(m.t, filepath.Join(tree, "csrc", "fetch.cmake"), fetchingCMake)
	put(m.t, filepath.Join(tree, "csrc", "build", "cann-ops-batch_invariant-old.run"), "old")
	put(m.t, filepath.Join(tree, "csrc", "build", "CMakeCache.txt"), "of another environment\n")
	put(m.t, filepath.Join(tree, "csrc", "build.sh"), "#!/bin/bash\nget_cpu_num() {"+jobs+`
}
get_cpu_num
echo "it is built with jobs=$CPU_NUM"
echo "left in build: $(ls build 2>/dev/null)"
grep -rn "TLS_VERIFY [O]FF\|CMAKE_TLS_VERIFY=[0]" cmake
cmake -DURL=`+url+` -P fetch.cmake 2>&1
mkdir -p build; cp `+pkg+" build/\n")
	// bisheng is not at hand; this one stands for it.
	put(m.t, filepath.Join(m.cann.Home, "bin", "bisheng"), "#!/bin/sh\nexit 0\n")
	return tree
}

func TestInvar21And22And25And26OperatorSources(t *testing.T) {
	t.Parallel()
	needTool(t, "cmake")
	m := newMachine(t, "ascend910b")
	dir := t.TempDir()
	pkg := cann.RunPackage(t, cann.Package{Dir: dir, Version: "2.0.0", Variant: cann.FailsToInstall})
	zip := cann.PrebuiltZip(t, dir, "2.0.0", cann.ExecExt)
	server := cann.Serve(t, nil, zip)
	tree := m.sources(pkg, server.URL+"/"+filepath.Base(zip))
	text := m.invarIn(report.BuildFailed, []string{"MAX_JOBS=999"}, "build", "ascend910b", "--python", m.py.Prefix, "--ops-source", tree, "--extension", zip,
		"--lock", filepath.Join(m.home, "invar.lock"), "--accept-digest", digest(t, zip), "--allow-version-skew")
	found, _ := filepath.Glob(filepath.Join(m.home, ".local", "state", "invar", "log", "stage1-*.log"))
	log := ""
	for _, f := range found {
		b, _ := os.ReadFile(f)
		log += string(b)
	}
	t.Run("21 the new package is taken", func(t *testing.T) {
		wants(t, text, 0, 0, "copy new op_api files failed") // that is what the new one does
		if !there(filepath.Join(tree, "csrc", "build", "cann-ops-batch_invariant-old.run")) {
			t.Error("the user's tree was changed")
		}
	})
	t.Run("22 certificates are checked", func(t *testing.T) {
		wants(t, text, 0, 0, "certificates are checked in the copy", "cmake/third_party/json.cmake", "fetch.cmake")
		if strings.Contains(log, "TLS_VERIFY OFF") || strings.Contains(log, "fetched with 0") || !strings.Contains(log, "fetched with ") {
			t.Errorf("the build believed a server that nobody vouches for, or did not ask:\n%s", log)
		}
	})
	t.Run("25 nothing of an older build is there", func(t *testing.T) {
		wants(t, log, 0, 0, "left in build: \n")
	})
	t.Run("26 jobs by memory", func(t *testing.T) {
		_, after, _ := strings.Cut(log, "built with jobs=")
		n, err := strconv.Atoi(strings.TrimSpace(firstLine(after)))
		if err != nil || n < 1 || n > runtime.NumCPU() {
			t.Errorf("jobs %q: want no more than %d processors, whatever MAX_JOBS says", firstLine(after), runtime.NumCPU())
		}
	})
	m.nothing()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// TestInvar20To25 installs vllm-ascend from its real setup.py and build_aclnn.sh,
// as far as that goes without a compiler, in a tree where an older build left
// its traces.
func TestInvar20And21And24And25SourceInstall(t *testing.T) {
	t.Parallel()
	s := newScript(t, cann.Package{}, nil)
	m := newMachine(t, "ascend910b")
	tree := s.copied(standIn)
	s.setupFiles(tree)
	put(t, filepath.Join(tree, "requirements.txt"), "numpy\n") // the others are no matter here
	put(t, filepath.Join(tree, "csrc", "build", "cann-ops-transformer-old.run"), "")
	put(t, filepath.Join(tree, "csrc", "build", "CMakeCache.txt"), "PYTHON_EXECUTABLE:UNINITIALIZED=/gone/bin/python\n")
	put(t, filepath.Join(m.bin, "cmake"), cmakeTwice)
	site, _ := filepath.Glob(filepath.Join(testkit.Cache(), "sdist", "lib", "python3.*", "site-packages"))
	// setup.py needs setuptools_scm and pybind11 of the environment.
	env := []string{"SOC_VERSION=ascend910b4", "PYTHONPATH=" + strings.Join(site, ":")}
	text := m.invarIn(report.BuildFailed, env, "build", "ascend910b", "--python", m.py.Prefix, "--install-vllm-ascend", tree, "--offline", "--allow-version-skew")
	t.Run("20 git's settings of the user", func(t *testing.T) {
		if there(filepath.Join(m.home, ".gitconfig")) {
			t.Error("~/.gitconfig was written")
		}
	})
	t.Run("21 an old installer", func(t *testing.T) {
		wants(t, text, 0, 0, "tree      removed "+filepath.Join(tree, "csrc", "build", "cann-ops-transformer-old.run"))
		if strings.Contains(text, "expected 1 installer") {
			t.Error(text)
		}
	})
	t.Run("24 a failed configuration is told", func(t *testing.T) {
		if b, _ := os.ReadFile(filepath.Join(m.home, "configured")); string(b) != "x\nx\n" {
			t.Fatalf("configured %q\n%s", b, text)
		}
		wants(t, text, 0, 0, "the source install of vllm-ascend failed", "2.10.0", "2.9.0", "the operators were not touched")
	})
	t.Run("25 a build folder of another environment", func(t *testing.T) {
		wants(t, text, 0, 0, "configured for another environment: PYTHON_EXECUTABLE=/gone/bin/python")
	})
	m.nothing()
}

func TestInvar23TorchNPUWithoutPip(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	found, _ := filepath.Glob(filepath.Join(m.py.Purelib, "pip*"))
	for _, f := range found {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	text := m.invar(0, append([]string{"build", "ascend910b", "--dry-run"}, m.stages("ascend910b", cann.Package{})...)...)
	if strings.Contains(text, " /torch_npu") {
		t.Error(text)
	}
}

// TestInvarOthers builds once where several numbers are at stake: A3 1.0.0 with
// its wrong name (28), without unzip (16), with COMPILE_CUSTOM_KERNELS=0 (29)
// and another python3 on PATH (17); then a package that fails (12).
func TestInvarOthers(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910_93")
	put(t, filepath.Join(m.bin, "python3"), "#!/bin/sh\necho the python3 of PATH was used >>\"$HOME/wrong\"\nexit 1\n")
	put(t, filepath.Join(m.bin, "pip3"), "#!/bin/sh\necho the pip3 of PATH was used >>\"$HOME/wrong\"\nexit 1\n")
	put(t, filepath.Join(m.bin, "unzip"), "#!/bin/sh\necho unzip was used >>\"$HOME/wrong\"\nexit 127\n")
	vllm := m.vllmAscend(cann.Package{SoC: "ascend910_93", Variant: cann.OtherOps})
	other := cann.InstallInto(t, filepath.Join(t.TempDir(), "other"), cann.Package{SoC: "ascend910_93", Vendor: "other", Variant: cann.BatchDependent})
	put(t, filepath.Join(m.cann.Opp, "vendors", "config.ini"), "load_priority = gone\n")
	before, site := cann.Files(t, m.cann.Root), names(t, m.py.Purelib)
	args := append([]string{"build", "ascend910_93", "--json", "--repair"}, m.stages("ascend910_93", cann.Package{Version: "1.0.0"})...)
	text := m.invarIn(0, []string{"COMPILE_CUSTOM_KERNELS=0", "ASCEND_CUSTOM_OPP_PATH=" + other + ":" + filepath.Dir(other)}, args...)
	t.Run("11 outside CANN", func(t *testing.T) {
		if after := cann.Files(t, m.cann.Root); !slices.Equal(before, after) {
			t.Errorf("the tree of CANN has changed: %v", after)
		}
	})
	t.Run("13 checked afterwards and 30 the choice is told", func(t *testing.T) {
		wants(t, text, 0, 0, `"name": "batch invariance"`, "with VLLM_BATCH_INVARIANT=1 it takes these AscendC operators")
	})
	t.Run("16 own unzip, 17 the chosen Python, 29 without COMPILE_CUSTOM_KERNELS", func(t *testing.T) {
		if b, err := os.ReadFile(filepath.Join(m.home, "wrong")); err == nil {
			t.Errorf("%s", b)
		}
	})
	t.Run("18 no other package is touched", func(t *testing.T) {
		after := slices.DeleteFunc(names(t, m.py.Purelib), func(n string) bool { return n == "invar.pth" })
		if !slices.Equal(site, after) {
			t.Errorf("site-packages: %v, then %v", site, after)
		}
	})
	t.Run("20 nothing in the user's home", func(t *testing.T) {
		if there(filepath.Join(m.home, ".gitconfig")) {
			t.Error("~/.gitconfig was written")
		}
	})
	t.Run("27 the vendor that wins is said", func(t *testing.T) {
		wants(t, text, 0, 0, filepath.Dir(other)+`" of ASCEND_CUSTOM_OPP_PATH is passed over: `, `"load_priority = gone" is not read`)
		wants(t, text, 0, 0, "this one goes before "+filepath.Join(other, "op_api"), "lookup after vllm-ascend's start", "lookup in vllm-ascend's workers")
		got := m.invarIn(0, []string{"ASCEND_CUSTOM_OPP_PATH=" + other}, "probe", "--level", "4", "--json")
		wants(t, got, 0, 0, "before "+filepath.Join(other, "op_api"), "CANN 9.1.0 has none")
		own, _ := filepath.Glob(filepath.Join(m.prefix, "env", "*", "gen", "1", "ops", "ascend910_93", "vendors", "batch_invariant"))
		m.inBoth(t, strings.Join(own, ""), vllm, other)
	})
	t.Run("28 the name is put right", func(t *testing.T) {
		res := m.asked(0, "probe", "--level", "5").Result
		if i := slices.IndexFunc(res.Checks, func(c report.Check) bool { return c.Name == "known defects" }); i < 0 || res.Checks[i].Status != report.Pass {
			t.Errorf("%+v", res.Checks)
		}
	})
	t.Run("what an owner of a machine sends back", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "sent")
		m.invar(0, "probe", "--level", "1", "--record", dir)
		b, err := os.ReadFile(filepath.Join(dir, "probe.json"))
		if err != nil || !strings.Contains(string(b), `"target": "ascend910_93"`) || strings.Contains(string(b), m.home) || !there(filepath.Join(dir, "host")) {
			t.Errorf("%v\n%s", err, b)
		}
		m.invar(report.Usage, "probe", "--level", "1", "--record", dir) // not into a folder that is there
	})
	t.Run("12 a failure leaves what was there", func(t *testing.T) {
		m.build(report.BuildFailed, "ascend910_93", cann.Package{Version: "1.0.0", CANN: "8.5.0", Variant: cann.FailsToInstall})
		if res := m.asked(0, "probe", "--level", "1").Result; res.Generation != 1 || res.Levels[0].Status != report.Pass || res.Proved != probe.Files {
			t.Errorf("%+v", res)
		}
		m.invar(0, "uninstall")
	})
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Name() != "__pycache__" {
			out = append(out, e.Name())
		}
	}
	return out
}
