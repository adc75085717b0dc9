package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestDist makes a release by the steps of the release workflow: twice, from two
// clones in other folders, with another umask and time zone. Then it installs
// the deb in a bare Debian.
func TestDist(t *testing.T) {
	first := clone(t)
	job := releaseJob(t, first)
	for _, s := range job.steps {
		if code, out := job.run(t, s); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", s.Name, code, out)
		}
	}
	dist := filepath.Join(first, "dist")
	sums := read(t, filepath.Join(dist, "SHA256SUMS"))
	if again := read(t, filepath.Join(job.temp, "again/dist/SHA256SUMS")); again != sums {
		t.Fatalf("two runs differ:\n%s\n%s", sums, again)
	}
	t.Run("workflow", func(t *testing.T) { testWorkflow(t, job) })
	runIn(t, dist, nil, "sha256sum", "--check", "--strict", "SHA256SUMS")
	if n := strings.Count(sums, "\n"); n != 4*len(arches) {
		t.Errorf("%d files in SHA256SUMS, want a binary, its bill of materials, a deb and an rpm for each of %v:\n%s", n, arches, sums)
	}
	t.Run("static", func(t *testing.T) { testStatic(t, dist) })
	t.Run("sbom", func(t *testing.T) { testSBOM(t, dist) })
	t.Run("rpm", func(t *testing.T) { testRPM(t, dist) })
	t.Run("deb", func(t *testing.T) { testDeb(t, dist) })
	t.Run("dirty", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(first, "litter"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := command(first, nil, "go", "run", "-C", ".ci/dist", ".").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "litter") {
			t.Errorf("a tree with changes was released (%v):\n%s", err, out)
		}
		if read(t, filepath.Join(dist, "SHA256SUMS")) != sums {
			t.Error("the refused run changed the files of the last one")
		}
	})
}

func testStatic(t *testing.T, dist string) {
	for _, arch := range arches {
		bin := one(t, dist, "invar_*_linux_"+arch)
		if out := runIn(t, dist, nil, "readelf", "-lW", bin); strings.Contains(out, "INTERP") {
			t.Errorf("%s asks for a loader:\n%s", bin, out)
		}
	}
}

// testSBOM checks that the list names what the binary's build information names.
func testSBOM(t *testing.T, dist string) {
	var bom cdx.BOM
	if err := json.Unmarshal([]byte(read(t, one(t, dist, "*_linux_amd64.cdx.json"))), &bom); err != nil {
		t.Fatal(err)
	}
	info := runIn(t, dist, nil, "go", "version", "-m", one(t, dist, "invar_*_linux_amd64"))
	listed := map[string]bool{}
	for _, c := range *bom.Components {
		listed[c.PackageURL] = true
	}
	deps := 0
	for line := range strings.Lines(info) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "dep" {
			continue
		}
		deps++
		if purl := "pkg:golang/" + f[1] + "@" + f[2]; !listed[purl] {
			t.Errorf("%s is linked and not listed", purl)
		}
	}
	if deps == 0 || len(listed) != deps+1 { // and the standard library
		t.Errorf("%d components, want %d and the standard library", len(listed), deps)
	}
}

func testRPM(t *testing.T, dist string) {
	if out := runIn(t, dist, nil, "rpm", "-qp", "--nosignature", "--queryformat", "%{ARCH}", one(t, dist, "*.aarch64.rpm")); out != "aarch64" {
		t.Errorf("the rpm for arm64 says %q", out)
	}
	rpm := one(t, dist, "*.x86_64.rpm")
	if out := runIn(t, dist, nil, "rpm", "-qp", "--nosignature", "--queryformat", "%{NAME} %{ARCH} %{BUILDHOST}", rpm); out != "invar x86_64 localhost" {
		t.Errorf("rpm says %q", out)
	}
	files := runIn(t, dist, nil, "rpm", "-qpl", "--nosignature", rpm)
	for _, want := range []string{"/usr/bin/invar\n", "/usr/share/man/man1/invar.1.gz\n", "/usr/share/zsh/site-functions/_invar\n"} {
		if !strings.Contains(files, want) {
			t.Errorf("no %q in the rpm:\n%s", want, files)
		}
	}
}

// testDeb installs the deb in a bare Debian, runs it and removes it.
func testDeb(t *testing.T, dist string) {
	cache := os.Getenv("INVAR_CI_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "invar-ci")
	}
	base := filepath.Join(cache, "debian-bookworm.tar")
	if _, err := os.Stat(base); err != nil || os.Getuid() != 0 {
		skip := t.Skipf
		if os.Getenv("INVAR_CI") == "1" {
			skip = t.Fatalf
		}
		skip("needs root and a bare Debian (%v): run .ci/setup", err)
	}
	root := t.TempDir()
	runIn(t, root, nil, "tar", "--numeric-owner", "-xf", base)
	if out := runIn(t, dist, nil, "dpkg-deb", "--field", one(t, dist, "*_arm64.deb"), "Architecture"); out != "arm64\n" {
		t.Errorf("the deb for arm64 says %q", out)
	}
	deb := one(t, dist, "*_amd64.deb")
	if err := os.WriteFile(filepath.Join(root, "invar.deb"), []byte(read(t, deb)), 0o644); err != nil {
		t.Fatal(err)
	}
	runIn(t, root, nil, "chroot", root, "dpkg", "-i", "/invar.deb")
	if out := runIn(t, root, nil, "chroot", root, "invar", "version"); !strings.HasPrefix(out, "invar ") || !strings.Contains(out, "+g") {
		t.Errorf("the installed program says %q", out)
	}
	if out := runIn(t, root, nil, "chroot", root, "sh", "-c", "invar plan cpu; echo $?"); !strings.HasSuffix(out, "3\n") {
		t.Errorf("a bare Debian meets the target cpu?\n%s", out)
	}
	for _, f := range []string{
		"man/man1/invar.1.gz", "bash-completion/completions/invar", "zsh/vendor-completions/_invar", "fish/vendor_completions.d/invar.fish",
		"doc/invar/sbom.cdx.json",
	} {
		if info, err := os.Stat(filepath.Join(root, "usr/share", f)); err != nil || info.Size() == 0 {
			t.Errorf("%s is not in the package (%v)", f, err)
		}
	}
	runIn(t, root, nil, "chroot", root, "dpkg", "--purge", "invar")
	if _, err := os.Lstat(filepath.Join(root, "usr/bin/invar")); !os.IsNotExist(err) {
		t.Errorf("the program is there after the purge (%v)", err)
	}
}

// clone makes a clone of the commit that is checked out: what is not committed is not tested.
func clone(t *testing.T) string {
	t.Helper()
	r, err := readRepository()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "clone")
	runIn(t, t.TempDir(), nil, "git", "clone", "--quiet", "--no-checkout", r.root, dir)
	runIn(t, dir, nil, "git", "checkout", "--quiet", "--detach", r.commit)
	return dir
}

func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v (%v), want one file", pattern, found, err)
	}
	return found[0]
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func command(dir string, env []string, argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func runIn(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	out, err := command(dir, env, argv...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}
