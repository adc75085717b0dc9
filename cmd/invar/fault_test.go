package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit"
)

// A rig is a prefix and a Python of its own, driven through the real binary.
type rig struct {
	t            *testing.T
	bin          string
	prefix, venv string
}

func newRig(t *testing.T) rig {
	t.Helper()
	if testing.Short() {
		t.Skip("short: builds with real torch are left out")
	}
	shared := testkit.Need(t, testkit.Latest)
	dir := t.TempDir()
	r := rig{t, filepath.Join(dir, "invar"), filepath.Join(dir, "home"), filepath.Join(dir, "venv")}
	if out, err := exec.Command("go", "build", "-o", r.bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := testkit.Private(shared, r.venv); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r rig) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(r.bin, args...)
	cmd.Env = append(os.Environ(), "INVAR_HOME="+r.prefix, "INVAR_PYTHON="+r.venv, "HOME="+filepath.Dir(r.prefix))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// must runs the command and wants this exit code.
func (r rig) must(code int, args ...string) string {
	r.t.Helper()
	cmd, out := r.command(args...)
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		r.t.Fatalf("invar %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return out.String()
}

// litter lists scratch folders that a run left.
func (r rig) litter() []string {
	left, _ := filepath.Glob(filepath.Join(r.prefix, "work", "*"))
	return left
}

// orphans lists processes that still work below the prefix.
func (r rig) orphans() []string {
	var out []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, r.prefix) {
			out = append(out, l+" "+to)
		}
	}
	return out
}

// TestKilledBuilds kills the whole chain at ten random times, by turns while it
// compiles everything again and while it installs what the store holds. After
// each the installation is the old one or the new one and proves all seven
// levels, and so does the build after the last.
func TestKilledBuilds(t *testing.T) {
	r := newRig(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	start := time.Now()
	r.must(report.Done, "build", "cpu")
	full := time.Since(start)
	actions := filepath.Join(r.prefix, "store", "actions")
	for i := range 10 {
		window, restore := 200*time.Millisecond, func() {}
		if i%2 == 0 {
			window, restore = full*2/3, r.aside(actions)
		}
		cmd, _ := r.command("build", "cpu", "--force")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rnd.Int64N(int64(window))))
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		restore()
		r.must(report.Done, "probe", "--require", "7")
	}
	r.must(report.Done, "build", "cpu", "--force")
	r.must(report.Done, "probe", "--require", "7")
	if l := r.litter(); len(l) > 0 {
		t.Errorf("the build after the kills left %v", l)
	}
}

// aside hides a folder of the prefix; the result puts it in the place of
// whatever came there since.
func (r rig) aside(dir string) (restore func()) {
	r.t.Helper()
	away := filepath.Join(filepath.Dir(r.prefix), "away")
	if err := os.Rename(dir, away); err != nil {
		r.t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.RemoveAll(dir), os.Rename(away, dir)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestFirstBuildKilled: with nothing installed before, a killed build leaves
// nothing that looks installed, and the next one works.
func TestFirstBuildKilled(t *testing.T) {
	r := newRig(t)
	for _, after := range []time.Duration{100 * time.Millisecond, 1500 * time.Millisecond} {
		cmd, _ := r.command("build", "cpu")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		r.must(report.CheckFailed, "probe", "--level", "1")
	}
	r.must(report.Done, "build", "cpu")
}

// TestSignals: SIGINT is 130, SIGTERM is 143; compilers go with it, scratch
// files are removed, the old generation stays.
func TestSignals(t *testing.T) {
	r := newRig(t)
	for _, tc := range []struct {
		sig  syscall.Signal
		code int
	}{{syscall.SIGINT, report.Interrupted}, {syscall.SIGTERM, report.Terminated}} {
		cmd, out := r.command("build", "cpu")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// To the process alone: the group of the compilers is our own business.
		waitUntil(t, func() bool { return len(r.orphans()) > 0 })
		_ = cmd.Process.Signal(tc.sig)
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != tc.code {
			t.Errorf("%v: exit code %d, want %d\n%s", tc.sig, got, tc.code, out)
		}
		if !strings.Contains(out.String(), "temporary files were removed") {
			t.Errorf("%v: no word about the clean-up:\n%s", tc.sig, out)
		}
		if o, l := r.orphans(), r.litter(); len(o)+len(l) > 0 {
			t.Errorf("%v: left processes %v, files %v", tc.sig, o, l)
		}
		r.must(report.CheckFailed, "probe", "--level", "1")
	}
}

// TestTwoBuildsAtOnce: the second waits and finds the work done; with
// --no-wait it fails and says who works.
func TestTwoBuildsAtOnce(t *testing.T) {
	r := newRig(t)
	first, out := r.command("build", "cpu")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { return len(r.litter()) > 0 })
	text := r.must(report.Failed, "build", "cpu", "--no-wait")
	if want := fmt.Sprintf("pid %d", first.Process.Pid); !strings.Contains(text, want) {
		t.Errorf("--no-wait does not name the holder:\n%s", text)
	}
	text = r.must(report.Done, "build", "cpu")
	if !strings.Contains(text, "up to date: generation 1") || !strings.Contains(text, "another invar") {
		t.Errorf("the second build did not wait and find the work done:\n%s", text)
	}
	if err := first.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestArtifactsDoNotDependOnPlace: another prefix, umask, time zone and number
// of processors give the same two files.
func TestArtifactsDoNotDependOnPlace(t *testing.T) {
	r := newRig(t)
	digests := func(text string) string {
		var res struct {
			Result struct {
				Receipt struct {
					Wheel      struct{ SHA256 string } `json:"wheel"`
					RunPackage struct{ SHA256 string } `json:"run_package"`
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &res); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return res.Result.Receipt.RunPackage.SHA256 + " " + res.Result.Receipt.Wheel.SHA256
	}
	build := func(prefix string, env ...string) string {
		cmd, _ := r.command("build", "cpu", "--json", "--quiet", "--take-over", "--prefix", prefix)
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `umask 077; exec "$0" "$@"`}, cmd.Args...)
		cmd.Env = append(cmd.Env, env...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
		}
		return digests(out.String())
	}
	a := build(r.prefix)
	b := build(filepath.Join(t.TempDir(), "a b", "other"), "TZ=Asia/Tokyo", "GOMAXPROCS=1", "LANG=zh_CN.UTF-8", "CXXFLAGS=-ffast-math", "CPATH=/nonexistent")
	if a != b || len(a) != 129 {
		t.Errorf("got %s and %s", a, b)
	}
}

func waitUntil(t *testing.T, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(errors.New("waited 10 s for nothing"))
}
