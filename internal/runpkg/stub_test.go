package runpkg_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/runpkg"
)

// shells are those that a machine may have as sh.
var shells = [][]string{{"dash"}, {"bash"}, {"busybox", "sh"}}

// eachShell runs a test once with each shell; sh runs a package and returns
// its output and exit code.
func eachShell(t *testing.T, body func(t *testing.T, sh func(args ...string) (string, int))) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			path := tool(t, shell[0])
			body(t, func(args ...string) (string, int) {
				t.Helper()
				return exitCode(t, exec.Command(path, append(shell[1:len(shell):len(shell)], args...)...))
			})
		})
	}
}

func exitCode(t testing.TB, cmd *exec.Cmd) (string, int) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	must(t, err)
	return string(out), 0
}

func TestStubIsCleanShell(t *testing.T) {
	t.Parallel()
	run(t, tool(t, "shellcheck"), "-s", "sh", "stub.sh")
}

func TestStubInformsWithoutWriting(t *testing.T) {
	eachShell(t, func(t *testing.T, sh func(...string) (string, int)) {
		run := filepath.Join(t.TempDir(), "my package.run")
		must(t, os.Rename(pack(t, sample(t), runpkg.Gzip), run))
		for option, want := range map[string][]string{
			"--help":  {"Usage:", "--install-path=DIR"},
			"--info":  {"invar-ops-cpu", "1.2.3", "mm softmax", `"schema": 1`, "g++ 12.2.0"},
			"--list":  {"f 755           20 bin/tool", "d 755            0 hollow/", "f 644           16  leading", "l 777            0 dangling link"},
			"--check": {"SHA-256 ok"},
		} {
			out, code := sh(run, option)
			for _, w := range want {
				if code != 0 || !strings.Contains(out, w) {
					t.Errorf("%s: exit %d, no %q in\n%s", option, code, w, out)
				}
			}
		}
		if out, code := sh(run, "--check", "--quiet"); code != 0 || out != "" {
			t.Errorf("--check --quiet: exit %d, output %q", code, out)
		}
		left, _ := os.ReadDir(filepath.Dir(run))
		if len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestStubRefusesWrongOptions(t *testing.T) {
	eachShell(t, func(t *testing.T, sh func(...string) (string, int)) {
		run := pack(t, sample(t), runpkg.Gzip)
		for _, args := range [][]string{
			{"--bogus"},
			{"--target"},
			{"--install-path"},
			{"--install-path="},
			{"file"},
			{"--", "--bogus"},
			{"--target", "x", "--install-path=y"},
		} {
			if out, code := sh(append([]string{run}, args...)...); code != 2 || !strings.Contains(out, "hint") {
				t.Errorf("%v: exit %d, want 2 with a hint\n%s", args, code, out)
			}
		}
	})
}

func TestStubExtracts(t *testing.T) {
	dir := sample(t)
	want := listing(t, dir)
	codecs := []runpkg.Codec{runpkg.Gzip, runpkg.Zstd, runpkg.None}
	eachShell(t, func(t *testing.T, sh func(...string) (string, int)) {
		for _, codec := range codecs {
			if codec == runpkg.Zstd {
				tool(t, "zstd")
			}
			run, out := pack(t, dir, codec), filepath.Join(t.TempDir(), "a b", "c")
			if text, code := sh(run, "--noexec", "--target", out); code != 0 {
				t.Fatalf("exit %d\n%s", code, text)
			}
			if got := listing(t, out); got != want {
				t.Errorf("%s:\n%s\nwant:\n%s", codec, got, want)
			}
			if text, code := sh(run, "--target="+out); code != 1 || !strings.Contains(text, "not empty") {
				t.Errorf("second extraction: exit %d\n%s", code, text)
			}
			if got := listing(t, out); got != want {
				t.Error("the refused extraction changed something")
			}
		}
	})
}

// older is the same package in another version with other files.
func older(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "lib/gone"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "lib/gone/old.so"), []byte("old"), 0o644))
	s := spec(dir, runpkg.Gzip)
	s.Manifest.Version = "1.0.0"
	path := filepath.Join(t.TempDir(), "old.run")
	_, err := runpkg.Write(context.Background(), path, s)
	must(t, err)
	return path
}

