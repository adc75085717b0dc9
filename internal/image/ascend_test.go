package image

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// npuBase is what .ci/setup makes: a Debian with Python, torch_npu, dnf and rpm.
const npuBase = "localhost/debian-torch-npu:2.9"

// A standIn is the base image of CANN that a test makes: npuBase with the
// look-alike where CANN is, without driver or device, as in a build of an image.
type standIn struct {
	soc       string // "ascend910b"
	openEuler bool
	version   string // of the operators; empty is 1.0.0
	variant   cann.Variant
	change    func(t *testing.T, root string) // last touch
	env       []string                        // more of it in the configuration
	torch     string                          // TORCH_REQUIREMENTS
	args      string                          // in place of --repair
}

// make commits the stand-in and gives its name and the arguments of a build.
func (s standIn) make(t *testing.T, env []string) (ref string, args map[string]string) {
	t.Helper()
	if s.version == "" {
		s.version = "1.0.0"
	}
	ctr := buildah(t, env, "from", "--pull-never", npuBase)
	defer func() {
		cmd := exec.Command("buildah", "rm", ctr)
		cmd.Env = env
		_ = cmd.Run()
	}()
	root := buildah(t, env, "mount", ctr)
	tree := cann.New(t, cann.Options{Root: root, NoDriver: true, Image: true})
	pkgs := filepath.Join(root, "srv", "packages")
	if err := os.MkdirAll(pkgs, 0o755); err != nil {
		t.Fatal(err)
	}
	// --repair: 1.0.0 for A3 was released with a file of another name.
	accept := "--run-package /srv/packages --ops-version " + s.version + " --allow-version-skew "
	if accept += s.args; s.args == "" {
		accept += "--repair"
	}
	for _, file := range []string{
		cann.RunPackage(t, cann.Package{SoC: s.soc, Version: s.version, Dir: pkgs, Variant: s.variant}),
		cann.PrebuiltZip(t, pkgs, s.version, cann.ExecExt),
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		accept += " --accept-digest sha256:" + hex.EncodeToString(sum[:])
	}
	if s.openEuler {
		becomeOpenEuler(t, root)
	}
	if s.change != nil {
		s.change(t, root)
	}
	home := tree.Inside(tree.Home)
	config := []string{"config"}
	for _, e := range append([]string{
		"ASCEND_TOOLKIT_HOME=" + home, "ASCEND_HOME_PATH=" + home, "ASCEND_OPP_PATH=" + home + "/opp", "ASCEND_AICPU_PATH=" + home,
		"LD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64:/usr/local/Ascend/driver/lib64/driver:" + home + "/lib64", "LCCL_DETERMINISTIC=0",
	}, s.env...) {
		config = append(config, "--env", e)
	}
	buildah(t, env, append(config, ctr)...)
	buildah(t, env, "umount", ctr)
	ref = "localhost/cann-look-alike:" + strings.ToLower(filepath.Base(t.TempDir())) + "-" + s.soc
	buildah(t, env, "commit", "--quiet", ctr, ref)
	t.Cleanup(func() { buildah(t, env, "rmi", ref) })
	return ref, map[string]string{"INVAR_PYTHON": "/opt/torch-npu", "TORCH_REQUIREMENTS": s.torch, "INVAR_BUILD_ARGS": accept}
}

