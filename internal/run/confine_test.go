package run

import (
	"net"
	"os"
	"path/filepath"
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
