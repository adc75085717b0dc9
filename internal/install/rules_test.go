package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFlavours: one Python holds one flavour, and cpu and cuda stay out of a
// Python with torch_npu, unless this is meant.
func TestFlavours(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, t.TempDir(), "a", 10)
	npu := map[string]string{"torch_npu-2.9.0.post9.dist-info/METADATA": "", "torch_npu/__init__.py": ""}
	for _, tc := range []struct {
		name, first, second string
		site                map[string]string
		refuse              bool
	}{
		{"same", "cpu", "cpu", nil, false},
		{"cuda after cpu", "cpu", "cuda", nil, true},
		{"cpu after cuda", "cuda", "cpu", nil, true},
		{"ascend after cpu", "cpu", "ascend", nil, true},
		{"cpu beside torch_npu", "", "cpu", npu, true},
		{"cuda beside torch_npu", "", "cuda", npu, true},
		{"ascend beside torch_npu", "", "ascend", npu, false},
		{"cpu after ascend beside torch_npu", "ascend", "cpu", npu, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, py := openPrefix(t), fakePython(t)
			put(t, py.Purelib, tc.site)
			req := request(py)
			if tc.first != "" {
				req.Bundle.Flavour = tc.first
				apply(t, p, req, b)
			}
			before := tree(t, py.Purelib)
			req.Bundle.Flavour = tc.second
			_, err := p.Apply(t.Context(), req, b.run, b.wheel)
			if !tc.refuse {
				if err != nil {
					t.Errorf("got %v, want no refusal", err)
				}
				return
			}
			refused(t, err)
			if after := tree(t, py.Purelib); !maps.Equal(before, after) {
				t.Error("the refusal changed site-packages")
			}
			req.Replace = true
			if r := apply(t, p, req, b); r.Flavour != tc.second {
				t.Errorf("flavour %s, want %s", r.Flavour, tc.second)
			}
		})
	}
}

func TestBeginRefusesNonsense(t *testing.T) {
	t.Parallel()
	p, py := openPrefix(t), fakePython(t)
	for _, b := range []Bundle{{Target: "../x", Flavour: "cpu"}, {Target: "cpu", Flavour: "rocm"}, {}} {
		req := request(py)
		req.Bundle = b
		if tx, err := p.Begin(t.Context(), req); err == nil {
			tx.Abort()
			t.Errorf("%+v: got no error", b)
		}
	}
	if exists(p.Dir) {
		t.Error("the prefix was made")
	}
}

// TestTwoPrefixes: the second prefix for one Python needs TakeOver, and going
// back or uninstalling gives the Python back to the first.
func TestTwoPrefixes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := makeBundle(t, dir, "a", 10), makeBundle(t, dir, "b", 10)
	for _, undo := range []string{"rollback", "uninstall"} {
		t.Run(undo, func(t *testing.T) {
			t.Parallel()
			first, second, py := openPrefix(t), openPrefix(t), fakePython(t)
			r1 := apply(t, first, request(py), a)
			before := tree(t, py.Purelib)
			_, err := second.Apply(t.Context(), request(py), b.run, b.wheel)
			refused(t, err)
			if !strings.Contains(err.Error(), first.Dir) {
				t.Errorf("%v does not name %s", err, first.Dir)
			}
			req := request(py)
			req.TakeOver = true
			apply(t, second, req, b)
			h, err := Check(t.Context(), r1, nil)
			if err != nil || h.OK || h.Hook != HookOther {
				t.Errorf("the first prefix says %+v, %v, want %s", h, err, HookOther)
			}
			if undo == "rollback" {
				_, err = second.Rollback(t.Context(), py.ID())
			} else {
				_, err = second.Uninstall(t.Context(), UninstallOptions{ID: py.ID()})
			}
			if err != nil {
				t.Fatal(err)
			}
			healthy(t, r1)
			if after := tree(t, py.Purelib); !maps.Equal(before, after) {
				t.Errorf("got %v, want %v", after, before)
			}
		})
	}
}

// TestDeadPrefixIsNoObstacle: a hook whose prefix was deleted needs no flag.
func TestDeadPrefixIsNoObstacle(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, t.TempDir(), "a", 10)
	first, second, py := openPrefix(t), openPrefix(t), fakePython(t)
	apply(t, first, request(py), b)
	if err := os.RemoveAll(first.Dir); err != nil {
		t.Fatal(err)
	}
	apply(t, second, request(py), b)
}

// TestSeveralPythons: what happens to one leaves the other alone.
func TestSeveralPythons(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := makeBundle(t, dir, "a", 10), makeBundle(t, dir, "b", 10)
	p, one, two := openPrefix(t), fakePython(t), fakePython(t)
	apply(t, p, request(one), a)
	r2 := apply(t, p, request(two), b)
	st, err := p.Status(t.Context(), nil)
	if err != nil || len(st.Envs) != 2 || !st.Envs[0].Health.OK || !st.Envs[1].Health.OK {
		t.Errorf("status %+v, %v", st, err)
	}
	if id, ok, err := p.Match(two.Exe); err != nil || !ok || id != two.ID() {
		t.Errorf("match: %s, %v, %v", id, ok, err)
	}
	removed, err := p.Uninstall(t.Context(), UninstallOptions{ID: one.ID()})
	if err != nil || removed.Prefix || len(removed.Envs) != 1 {
		t.Errorf("uninstall %+v, %v", removed, err)
	}
	if left := tree(t, one.Purelib); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	healthy(t, r2)
	if removed, err = p.Uninstall(t.Context(), UninstallOptions{}); err != nil || !removed.Prefix {
		t.Errorf("uninstall %+v, %v", removed, err)
	}
}