// installed is what a user sees: the tree without the record of the installer.
func installed(t testing.TB, prefix string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(filepath.Join(prefix, "invar-ops-cpu"))
	must(t, err)
	var keep []string
	for line := range strings.SplitSeq(listing(t, real), "\n") {
		if !strings.HasPrefix(line, ".invar-installed ") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "\n")
}

func TestStubInstallsUpgradesAndUninstalls(t *testing.T) {
	dir := sample(t)
	want := listing(t, dir)
	eachShell(t, func(t *testing.T, sh func(...string) (string, int)) {
		run, old := pack(t, dir, runpkg.Gzip), older(t)
		prefix := filepath.Join(t.TempDir(), "pre fix")
		do := func(wantCode int, wantText string, args ...string) {
			t.Helper()
			if out, code := sh(args...); code != wantCode || !strings.Contains(out, wantText) {
				t.Fatalf("%v: exit %d, want %d and %q\n%s", args, code, wantCode, wantText, out)
			}
		}
		do(0, "installed 1.0.0", old, "--install-path="+prefix)
		mine := filepath.Join(prefix, "mine.txt")
		must(t, os.WriteFile(mine, []byte("not the package's"), 0o644))
		do(0, "nothing to do", old, "--install-path", prefix)
		do(1, "--upgrade", run, "--install-path="+prefix)
		do(0, "installed 1.2.3", run, "--upgrade", "--install-path="+prefix)
		if got := installed(t, prefix); got != want {
			t.Errorf("installed:\n%s\nwant:\n%s", got, want)
		}
		left, _ := os.ReadDir(prefix)
		if len(left) != 3 { // the link, the folder behind it, mine.txt
			t.Errorf("beside the package: %v", left)
		}
		// A damaged installation is not taken for a good one.
		must(t, os.WriteFile(filepath.Join(prefix, "invar-ops-cpu/bin/tool"), []byte("changed"), 0o755))
		do(0, "installed 1.2.3", run, "--", "--install-path="+prefix)
		if got := installed(t, prefix); got != want {
			t.Errorf("repaired:\n%s\nwant:\n%s", got, want)
		}
		do(0, "removed 1.2.3", run, "--uninstall", "--install-path="+prefix)
		do(1, "is not installed", run, "--uninstall", "--install-path="+prefix)
		if left, _ := os.ReadDir(prefix); len(left) != 1 {
			t.Errorf("after --uninstall: %v", left)
		}
		if got := read(t, mine); string(got) != "not the package's" {
			t.Error("a file of somebody else changed")
		}
	})
}

