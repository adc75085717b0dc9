package run

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A confined child writes where it may and nowhere else, and reaches nobody;
// this process keeps its rights.
func TestConfine(t *testing.T) {
	t.Parallel()
	in, out := t.TempDir(), t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	script := `echo a >"$1/a"; mkdir "$1/d"; ln -s a "$1/l"; : >/dev/null
echo b >"$2/b"; mkdir "$2/d"; rm -f "$2/old"; echo x >>"$2/old"
(exec 3<>/dev/tcp/127.0.0.1/` + port + `) && echo reached
exit 7`
	old := filepath.Join(out, "old")
	if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	res, _ := System{}.Run(t.Context(), Cmd{
		Argv: []string{"bash", "-c", script, "x", in, out}, Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, Confine: &Confine{Write: []string{in}},
	})
	if res.Code != 7 {
		t.Fatalf("exit %d: %s", res.Code, res.Stderr)
	}
	for _, name := range []string{"a", "d", "l"} {
		if _, err := os.Lstat(filepath.Join(in, name)); err != nil {
			t.Error(err)
		}
	}
	if !res.Confined.Files || !res.Confined.Network {
		t.Skipf("this kernel does not enforce all of it: %+v", res.Confined)
	}
	b, _ := os.ReadFile(old)
	left, _ := os.ReadDir(out)
	if len(left) != 1 || string(b) != "kept" {
		t.Errorf("outside: %v, %q", left, b)
	}
	if strings.Contains(string(res.Stdout), "reached") {
		t.Error("it reached another process over the network")
	}
	// The control: the same child without bounds does all of it.
	res, _ = System{}.Run(t.Context(), Cmd{Argv: []string{"bash", "-c", script, "x", t.TempDir(), out}, Env: []string{"PATH=/usr/bin:/bin"}})
	if _, err := os.Stat(filepath.Join(out, "b")); err != nil || !strings.Contains(string(res.Stdout), "reached") {
		t.Errorf("unbounded: %v, %s%s", err, res.Stdout, res.Stderr)
	}
	if err := os.WriteFile(filepath.Join(out, "parent"), nil, 0o600); err != nil {
		t.Error("this process lost rights:", err)
	}
}

// What stands in for Landlock on older kernels: a thread whose mounts are
// read-only but for the folders. This process and its other threads keep theirs.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	in, out := t.TempDir(), t.TempDir()
	old := filepath.Join(out, "old")
	if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("bash", "-c", `echo a >"$1/a" && mkdir "$1/d" || exit 1
echo x >"$2/b"; rm -f "$2/old"; mkdir "$2/d"; : >/dev/null && exit 7`, "x", in, out)
	c.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	var text strings.Builder
	c.Stdout, c.Stderr = &text, &text
	type result struct {
		ok  bool
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		r := result{ok: readOnly(Confine{Write: []string{in}})}
		r.err = c.Start()
		done <- r
	}()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	_ = c.Wait()
	if err := os.WriteFile(filepath.Join(out, "parent"), nil, 0o600); err != nil {
		t.Error("this process lost rights:", err)
	}
	if !r.ok {
		t.Skip("this process may not mount")
	}
	if c.ProcessState.ExitCode() != 7 || !strings.Contains(text.String(), "Read-only file system") {
		t.Errorf("ended with %d\n%s", c.ProcessState.ExitCode(), text.String())
	}
	if _, err := os.Stat(filepath.Join(in, "d")); err != nil {
		t.Error(err)
	}
	b, _ := os.ReadFile(old)
	if left, _ := os.ReadDir(out); len(left) != 2 || string(b) != "kept" {
		t.Errorf("outside: %v, %q", left, b)
	}
}