// TestUninstallTouchesNothingElse: files of others stay and are listed.
func TestUninstallTouchesNothingElse(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, t.TempDir(), "a", 10)
	p, py := openPrefix(t), fakePython(t)
	r := apply(t, p, request(py), b)
	put(t, r.Dir(), map[string]string{
		"site/mine.txt": "mine",
		"site/" + Package + "/__pycache__/a.cpython-311.pyc":        "cache of ours",
		"site/" + Package + "/__pycache__/other.cpython-311.pyc":    "cache of something else",
		"site/" + Package + "/__pycache__/__init__.cpython-311.pyc": "cache of ours",
	})
	put(t, p.Dir, map[string]string{"notes.txt": "mine"})
	if err := os.WriteFile(r.Hook.Path, []byte("/elsewhere\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	removed, err := p.Uninstall(t.Context(), UninstallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		r.Hook.Path,
		filepath.Join(r.Dir(), "site", Package, "__pycache__", "other.cpython-311.pyc"),
		filepath.Join(r.Dir(), "site", "mine.txt"),
		filepath.Join(p.Dir, "env"),
		filepath.Join(p.Dir, "notes.txt"),
	}
	slices.Sort(want)
	got := slices.Sorted(slices.Values(removed.Left))
	if !slices.Equal(got, want) || removed.Prefix {
		t.Errorf("got %q\nwant %q", got, want)
	}
	left, _, err := listFiles(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 4 { // three files and the lock
		t.Errorf("left: %+v", left)
	}
	if b, err := os.ReadFile(r.Hook.Path); err != nil || string(b) != "/elsewhere\n" {
		t.Errorf("the changed hook is %q (%v)", b, err)
	}
	// The next installation leaves them alone, too, and so does its uninstall.
	if err := os.Remove(r.Hook.Path); err != nil {
		t.Fatal(err)
	}
	if again := apply(t, p, request(py), b); again.Generation != 2 {
		t.Errorf("generation %d, want 2", again.Generation)
	}
	apply(t, p, request(py), b)
	if _, err := p.GC(t.Context(), GCOptions{Keep: 1}); err != nil {
		t.Fatal(err)
	}
	if removed, err = p.Uninstall(t.Context(), UninstallOptions{}); err != nil || len(removed.Left) != len(want)-1 {
		t.Errorf("uninstall again: %+v, %v", removed, err)
	}
	if again, _, err := listFiles(p.Dir); err != nil || len(again) != len(left) {
		t.Errorf("left: %+v, %v", again, err)
	}
}

// TestStateIsRebuilt: numbers stay unique and what was moved aside comes back,
// even when the state file is damaged.
func TestStateIsRebuilt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := makeBundle(t, dir, "a", 10)
	p, py := openPrefix(t), fakePython(t)
	put(t, py.Purelib, map[string]string{Package + "/__init__.py": "pip", meta: ""})
	before := tree(t, py.Purelib)
	req := request(py)
	req.Replace = true
	apply(t, p, req, b)
	apply(t, p, req, b)
	if err := os.Truncate(p.env(py.ID()).statePath(), 25); err != nil {
		t.Fatal(err)
	}
	if r := apply(t, p, req, b); r.Generation != 3 || r.Previous != 2 {
		t.Errorf("generation %d after %d, want 3 after 2", r.Generation, r.Previous)
	}
	if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, py.Purelib); !maps.Equal(before, after) {
		t.Errorf("got %v, want %v", after, before)
	}
}

// TestHookInUserSite: the user's site directory comes first on sys.path, so a
// hook of another prefix there would win over ours.
func TestHookInUserSite(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, t.TempDir(), "a", 10)
	first, second, py := openPrefix(t), openPrefix(t), fakePython(t)
	user := py
	user.Purelib = filepath.Join(t.TempDir(), "user-site")
	put(t, user.Purelib, map[string]string{"other/__init__.py": ""})
	user.Paths = []string{user.Purelib, py.Purelib}
	apply(t, first, request(user), b)
	before := tree(t, user.Purelib)
	py.Paths = user.Paths
	_, err := second.Apply(t.Context(), request(py), b.run, b.wheel)
	refused(t, err)
	req := request(py)
	req.TakeOver = true
	apply(t, second, req, b)
	if exists(filepath.Join(user.Purelib, HookName)) {
		t.Error("the hook that comes first is still there")
	}
	if _, err := second.Uninstall(t.Context(), UninstallOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, user.Purelib); !maps.Equal(before, after) {
		t.Errorf("got %v, want %v", after, before)
	}
}

// TestHintOfAnotherPrefixCanBePasted: a prefix with a space is quoted.
func TestHintOfAnotherPrefixCanBePasted(t *testing.T) {
	t.Parallel()
	r := takenHook("/site/invar.pth", "", HookOther, "/opt/in var")
	if want := "--prefix '/opt/in var'"; !strings.Contains(r.Hint, want) {
		t.Errorf("hint %q, want %s in it", r.Hint, want)
	}
}
