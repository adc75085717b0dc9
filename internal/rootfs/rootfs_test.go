package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
)

func tree(t *testing.T) (Root, string) {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"usr/local/Ascend/cann-9.1.0/opp", "usr/bin", "etc"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"usr/local/Ascend/cann": "/usr/local/Ascend/cann-9.1.0", "bin": "usr/bin",
		"usr/bin/up": "../../../../../etc", "loop": "loop", "gone": "/nowhere/at/all",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"etc/os-release": "ID=x\n", "usr/local/Ascend/cann-9.1.0/opp/version.info": "Version=9.1.0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r, r.Dir()
}

func TestLinksStayInsideTheRoot(t *testing.T) {
	t.Parallel()
	r, dir := tree(t)
	b, err := r.ReadFile("/usr/local/Ascend/cann/opp/version.info")
	if err != nil || string(b) != "Version=9.1.0\n" {
		t.Errorf("through an absolute link: %q, %v", b, err)
	}
	if b, err = r.ReadFile("/bin/up/os-release"); err != nil || string(b) != "ID=x\n" {
		t.Errorf("through .. above the root: %q, %v", b, err)
	}
	if h, err := r.Host("/bin/up/../../etc/shadow"); err != nil || h != filepath.Join(dir, "etc/shadow") {
		t.Errorf("Host = %s, %v; want a path below %s", h, err, dir)
	}
	if got, _ := r.Resolve("/usr/local/Ascend/cann"); got != "/usr/local/Ascend/cann-9.1.0" {
		t.Errorf("Resolve = %s", got)
	}
	if _, err := r.ReadFile("/loop"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v, want ELOOP", err)
	}
	if !r.Broken("/gone") || r.Broken("/bin") || r.Broken("/etc") {
		t.Error("Broken is for links that lead nowhere")
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	r, _ := tree(t)
	got := r.Glob("/usr/local/Ascend/cann*/*/version.info")
	want := []string{"/usr/local/Ascend/cann-9.1.0/opp/version.info", "/usr/local/Ascend/cann/opp/version.info"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Glob = %v, want %v", got, want)
	}
	if got := r.Glob("/usr/nothing/*"); got != nil {
		t.Errorf("Glob of nothing = %v", got)
	}
}

func TestReadFileRefusesWhatCouldBlock(t *testing.T) {
	t.Parallel()
	r, dir := tree(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "etc/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadFile("/etc/pipe"); err == nil {
		t.Error("a pipe was read")
	}
	if _, err := r.ReadFile("/etc"); err == nil {
		t.Error("a directory was read")
	}
	if _, err := Open(filepath.Join(dir, "etc/os-release")); err == nil {
		t.Error("a file was taken for a root")
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	r, err := Open("/")
	if err != nil || !r.Live() {
		t.Fatalf("Open(/) = %v, %v", r, err)
	}
	if !r.IsDir("/proc") || r.IsFile("/proc") {
		t.Error("/proc is a directory")
	}
}
