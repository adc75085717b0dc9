package lookalike

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// host is where the script downloads from. curl is told in its own settings to
// connect to the loopback instead; names and certificates stay what they are.
const host = "vllm-ascend.obs.cn-north-4.myhuaweicloud.com"

// A script is the real build_batch_invariant_ops.sh with a home, a working
// directory and an opp folder of its own.
type script struct {
	t              *testing.T
	tree           string // of vllm-ascend
	home, cwd, opp string
	bin            string // first on PATH
	server         *cann.Server
	files          string // folder of what is served
}

// newScript serves the run package p and a project of stage 2 that only notes
// that it was built, with faults by "run" and "zip".
func newScript(t *testing.T, p cann.Package, faults map[string]cann.Fault) *script {
	t.Helper()
	dir := t.TempDir()
	s := &script{
		t: t, tree: cann.NeedVLLMAscend(t), home: filepath.Join(dir, "home"), cwd: filepath.Join(dir, "cwd"),
		opp: filepath.Join(dir, "opp"), bin: filepath.Join(dir, "bin"), files: filepath.Join(dir, "files"),
	}
	for _, d := range []string{s.home, s.cwd, s.opp, s.bin, s.files} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.Dir = s.files
	run := cann.RunPackage(t, p)
	archive := filepath.Join(s.files, cann.Stage2Name("1.0.0"))
	s.project(archive, "echo \"$PWD $(command -v python3)\" >>\"$HOME/stage2\"\n")
	named := map[string]cann.Fault{filepath.Base(run): faults["run"], filepath.Base(archive): faults["zip"]}
	s.server = cann.Serve(t, named, run, archive)
	address := strings.TrimPrefix(s.server.URL, "https://")
	put(t, filepath.Join(s.home, ".curlrc"), "connect-to = \""+host+":443:"+address+"\"\n")
	return s
}

// project writes a zip whose build_and_install.sh is content.
func (s *script) project(path, content string) {
	s.t.Helper()
	f, err := os.Create(path)
	if err != nil {
		s.t.Fatal(err)
	}
	w := zip.NewWriter(f)
	part, err := w.Create("torch_ops_extension/batch_invariant_ops/build_and_install.sh")
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) env() []string {
	return []string{"HOME=" + s.home, "PATH=" + s.bin + ":/usr/local/bin:/usr/bin:/bin", "ASCEND_OPP_PATH=" + s.opp, "LC_ALL=C"}
}

// run runs the script and gives what it said and its exit code.
func (s *script) run(args ...string) (string, int) {
	s.t.Helper()
	return s.bash(append([]string{filepath.Join(s.tree, "csrc", "build_batch_invariant_ops.sh")}, args...)...)
}

func (s *script) bash(args ...string) (string, int) {
	s.t.Helper()
	res, _ := run.System{}.Run(s.t.Context(), run.Cmd{Argv: append([]string{"bash"}, args...), Dir: s.cwd, Env: s.env()})
	return string(res.Stdout) + string(res.Stderr), res.Code
}

// copied is a copy of the tree's csrc and what it needs, with build.sh replaced.
func (s *script) copied(buildSh string) string {
	s.t.Helper()
	to := filepath.Join(filepath.Dir(s.home), "tree")
	if err := os.CopyFS(filepath.Join(to, "csrc"), os.DirFS(filepath.Join(s.tree, "csrc"))); err != nil {
		s.t.Fatal(err)
	}
	for _, d := range []string{"vllm_ascend", "csrc/third_party/catlass/include"} {
		if err := os.MkdirAll(filepath.Join(to, d), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	put(s.t, filepath.Join(to, ".gitmodules"), "[submodule \"csrc/third_party/catlass\"]\n\tcommit = 0\n")
	put(s.t, filepath.Join(to, "csrc", "build.sh"), buildSh)
	return to
}

func (s *script) installed() string { return filepath.Join(s.opp, "vendors", "batch_invariant") }

func (s *script) tool(name, content string) {
	s.t.Helper()
	put(s.t, filepath.Join(s.bin, name), "#!/bin/sh\n"+content)
}

// needTool skips the test where a program is missing; in CI it fails.
func needTool(t *testing.T, name string) {
	t.Helper()
	if _, err := run.LookPath(name, os.Environ()); err != nil {
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatal(err)
		}
		t.Skipf("needs %s; .ci/setup installs it: %v", name, err)
	}
}

// only leaves these tools on PATH.
func (s *script) only(tools ...string) {
	s.t.Helper()
	for _, tool := range tools {
		found := ""
		for _, d := range []string{"/usr/local/bin", "/usr/bin", "/bin"} {
			if _, err := os.Stat(filepath.Join(d, tool)); err == nil {
				found = filepath.Join(d, tool)
			}
		}
		if err := os.Symlink(found, filepath.Join(s.bin, tool)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// wants checks an exit code and that parts of a text are there.
func wants(t *testing.T, text string, got, code int, parts ...string) {
	t.Helper()
	if got != code {
		t.Errorf("ended with %d, want %d\n%s", got, code, text)
	}
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("want %q in\n%s", p, text)
		}
	}
}