// TestStubKeepsForeignFiles: what others put into the installed folder stays.
func TestStubKeepsForeignFiles(t *testing.T) {
	dir := sample(t)
	eachShell(t, func(t *testing.T, sh func(...string) (string, int)) {
		run, prefix := pack(t, dir, runpkg.Gzip), t.TempDir()
		if out, code := sh(run, "--install-path="+prefix); code != 0 {
			t.Fatal(out)
		}
		real, err := filepath.EvalSymlinks(filepath.Join(prefix, "invar-ops-cpu"))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(real, "lib/foreign"), []byte("keep"), 0o644))
		out, code := sh(run, "--uninstall", "--install-path="+prefix)
		if code != 0 || !strings.Contains(out, "kept") {
			t.Errorf("exit %d\n%s", code, out)
		}
		if got := listing(t, real); !strings.HasPrefix(got, "lib/ 755\nlib/foreign 644") || strings.Count(got, "\n") != 2 {
			t.Errorf("left:\n%s", got)
		}
		// Something that no package made is not touched.
		other := filepath.Join(t.TempDir(), "p")
		must(t, os.MkdirAll(filepath.Join(other, "invar-ops-cpu"), 0o755))
		if out, code := sh(run, "--upgrade", "--install-path="+other); code != 1 || !strings.Contains(out, "was not installed by") {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
}

func TestStubRefusesDamage(t *testing.T) {
	dir := sample(t)
	eachShell(t, func(t *testing.T, sh func(...string) (string, int)) {
		whole := read(t, pack(t, dir, runpkg.Gzip))
		flipped := bytes.Clone(whole)
		flipped[len(flipped)-1000] ^= 1
		for name, c := range map[string]struct {
			data []byte
			want string
		}{
			"truncated": {whole[:len(whole)-5000], "truncated"},
			"longer":    {append(bytes.Clone(whole), 'x'), "damaged"},
			"flipped":   {flipped, "SHA-256"},
		} {
			run, prefix := filepath.Join(t.TempDir(), "p.run"), t.TempDir()
			must(t, os.WriteFile(run, c.data, 0o755))
			for _, args := range [][]string{
				{"--check"},
				{"--install-path=" + prefix},
				{"--target", filepath.Join(prefix, "t")},
			} {
				if out, code := sh(append([]string{run}, args...)...); code != 1 || !strings.Contains(out, c.want) {
					t.Errorf("%s %v: exit %d, want 1 and %q\n%s", name, args, code, c.want, out)
				}
			}
			if got := strings.ReplaceAll(listing(t, prefix), "t/ 755\n", ""); got != "" {
				t.Errorf("%s: left behind:\n%s", name, got)
			}
		}
	})
}

// TestStubWithoutTools hides programs: PATH holds only links to those named.
func TestStubWithoutTools(t *testing.T) {
	t.Parallel()
	dir := sample(t)
	want := listing(t, dir)
	basic := []string{"sh", "tar", "gzip", "dd", "sed", "tail", "head", "wc", "cut", "grep", "sort", "mktemp", "mkdir", "rmdir", "rm", "mv", "ln", "chmod", "uname", "tr", "id", "ls", "cat"}
	for name, c := range map[string]struct {
		extra []string
		want  string
		code  int
	}{
		"sha256sum":      {[]string{"sha256sum"}, "SHA-256 ok (sha256sum)", 0},
		"busybox":        {[]string{"busybox"}, "SHA-256 ok (busybox sha256sum)", 0},
		"shasum":         {[]string{"shasum", "perl"}, "SHA-256 ok (shasum -a 256)", 0},
		"openssl":        {[]string{"openssl"}, "SHA-256 ok (openssl dgst -sha256 -r)", 0},
		"only cksum":     {[]string{"cksum"}, "the SHA-256 is not checked", 0},
		"no digest tool": {nil, "nothing can check", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			for _, n := range append(c.extra, basic...) {
				must(t, os.Symlink(tool(t, n), filepath.Join(bin, n)))
			}
			out := filepath.Join(t.TempDir(), "out")
			cmd := exec.Command(filepath.Join(bin, "sh"), pack(t, dir, runpkg.Gzip), "--target", out)
			cmd.Env = []string{"PATH=" + bin}
			text, code := exitCode(t, cmd)
			if code != c.code || !strings.Contains(text, c.want) {
				t.Fatalf("exit %d, want %d and %q\n%s", code, c.code, c.want, text)
			}
			if c.code == 0 && listing(t, out) != want {
				t.Errorf("another tree:\n%s", listing(t, out))
			}
		})
	}
	t.Run("zstd missing", func(t *testing.T) {
		t.Parallel()
		bin := t.TempDir()
		for _, n := range append(basic, "sha256sum") {
			must(t, os.Symlink(tool(t, n), filepath.Join(bin, n)))
		}
		cmd := exec.Command(filepath.Join(bin, "sh"), pack(t, dir, runpkg.Zstd), "--install-path="+t.TempDir())
		cmd.Env = []string{"PATH=" + bin}
		if text, code := exitCode(t, cmd); code != 3 || !strings.Contains(text, "install zstd") {
			t.Errorf("exit %d\n%s", code, text)
		}
	})
}

