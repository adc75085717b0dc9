package lookalike

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// TestKilled kills a build (SIGKILL) at several times: nothing may be half
// installed, CANN is as it was, and what follows works without repair.
func TestKilled(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	before := cann.Files(t, m.cann.Root)
	args := append([]string{"build", "ascend910b"}, m.stages("ascend910b", cann.Package{Variant: cann.MissingSymbol})...)
	for _, after := range []string{"0.2", "0.6", "1.5", "4"} {
		script := `invar=$1 after=$2; shift 2; "$invar" "$@" >/dev/null 2>&1 & p=$!; sleep "$after"; kill -KILL $p 2>/dev/null; wait $p; exit 0`
		res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: append([]string{"sh", "-c", script, "sh", invar, after}, args...), Dir: m.home, Env: m.env()})
		if err != nil {
			t.Fatalf("%v\n%s", err, res.Stderr)
		}
		m.nothing()
		if now := cann.Files(t, m.cann.Root); strings.Join(now, "\n") != strings.Join(before, "\n") {
			t.Errorf("after %s s the tree of CANN has changed", after)
		}
		m.invar(0, "gc")
	}
}

// TestFullDisk gives the prefix a file system of a size at which a step of the
// build runs out of room; the build says so and leaves nothing.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "ascend910b")
	args := append([]string{"build", "ascend910b", "--prefix", m.prefix}, m.stages("ascend910b", cann.Package{Variant: cann.MissingSymbol})...)
	for _, size := range []string{"64k", "256k"} {
		// A mount namespace of its own: the mount goes with the process.
		script := `size=$1 at=$2; shift 2; mkdir -p "$at" && mount -t tmpfs -o size=$size none "$at" || exit 99; "$@"; code=$?; ls "$at"/env/*/current 2>/dev/null && exit 98; exit $code`
		res, _ := run.System{}.Run(t.Context(), run.Cmd{
			Argv: append([]string{"unshare", "--mount", "sh", "-c", script, "sh", size, m.prefix, invar}, args...), Dir: m.home,
			Env: m.env("XDG_CACHE_HOME=" + filepath.Join(m.prefix, "cache")),
		})
		text := string(res.Stdout) + string(res.Stderr)
		if res.Code == 99 || strings.Contains(text, "unshare failed") {
			t.Skipf("no mount namespace: %s", text)
		}
		if res.Code == 0 || res.Code == 98 || !strings.Contains(text, "space") {
			t.Errorf("%s: ended with %d\n%s", size, res.Code, text)
		}
	}
}
