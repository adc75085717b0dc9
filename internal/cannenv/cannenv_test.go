package cannenv

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// toolkit writes a CANN tree below root/usr/local/Ascend with set_env.sh as given.
func toolkit(t *testing.T, root, version, setEnv string) string {
	t.Helper()
	dir := filepath.Join(root, "usr", "local", "Ascend", "cann-"+version)
	put(t, filepath.Join(dir, "opp", "version.info"), "Version="+version+"\n")
	put(t, filepath.Join(dir, "x86_64-linux", "ascend_toolkit_install.info"), "version="+version+"\narch=x86_64\n")
	put(t, filepath.Join(dir, "x86_64-linux", "devlib", hal), "")
	put(t, filepath.Join(dir, "set_env.sh"), setEnv)
	return dir
}

// usual does what real scripts do: it uses what may be unset, prints, leaves
// empty entries, and looks at its arguments.
const usual = `echo "hello from set_env"
[ "$1" = "" ] || exit 3
export ASCEND_HOME_PATH=/c ASCEND_OPP_PATH=/c/opp
export LD_LIBRARY_PATH=/c/lib64:/c/lib64:$LD_LIBRARY_PATH
export PYTHONPATH=/c/python:$PYTHONPATH
export PATH=/c/bin:$PATH
unset_is_empty=$SOME_THING_UNSET
export ODD='a b "c" $d'
`

func TestChoose(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	older, newer := toolkit(t, root, "8.5.1", usual), toolkit(t, root, "9.1.0", usual)
	elsewhere := toolkit(t, t.TempDir(), "9.0.0", usual)
	for _, tc := range []struct {
		name, flag string
		env        []string
		dir, why   string
	}{
		{"the newest", "", nil, "/usr/local/Ascend/cann-9.1.0", "newest"},
		{"the environment", "", []string{"ASCEND_HOME_PATH=/usr/local/Ascend/cann-8.5.1/"}, "/usr/local/Ascend/cann-8.5.1", "ASCEND_HOME_PATH names it"},
		{"an environment that names nothing", "", []string{"ASCEND_HOME_PATH=/gone"}, "/usr/local/Ascend/cann-9.1.0", "newest"},
	} {
		c, err := Choose(root, tc.flag, tc.env)
		if err != nil || c.CANN.Dir != tc.dir || !strings.Contains(c.Why, tc.why) || len(c.Others) != 1 {
			t.Errorf("%s: got %+v, %v", tc.name, c, err)
		}
	}
	c, err := Choose("/", elsewhere, []string{"ASCEND_HOME_PATH=" + newer})
	if err != nil || c.CANN.Dir != elsewhere || c.CANN.Version.String() != "9.0.0" || c.Why != "--cann names it" {
		t.Errorf("--cann: got %+v, %v", c, err)
	}
	if _, err := Choose("/", t.TempDir(), nil); report.ExitCode(err) != report.Unmet {
		t.Errorf("--cann with an empty folder: got %v", err)
	}
	if c, err := Choose(t.TempDir(), "", nil); err != nil || c.Found() {
		t.Errorf("no CANN: got %+v, %v", c, err)
	}
	link := filepath.Join(filepath.Dir(older), "cann")
	if err := os.Symlink("cann-8.5.1", link); err != nil {
		t.Fatal(err)
	}
	if c, _ := Choose(root, "", nil); c.CANN.Dir != "/usr/local/Ascend/cann-8.5.1" || !strings.Contains(c.Why, "leads to it") {
		t.Errorf("the usual link: got %+v", c)
	}
}

// The digest follows the scripts, so that a build is repeated when they change.
func TestDigestFollowsTheScript(t *testing.T) {
	t.Parallel()
	dir := toolkit(t, t.TempDir(), "9.1.0", usual)
	a, _ := Choose("/", dir, nil)
	put(t, filepath.Join(dir, "set_env.sh"), usual+"export MORE=1\n")
	b, _ := Choose("/", dir, nil)
	again, _ := Choose("/", dir, nil)
	if a.Digest == b.Digest || b.Digest != again.Digest {
		t.Errorf("%s, %s, %s", a.Digest, b.Digest, again.Digest)
	}
}

func TestCapture(t *testing.T) {
	t.Parallel()
	dir := toolkit(t, t.TempDir(), "9.1.0", usual)
	put(t, filepath.Join(filepath.Dir(dir), "nnal", "atb", "set_env.sh"), "export ATB=\"$ASCEND_HOME_PATH $*\"\n")
	c, err := Choose("/", dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A shell that exports nounset, and a start-up file, change nothing.
	vars, err := Capture(t.Context(), run.System{}, c, []string{"SHELLOPTS=nounset", "BASH_ENV=/nonexistent", "LD_LIBRARY_PATH=/mine"})
	if err != nil {
		t.Fatal(err)
	}
	got := Apply([]string{"LD_LIBRARY_PATH=:/mine::/c/lib64:", "PATH=/usr/bin", "KEEP=1", "ASCEND_HOME_PATH=/old"}, vars)
	for name, want := range map[string]string{
		"LD_LIBRARY_PATH": "/c/lib64:/mine", "PATH": "/c/bin:/usr/bin", "PYTHONPATH": "/c/python", "KEEP": "1",
		"ASCEND_HOME_PATH": "/c", "ASCEND_OPP_PATH": "/c/opp", "ODD": `a b "c" $d`, "ATB": "/c --cxx_abi=1",
	} {
		if v := run.Getenv(got, name); v != want {
			t.Errorf("%s: got %q, want %q", name, v, want)
		}
	}
	if !slices.IsSortedFunc(vars, func(a, b Var) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("not sorted: %+v", vars)
	}
}

func TestCaptureSaysWhichScriptFailed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"echo sorry >&2; exit 4\n": "cannot be sourced",
		"return 1\n":               "cannot be sourced",
		"export NOTHING=1\n":       "sets no ASCEND_HOME_PATH",
	} {
		c, err := Choose("/", toolkit(t, t.TempDir(), "9.1.0", text), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Capture(t.Context(), run.System{}, c, nil)
		if report.ExitCode(err) != report.Unmet || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestDriverless(t *testing.T) {
	t.Parallel()
	dir := toolkit(t, t.TempDir(), "9.1.0", usual)
	c, _ := Choose("/", dir, nil)
	if c.Driver != "" {
		t.Skip("this machine has an NPU driver")
	}
	env := c.Driverless([]string{"LD_LIBRARY_PATH=/a"})
	if run.Getenv(env, "LD_LIBRARY_PATH") != "/a:"+dir+"/x86_64-linux/devlib" || run.Getenv(env, "TORCH_DEVICE_BACKEND_AUTOLOAD") != "0" {
		t.Errorf("got %q", env)
	}
	driver := t.TempDir()
	put(t, filepath.Join(driver, hal), "")
	c, _ = Choose("/", dir, []string{"LD_LIBRARY_PATH=" + driver})
	if env := c.Driverless(nil); c.Driver != driver || len(env) != 0 {
		t.Errorf("with a driver: got %q, %+v", env, c)
	}
}
