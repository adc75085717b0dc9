package runpkg_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/runpkg"
)

// TestStubForAll: under a umask that shuts others out, --install-for-all makes
// everything readable for them, folders on the way included; without it the
// umask counts. --quiet says nothing.
func TestStubForAll(t *testing.T) {
	t.Parallel()
	pkg := pack(t, sample(t), runpkg.Gzip)
	for _, shell := range shells {
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			path := tool(t, shell[0])
			private := func(args ...string) (string, int) {
				argv := append([]string{"-c", `umask 077; exec "$@"`, "sh", path}, shell[1:]...)
				return exitCode(t, exec.Command("/bin/sh", append(argv, args...)...))
			}
			all := filepath.Join(t.TempDir(), "on the way", "prefix")
			if out, code := private(pkg, "--install-for-all", "--quiet", "--install-path="+all); code != 0 || out != "" {
				t.Fatalf("exit %d, output %q", code, out)
			}
			// The first folder is the test's own.
			must(t, filepath.Walk(filepath.Dir(all), func(p string, info os.FileInfo, err error) error {
				if err != nil || info.Mode()&os.ModeSymlink != 0 {
					return err
				}
				want := os.FileMode(0o444)
				if info.IsDir() {
					want = 0o555
				}
				if got := info.Mode().Perm() & 0o555; got&want != want {
					t.Errorf("%s: mode %o", p, info.Mode().Perm())
				}
				return nil
			}))
			own := filepath.Join(t.TempDir(), "on the way", "prefix")
			out, code := private(pkg, "--install-path="+own)
			if code != 0 || !strings.Contains(out, "installed 1.2.3") {
				t.Fatalf("exit %d, output %q", code, out)
			}
			for _, dir := range []string{own, filepath.Dir(own)} {
				st, err := os.Stat(dir)
				must(t, err)
				if st.Mode().Perm() != 0o700 {
					t.Errorf("%s: mode %o, want the umask's 700", dir, st.Mode().Perm())
				}
			}
			if out, code := private(pkg, "--uninstall", "--quiet", "--install-path="+all); code != 0 || out != "" {
				t.Errorf("--uninstall --quiet: exit %d, output %q", code, out)
			}
		})
	}
}
