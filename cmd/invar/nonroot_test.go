package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWithoutRoot does the whole job as a user who is not root, with nothing
// named: the prefix is the user's data folder, the Python that of VIRTUAL_ENV.
// Root becomes another user in a user namespace, where the kernel allows it.
func TestWithoutRoot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	user := func(args ...string) (string, int) {
		cmd, out := r.command(args...)
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(r.prefix), "XDG_DATA_HOME=" + filepath.Dir(r.prefix) + "/data",
			"VIRTUAL_ENV=" + r.venv,
		}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 1000, Gid: 1000, NoSetGroups: true}
		}
		err := cmd.Run()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC) {
			t.Skipf("no user namespace can be made here: %v", err)
		}
		return out.String(), cmd.ProcessState.ExitCode()
	}
	home := filepath.Join(filepath.Dir(r.prefix), "data", "invar")
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"build", "cpu", "--jobs", "2"}, 0, "ready: "},
		{[]string{"status"}, 0, "levels 1 to 7"},
		{[]string{"build", "cpu"}, 0, "cpu is up to date: generation 1"},
		{[]string{"build", "cpu", "--prefix", "/proc/invar"}, 3, "--prefix DIR"},
		{[]string{"uninstall"}, 0, ""},
	} {
		out, code := user(step.args...)
		if code != step.code || !strings.Contains(out, step.want) {
			t.Fatalf("invar %s: exit code %d, want %d and %q\n%s", strings.Join(step.args, " "), code, step.code, step.want, out)
		}
		if step.args[0] == "build" && step.code == 0 {
			if _, err := os.Stat(filepath.Join(home, "env")); err != nil {
				t.Errorf("nothing is in %s: %v", home, err)
			}
		}
	}
	if _, err := os.Stat(home); err == nil {
		t.Errorf("%s was left behind", home)
	}
}