// TestStubRefusesAnotherMachine: only installing is refused, looking is not.
func TestStubRefusesAnotherMachine(t *testing.T) {
	dir := sample(t)
	eachShell(t, func(t *testing.T, sh func(...string) (string, int)) {
		s := spec(dir, runpkg.Gzip)
		s.Manifest.Platform = "linux.sparc64"
		run, prefix := filepath.Join(t.TempDir(), "p.run"), t.TempDir()
		_, err := runpkg.Write(context.Background(), run, s)
		must(t, err)
		if out, code := sh(run, "--install-path="+prefix); code != 3 || !strings.Contains(out, "linux.sparc64") {
			t.Errorf("exit %d\n%s", code, out)
		}
		if out, code := sh(run, "--target", filepath.Join(prefix, "t")); code != 0 {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
}

// TestStubCleansUpAfterSignals starts an installation whose tar waits, and
// interrupts it in the middle.
func TestStubCleansUpAfterSignals(t *testing.T) {
	dir := sample(t)
	for _, shell := range shells {
		for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
			t.Run(shell[0]+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				bin, prefix := t.TempDir(), t.TempDir()
				script := "#!/bin/sh\n" + tool(t, "tar") + " \"$@\"\n: >'" + bin + "/unpacked'\nsleep 1\n"
				must(t, os.WriteFile(filepath.Join(bin, "tar"), []byte(script), 0o755))
				cmd := exec.Command(tool(t, shell[0]), append(shell[1:len(shell):len(shell)], pack(t, dir, runpkg.Gzip), "--install-path="+prefix)...)
				cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				must(t, cmd.Start())
				for range 500 {
					if _, err := os.Stat(filepath.Join(bin, "unpacked")); err == nil {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				must(t, cmd.Process.Signal(sig))
				_ = cmd.Wait()
				if got := cmd.ProcessState.ExitCode(); got != want {
					t.Errorf("exit %d, want %d", got, want)
				}
				if left := listing(t, prefix); left != "" {
					t.Errorf("left behind:\n%s", left)
				}
			})
		}
	}
}

// TestStubWithoutSpace installs on a file system that is too small, and on
// one whose size df does not tell.
func TestStubWithoutSpace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	dir := t.TempDir()
	blob(t, filepath.Join(dir, "blob"), 4<<20)
	run := pack(t, dir, runpkg.Gzip)
	prefix := t.TempDir()
	if err := syscall.Mount("tmpfs", prefix, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(prefix, syscall.MNT_DETACH) })
	for _, shell := range shells {
		t.Run(shell[0], func(t *testing.T) {
			args := append(shell[1:len(shell):len(shell)], run, "--install-path="+prefix)
			text, code := exitCode(t, exec.Command(tool(t, shell[0]), args...))
			if code != 1 || !strings.Contains(text, "not enough space") {
				t.Errorf("exit %d\n%s", code, text)
			}
			bin := t.TempDir()
			must(t, os.WriteFile(filepath.Join(bin, "df"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
			cmd := exec.Command(tool(t, shell[0]), args...)
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			text, code = exitCode(t, cmd)
			if code != 1 || !strings.Contains(text, "enough space") {
				t.Errorf("without df: exit %d\n%s", code, text)
			}
			if left := listing(t, prefix); left != "" {
				t.Errorf("left behind:\n%s", left)
			}
		})
	}
	t.Run("read-only", func(t *testing.T) {
		must(t, syscall.Mount("tmpfs", prefix, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
		for _, shell := range shells {
			args := append(shell[1:len(shell):len(shell)], run, "--install-path="+filepath.Join(prefix, "x"))
			if text, code := exitCode(t, exec.Command(tool(t, shell[0]), args...)); code != 1 || !strings.Contains(text, "cannot make") {
				t.Errorf("%s: exit %d\n%s", shell[0], code, text)
			}
		}
	})
}

// TestStubLocks: one wins, the other says why it did not work.
func TestStubLocks(t *testing.T) {
	dir := sample(t)
	eachShell(t, func(t *testing.T, sh func(...string) (string, int)) {
		run, prefix := pack(t, dir, runpkg.Gzip), t.TempDir()
		lock := filepath.Join(prefix, ".invar-ops-cpu.lock")
		must(t, os.Mkdir(lock, 0o755))
		if out, code := sh(run, "--install-path="+prefix); code != 1 || !strings.Contains(out, "rmdir '"+lock+"'") {
			t.Errorf("exit %d\n%s", code, out)
		}
		must(t, os.Remove(lock))
		// What a killed installation left is removed by the next one.
		must(t, os.MkdirAll(filepath.Join(prefix, ".invar-ops-cpu.abcDEF/lib"), 0o755))
		if out, code := sh(run, "--install-path="+prefix); code != 0 {
			t.Errorf("exit %d\n%s", code, out)
		}
		if left, _ := os.ReadDir(prefix); len(left) != 2 {
			t.Errorf("beside the package: %v", left)
		}
	})
}