// becomeOpenEuler renames the system, takes apt and dpkg away, and leaves g++
// to a package of a repository that only dnf reads.
func becomeOpenEuler(t *testing.T, root string) {
	t.Helper()
	for _, pattern := range []string{"usr/bin/apt*", "usr/bin/dpkg*", "usr/bin/g++", "usr/bin/c++", "etc/apt", "etc/os-release", "etc/debian_version", "etc/yum.repos.d/*"} {
		hits, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			if err := os.RemoveAll(h); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range map[string]string{
		"etc/os-release":              "NAME=\"openEuler\"\nVERSION=\"24.03 (LTS)\"\nID=\"openEuler\"\nVERSION_ID=\"24.03\"\nPRETTY_NAME=\"openEuler 24.03 (LTS)\"\n",
		"etc/dnf/vars/releasever":     "24.03\n",
		"etc/yum.repos.d/local.repo":  "[local]\nname=packages of the test\nbaseurl=file:///srv/repository\nenabled=1\ngpgcheck=0\n",
		"srv/repository/gcc-c++.spec": gxxSpec,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	repository := filepath.Join(root, "srv", "repository")
	for _, argv := range [][]string{
		{"rpmbuild", "--quiet", "-bb", "--define", "_topdir " + t.TempDir(), "--define", "_rpmdir " + repository, "--target", "x86_64", filepath.Join(repository, "gcc-c++.spec")},
		{"createrepo_c", "--quiet", repository},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
}

// gxxSpec is openEuler's name for g++; the compiler itself is the base's.
const gxxSpec = `Name: gcc-c++
Version: 12.3.1
Release: 1
Summary: the C++ compiler of the test's base
License: GPL-3.0-or-later
AutoReqProv: no
%description
Names for the compiler of the base.
%install
mkdir -p %{buildroot}/usr/bin
ln -s g++-12 %{buildroot}/usr/bin/g++
ln -s g++-12 %{buildroot}/usr/bin/c++
%files
/usr/bin/g++
/usr/bin/c++
`

// needNPU is needBuildah with npuBase in the store.
func needNPU(t *testing.T) []string {
	t.Helper()
	env := needBuildah(t)
	cmd := exec.Command("buildah", "inspect", "--type", "image", npuBase)
	cmd.Env = env
	if err := cmd.Run(); err != nil {
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatalf("no %s: %v", npuBase, err)
		}
		t.Skipf("needs %s: run .ci/setup", npuBase)
	}
	return env
}

func ascendRequest(t *testing.T, env []string, bin string, s standIn) Request {
	t.Helper()
	req := request(t, env, bin)
	req.Families, req.OS = []string{s.soc}, "ubuntu22.04"
	if s.openEuler {
		req.OS = "openeuler24.03"
	}
	req.Base, req.Args = s.make(t, env)
	return req
}

// TestAscend builds images of the Ascend families. The others of the matrix are
// built when INVAR_SOAK_IMAGES is set: .ci/soak images.
func TestAscend(t *testing.T) {
	env := needNPU(t)
	bin := static(t, "amd64")
	for _, c := range []struct {
		soak bool
		s    standIn
	}{
		{false, standIn{soc: "ascend910b"}},
		{false, standIn{soc: "ascend950", version: "2.0.0", openEuler: true}},
		{true, standIn{soc: "ascend910b", openEuler: true}},
		{true, standIn{soc: "ascend910_93"}},
		{true, standIn{soc: "ascend910_93", openEuler: true}},
		{true, standIn{soc: "ascend950", version: "2.0.0"}},
	} {
		name := c.s.soc
		if c.s.openEuler {
			name += " on openEuler"
		}
		t.Run(name, func(t *testing.T) {
			if c.soak && os.Getenv("INVAR_SOAK_IMAGES") == "" {
				t.Skip("left to .ci/soak images")
			}
			testAscend(t, env, bin, c.s)
		})
	}
}

// testAscend builds an image and looks into it. COMPILE_CUSTOM_KERNELS=0, which
// makes vllm-ascend's build leave the operators out, changes nothing here.
func testAscend(t *testing.T, env []string, bin string, s standIn) {
	req := ascendRequest(t, env, bin, s)
	req.Args["COMPILE_CUSTOM_KERNELS"] = "0"
	res, err := Build(t.Context(), req)
	if err != nil {
		t.Fatal(full(err))
	}
	tag := res.Tags[0]
	for _, other := range res.Tags[1:] {
		defer buildah(t, env, "rmi", other)
	}
	defer buildah(t, env, "rmi", tag)
	log, err := os.ReadFile(res.Log)
	if err != nil || !strings.Contains(string(log), "proved to level 5 of 7") {
		t.Errorf("the log (%v) does not say that level 5 was proved:\n%s", err, tailOf(log))
	}
	for label, want := range map[string]string{"soc": res.Row.SoC, "target": s.soc, "cann": "9.1.0", "torch": "2.9.0"} {
		if got := res.Labels[labelPrefix+label]; !strings.HasPrefix(got, want) || want == "" {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	config := buildah(t, env, "inspect", "--type", "image", "--format", "{{.Docker.Config.Healthcheck}} {{.OCIv1.Config.Env}} {{.OCIv1.Config.Labels}}", tag)
	for _, want := range []string{"probe --level 1", "SOC_VERSION=" + res.Row.SoC, "INVAR_HOME=/opt/invar", res.Labels[labelPrefix+"run-package.digest"]} {
		if !strings.Contains(config, want) {
			t.Errorf("no %q in the image's configuration:\n%s", want, config)
		}
	}
	for _, not := range []string{"VLLM_BATCH_INVARIANT", "COMPILE_CUSTOM_KERNELS"} {
		if strings.Contains(config, not) {
			t.Errorf("%s stays in the image:\n%s", not, config)
		}
	}
	ctr := buildah(t, env, "from", "--pull-never", tag)
	defer buildah(t, env, "rm", ctr)
	root := buildah(t, env, "mount", ctr)
	if found := find(t, filepath.Join(root, "opt", "invar"), "libcust_opapi.so"); len(found) != 1 {
		t.Errorf("libcust_opapi.so is in the image as %v", found)
	}
	for _, left := range []string{"usr/local/bin/install-packages", "root/.cache", "build-cache/invar", "usr/bin/unzip", "root/.local"} {
		if _, err := os.Lstat(filepath.Join(root, left)); err == nil {
			t.Errorf("/%s is in the image", left)
		}
	}
	noLitter(t, root)
	if out := buildah(t, env, "run", ctr, "--", "invar", "probe", "--level", "1"); !strings.Contains(out, "proved to level 1") {
		t.Errorf("the health check:\n%s", out)
	}
	// What needs a device says so, and is no success.
	cmd := exec.Command("buildah", "run", ctr, "--", "invar", "probe", "--require", "6")
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("level 6 without a device was accepted:\n%s", out)
	}
	if s.soc == "ascend910b" && !s.openEuler { // once will do
		t.Run("restored", func(t *testing.T) { testRestored(t, env, req, tag) })
	}
}

func tailOf(log []byte) []byte { return log[max(0, len(log)-3000):] }

// find lists the regular files below dir whose names match pattern.
func find(t *testing.T, dir, pattern string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ok, err := filepath.Match(pattern, d.Name()); err != nil || !ok || !d.Type().IsRegular() {
			return err
		}
		out = append(out, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// noLitter checks that a build left neither logs nor compiled Python in invar's home.
func noLitter(t *testing.T, root string) {
	t.Helper()
	home := filepath.Join(root, "opt", "invar")
	for _, l := range append(find(t, home, "*.pyc"), find(t, home, "*.log")...) {
		t.Errorf("%s is in the image", strings.TrimPrefix(l, root))
	}
}

// TestAscendRefused: bases and packages that no image can come from. Each ends
// with what is wrong, exit code 3 or 4, and nothing in the store.
func TestAscendRefused(t *testing.T) {
	env := needNPU(t)
	bin := static(t, "amd64")
	remove := func(paths ...string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			for _, p := range paths {
				hits, err := filepath.Glob(filepath.Join(root, p))
				if err != nil || len(hits) == 0 {
					t.Fatalf("nothing at %s (%v)", p, err)
				}
				for _, h := range hits {
					if err := os.RemoveAll(h); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		s    standIn
		code int
		says string
	}{
		{"without CANN", standIn{change: remove("usr/local/Ascend")}, report.BuildFailed, "CANN"},
		{"without pip", standIn{change: remove("opt/torch-npu/lib/python3*/site-packages/pip*", "usr/lib/python3*/ensurepip")}, report.BuildFailed, "pip or uv"},
		{"without pip for torch", standIn{change: remove("opt/torch-npu/lib/python3*/site-packages/pip*"), torch: "torch==2.9.0"}, report.BuildFailed, "No module named pip"},
		{"without torch", standIn{change: remove("opt/torch-npu/lib/python3*/site-packages/torch", "opt/torch-npu/lib/python3*/site-packages/torch-*")}, report.BuildFailed, "torch"},
		{"without devlib", standIn{change: remove("usr/local/Ascend/cann-9.1.0/*/devlib")}, report.BuildFailed, "libascend_hal.so"},
		{"package of another SoC", standIn{variant: cann.OtherSoC}, report.BuildFailed, "ascend910_93"},
		{"package that does not install", standIn{variant: cann.FailsToInstall}, report.BuildFailed, "copy new op_api files failed"},
		{"an operator is missing", standIn{variant: cann.MissingSymbol}, report.BuildFailed, "aclnnReduceMeanBatchInvariant"},
		{"known defects", standIn{soc: "ascend910_93", args: "--force"}, report.BuildFailed, "--repair"},
		{"setting of a server", standIn{env: []string{"VLLM_BATCH_INVARIANT=1"}}, report.Unmet, "VLLM_BATCH_INVARIANT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.s.soc == "" {
				c.s.soc = "ascend910b"
			}
			req := ascendRequest(t, env, bin, c.s)
			before := buildah(t, env, "images", "--quiet", "--no-trunc")
			res, err := Build(t.Context(), req)
			fails(t, res, err, c.code)
			if !strings.Contains(full(err), c.says) {
				t.Errorf("want %q:\n%s", c.says, full(err))
			}
			if after := buildah(t, env, "images", "--quiet", "--no-trunc"); after != before {
				t.Errorf("images are left:\n%s\nbefore:\n%s", after, before)
			}
			if left := buildah(t, env, "containers", "--quiet"); left != "" {
				t.Errorf("working containers are left: %s", left)
			}
		})
	}
}

// testRestored builds on an image of before, as restored from a cache, that
// lost what a cache may lack: it is not taken for a whole one.
func testRestored(t *testing.T, env []string, req Request, tag string) {
	ctr := buildah(t, env, "from", "--pull-never", tag)
	root := buildah(t, env, "mount", ctr)
	lost := find(t, filepath.Join(root, "opt", "invar"), "libcust_opapi.so")
	if len(lost) != 1 {
		t.Fatalf("libcust_opapi.so is in the image as %v", lost)
	}
	if err := os.Remove(lost[0]); err != nil {
		t.Fatal(err)
	}
	buildah(t, env, "umount", ctr)
	cached := "localhost/restored:" + strings.ToLower(filepath.Base(t.TempDir()))
	buildah(t, env, "commit", "--quiet", "--rm", ctr, cached)
	defer buildah(t, env, "rmi", cached)
	req.Base, req.Version = cached, "2.0.0"
	res, err := Build(t.Context(), req)
	if err != nil { // refused: then it says why, and nothing is tagged
		fails(t, res, err, report.BuildFailed)
		if !strings.Contains(full(err), "libcust_opapi.so") {
			t.Errorf("the refusal does not name what is missing:\n%s", full(err))
		}
		t.Log("refused:", full(err))
		return
	}
	for _, made := range res.Tags {
		defer buildah(t, env, "rmi", made)
	}
	made := buildah(t, env, "from", "--pull-never", res.Tags[0])
	defer buildah(t, env, "rm", made)
	if found := find(t, filepath.Join(buildah(t, env, "mount", made), "opt", "invar"), "libcust_opapi.so"); len(found) == 0 {
		t.Error("the image was built from a restored installation without its operators")
	}
	t.Log("built again")
}
