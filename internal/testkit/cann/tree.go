package cann

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
)

// Options say what CANN to make. The zero value is CANN 9.1.0 for this machine,
// with a driver and one device of an A2, without nnal.
type Options struct {
	Root     string // file system root to make it below; empty is a new folder
	Version  string // of CANN
	Inner    string // innerversion; empty is that of a release
	SoC      string // what aclrtGetSocName says: "Ascend910B4"
	Devices  int    // 0 is one; NoDriver has none
	Arch     string // empty is this machine's; libraries of another do not load here
	Nnal     string // version of nnal/atb; empty has none
	NoDriver bool   // a machine that only builds: devlib is the only libascend_hal
	Classic  bool   // layout of CANN 8: ascend-toolkit/VERSION, latest
	Image    bool   // for an image: paths inside its files begin at Root
}

// A Tree is an installed look-alike CANN.
type Tree struct {
	Options
	Ascend string // ROOT/usr/local/Ascend
	Home   string // ASCEND_HOME_PATH as set_env.sh gives it
	Opp    string // ASCEND_OPP_PATH
	SetEnv string
	AtbEnv string // set_env.sh of nnal/atb; "" without
	Lib    string // libraries of CANN
	Devlib string
	Driver string // library folder of the driver; "" without
}

// New makes a look-alike CANN.
func New(t testing.TB, o Options) *Tree {
	t.Helper()
	o.fill(t)
	c := &Tree{Options: o, Ascend: filepath.Join(o.Root, "usr", "local", "Ascend")}
	c.Home = filepath.Join(c.Ascend, "cann-"+o.Version)
	if o.Classic {
		c.Home = filepath.Join(c.Ascend, "ascend-toolkit", o.Version)
	}
	machine := filepath.Join(c.Home, o.Arch+"-linux")
	c.Lib, c.Devlib, c.Opp = filepath.Join(machine, "lib64"), filepath.Join(machine, "devlib"), filepath.Join(c.Home, "opp")
	for _, l := range libraries {
		if l.name != devlib.name {
			install(t, l.compiled(t, o.Arch), filepath.Join(c.Lib, l.name))
		}
	}
	install(t, devlib.compiled(t, o.Arch), filepath.Join(c.Devlib, devlib.name))
	c.headers(t, machine)
	c.versions(t, machine)
	c.links(t)
	c.opp(t)
	c.driver(t)
	c.SetEnv = filepath.Join(c.Home, "set_env.sh")
	write(t, c.SetEnv, c.setEnv(), 0o755)
	// build.sh of operator trees sources this one.
	write(t, filepath.Join(c.Home, "bin", "setenv.bash"), "#!/bin/bash\n. "+c.Inside(c.SetEnv)+"\n", 0o755)
	if o.Nnal != "" {
		c.nnal(t)
	}
	return c
}

// Inside is path as processes see it that have the tree: below Root in an image.
func (c *Tree) Inside(path string) string {
	if !c.Image {
		return path
	}
	return strings.TrimPrefix(path, strings.TrimSuffix(c.Root, "/"))
}

func (o *Options) fill(t testing.TB) {
	t.Helper()
	if o.Root == "" {
		o.Root = t.TempDir()
	}
	for field, otherwise := range map[*string]string{&o.Version: "9.1.0", &o.SoC: "Ascend910B4", &o.Arch: Arch(), &o.Inner: "V100R001C25SPC001B220"} {
		if *field == "" {
			*field = otherwise
		}
	}
	if o.Devices == 0 && !o.NoDriver {
		o.Devices = 1
	}
}

// headers copies acl.h and its neighbours from torch_npu, which ships them.
func (c *Tree) headers(t testing.TB, machine string) {
	t.Helper()
	from := filepath.Join(include(t), "third_party", "acl", "inc")
	if err := os.CopyFS(filepath.Join(machine, "include"), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func (c *Tree) versions(t testing.TB, machine string) {
	t.Helper()
	write(t, filepath.Join(machine, "ascend_toolkit_install.info"), fmt.Sprintf(
		"package_name=Ascend-cann-toolkit\nversion=%s\ninnerversion=%s\ncompatible_version=[V100R001C15],[V100R001C25]\narch=%s\nos=linux\npath=%s\n",
		c.Version, c.Inner, c.Arch, c.Inside(machine)), 0o644)
	for _, part := range []string{"compiler", "opp", "runtime", "toolkit"} {
		write(t, filepath.Join(c.Home, part, "version.info"), fmt.Sprintf("Version=%s\nversion_dir=%s\ninnerversion=%s\n", c.Version, c.Version, c.Inner), 0o644)
	}
}

// links are the names under which the tree is found.
func (c *Tree) links(t testing.TB) {
	t.Helper()
	machine := c.Arch + "-linux"
	for at, to := range map[string]string{
		filepath.Join(c.Home, "lib64"):   machine + "/lib64",
		filepath.Join(c.Home, "include"): machine + "/include",
		filepath.Join(c.Home, "devlib"):  machine + "/devlib",
	} {
		link(t, to, at)
	}
	if c.Classic {
		link(t, c.Version, filepath.Join(c.Ascend, "ascend-toolkit", "latest"))
		return
	}
	link(t, "cann-"+c.Version, filepath.Join(c.Ascend, "cann"))
	if err := os.MkdirAll(filepath.Join(c.Ascend, "ascend-toolkit"), 0o755); err != nil {
		t.Fatal(err)
	}
	link(t, "../cann-"+c.Version, filepath.Join(c.Ascend, "ascend-toolkit", "latest"))
}

// opp is the tree of operators as the package of built-in ones leaves it.
func (c *Tree) opp(t testing.TB) {
	t.Helper()
	for _, dir := range []string{"vendors", "built-in/op_impl/ai_core/tbe/kernel/config", "built-in/op_proto"} {
		if err := os.MkdirAll(filepath.Join(c.Opp, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(c.Opp, "scene.info"), fmt.Sprintf("os=linux\narch=%s\n", c.Arch), 0o644)
}

func (c *Tree) driver(t testing.TB) {
	t.Helper()
	if c.NoDriver {
		return
	}
	dir := filepath.Join(c.Ascend, "driver")
	c.Driver = filepath.Join(dir, "lib64", "driver")
	install(t, find(devlib.name).compiled(t, c.Arch), filepath.Join(c.Driver, devlib.name))
	write(t, filepath.Join(dir, "version.info"), "Version=25.5.1\nascendhal_version=7.35.23\npackage_version=25.5.1\ncompatible_version_fw=[7.0.0,8.9.9]\n", 0o644)
	write(t, filepath.Join(c.Root, "etc", "ascend_install.info"), "UserName=HwHiAiUser\nUserGroup=HwHiAiUser\nDriver_Install_Type=full\nDriver_Install_Path_Param="+
		c.Inside(c.Ascend)+"\nDriver_Install_Status=complete\n", 0o644)
}

// setEnv is written as the real one: it appends to variables that may be unset,
// and so stops half-way under "set -u".
func (c *Tree) setEnv() string {
	return fmt.Sprintf(`# environment of CANN %[2]s
export ASCEND_TOOLKIT_HOME=%[1]s
export ASCEND_HOME_PATH=%[1]s
export ASCEND_OPP_PATH=%[1]s/opp
export ASCEND_AICPU_PATH=%[1]s
export TOOLCHAIN_HOME=%[1]s/toolkit
export LD_LIBRARY_PATH=%[1]s/lib64:%[1]s/lib64/plugin/opskernel:%[1]s/lib64/plugin/nnengine:$LD_LIBRARY_PATH
export PYTHONPATH=%[1]s/python/site-packages:%[1]s/opp/built-in/op_impl/ai_core/tbe:$PYTHONPATH
export PATH=%[1]s/bin:%[1]s/compiler/ccec_compiler/bin:$PATH
`, c.Inside(c.Home), c.Version)
}

func (c *Tree) nnal(t testing.TB) {
	t.Helper()
	dir := filepath.Join(c.Ascend, "nnal", "atb")
	write(t, filepath.Join(dir, c.Nnal, "version.info"), "Ascend-cann-atb : "+c.Nnal+"\nAscend-cann-atb Version : "+c.Nnal+".B010\nPlatform : "+c.Arch+"\n", 0o644)
	for _, abi := range []string{"cxx_abi_0", "cxx_abi_1"} {
		install(t, library{name: "libatb.so"}.compiled(t, c.Arch), filepath.Join(dir, c.Nnal, "atb", abi, "lib", "libatb.so"))
	}
	link(t, c.Nnal, filepath.Join(dir, "latest"))
	c.AtbEnv = filepath.Join(dir, "set_env.sh")
	write(t, c.AtbEnv, fmt.Sprintf(`# environment of ATB; --cxx_abi=0 or 1, else that of torch
abi=0
for argument in "$@"; do
	case $argument in --cxx_abi=*) abi=${argument#--cxx_abi=} ;; esac
done
export ATB_HOME_PATH=%s/latest/atb/cxx_abi_$abi
export LD_LIBRARY_PATH=$ATB_HOME_PATH/lib:$LD_LIBRARY_PATH
export ATB_MATMUL_SHUFFLE_K_ENABLE=1
export LCCL_DETERMINISTIC=0
`, c.Inside(dir)), 0o755)
}

func link(t testing.TB, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

// Bare is an environment that has nothing of CANN: what a user has who has not
// sourced anything. The settings of the look-alike are in it, since they stand
// for the machine and not for the shell.
func (c *Tree) Bare() []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1",
		// The driver's libraries are found as ldconfig or the image's ENV has it.
		"LD_LIBRARY_PATH=" + c.Driver,
		"LOOKALIKE_SOC=" + c.SoC, "LOOKALIKE_CANN=" + c.Version, fmt.Sprintf("LOOKALIKE_DEVICES=%d", c.Devices),
		// A failed operator is dropped without a word otherwise, with all that follow.
		"ASCEND_LAUNCH_BLOCKING=1",
	}
}

// Env is the environment after set_env.sh was sourced, with further KEY=VALUE.
func (c *Tree) Env(more ...string) []string {
	env := map[string]string{}
	for _, kv := range c.Bare() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	path := []string{c.Lib}
	if c.NoDriver {
		path = append(path, c.Devlib)
	} else {
		path = append(path, c.Driver)
	}
	env["LD_LIBRARY_PATH"] = strings.Join(path, ":")
	env["ASCEND_HOME_PATH"], env["ASCEND_TOOLKIT_HOME"], env["ASCEND_OPP_PATH"], env["ASCEND_AICPU_PATH"] = c.Home, c.Home, c.Opp, c.Home
	env["PATH"] = filepath.Join(c.Home, "bin") + ":" + env["PATH"]
	if c.NoDriver {
		env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
	}
	for _, kv := range more {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	return out
}

// Run runs argv in env, with a folder of its own as the working directory.
func Run(t testing.TB, env []string, argv ...string) (run.Result, error) {
	t.Helper()
	return run.System{}.Run(t.Context(), run.Cmd{Argv: argv, Dir: t.TempDir(), Env: env})
}

// Files lists what is below dir with types, for comparing trees.
func Files(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		out = append(out, d.Type().String()+" "+rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
