package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

func TestPriority(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, with, without string }{
		{"", "load_priority=my-v\n", "load_priority=\n"},
		{"load_priority=\n", "load_priority=my-v\n", "load_priority=\n"},
		{"load_priority=a,b\n", "load_priority=my-v,a,b\n", "load_priority=a,b\n"},
		{"load_priority=a,my-v", "load_priority=my-v,a\n", "load_priority=a\n"},
		{"load_priority = a , my-v-2,\r\n", "load_priority=my-v,a,my-v-2\n", "load_priority=a,my-v-2\n"},
		{"# x\r\nload_priority=a\r\nother=1\r\nload_priority=b\n", "# x\nload_priority=my-v,a\nother=1\n", "# x\nload_priority=a\nother=1\n"},
	} {
		if got := withVendor(tc.text, "my-v"); got != tc.with {
			t.Errorf("with %q: got %q, want %q", tc.text, got, tc.with)
		}
		if got := withoutVendor(tc.text, "my-v"); got != tc.without {
			t.Errorf("without %q: got %q, want %q", tc.text, got, tc.without)
		}
		if got := withVendor(withVendor(tc.text, "my-v"), "my-v"); got != tc.with {
			t.Errorf("twice %q: got %q", tc.text, got)
		}
	}
}

func intoCANN(t *testing.T, config string) (string, *Vendor) {
	t.Helper()
	opp := t.TempDir()
	if err := os.MkdirAll(filepath.Join(opp, "vendors"), 0o755); err != nil {
		t.Fatal(err)
	}
	if config != "" {
		if err := os.WriteFile(filepath.Join(opp, "vendors", "config.ini"), []byte(config), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return opp, &Vendor{Opp: opp, Name: "batch_invariant"}
}

// Linked at the switch, taken back by rollback and uninstall, whatever was there.
func TestIntoCANN(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{"none": "", "others": "load_priority=a,b\n", "empty": "load_priority=\n", "blanks": "load_priority = a\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opp, v := intoCANN(t, config)
			before := tree(t, opp)
			p, py := openPrefix(t), fakePython(t)
			req := request(py)
			apply(t, p, req, makeBundle(t, t.TempDir(), "a", 1))
			req.Vendor = v
			r := apply(t, p, req, makeBundle(t, t.TempDir(), "b", 1))
			to, err := os.Readlink(v.link())
			if err != nil || to != filepath.Join(r.Ops(), "vendors", v.Name) {
				t.Fatalf("link: %q, %v", to, err)
			}
			b, _ := os.ReadFile(v.config())
			st, _ := os.Stat(v.config())
			if !strings.Contains(string(b), "load_priority=batch_invariant") || st.Mode().Perm() != 0o644 {
				t.Errorf("config.ini: %q, mode %v", b, st.Mode())
			}
			// Another generation changes nothing there, and keeps the claim.
			again := apply(t, p, req, makeBundle(t, t.TempDir(), "c", 1))
			if len(again.Replaced) != 0 {
				t.Errorf("planned again: %+v", again.Replaced)
			}
			for range 2 {
				if _, err := p.Rollback(t.Context(), py.ID()); err != nil {
					t.Fatal(err)
				}
			}
			sameAs(t, opp, before)
			apply(t, p, req, makeBundle(t, t.TempDir(), "d", 1))
			if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
				t.Fatal(err)
			}
			sameAs(t, opp, before)
		})
	}
}

func sameAs(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	after := tree(t, dir)
	for p, s := range before {
		if after[p] != s {
			t.Errorf("%s: was %q, is %q", p, s, after[p])
		}
	}
	for p := range after {
		if _, ok := before[p]; !ok {
			t.Errorf("%s is left", p)
		}
	}
}

// What others have changed in config.ini since stays.
func TestIntoCANNKeepsTheChangesOfOthers(t *testing.T) {
	t.Parallel()
	_, v := intoCANN(t, "load_priority=a\n")
	p, py := openPrefix(t), fakePython(t)
	req := request(py)
	req.Vendor = v
	apply(t, p, req, makeBundle(t, t.TempDir(), "a", 1))
	if err := os.WriteFile(v.config(), []byte("load_priority=new,batch_invariant,a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(v.config()); string(b) != "load_priority=new,a\n" {
		t.Errorf("got %q", b)
	}
}

func TestIntoCANNRefusesAVendorOfOthers(t *testing.T) {
	t.Parallel()
	opp, v := intoCANN(t, "load_priority=batch_invariant\n")
	theirs := filepath.Join(v.link(), "version.info")
	if err := os.MkdirAll(v.link(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(theirs, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, opp)
	p, py := openPrefix(t), fakePython(t)
	req := request(py)
	req.Vendor = v
	b := makeBundle(t, t.TempDir(), "a", 1)
	if _, err := p.Apply(t.Context(), req, b.run, b.wheel); report.ExitCode(err) != report.Unmet {
		t.Fatalf("got %v", err)
	}
	sameAs(t, opp, before)
	req.Replace = true
	apply(t, p, req, b)
	if _, err := os.Readlink(v.link()); err != nil {
		t.Error(err)
	}
	if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
		t.Fatal(err)
	}
	sameAs(t, opp, before)
}

// A run that was cut off after the switch is finished by the next one, and one
// cut off before it is undone.
func TestIntoCANNIsReplayed(t *testing.T) {
	t.Parallel()
	_, v := intoCANN(t, "load_priority=a\n")
	p, py := openPrefix(t), fakePython(t)
	req := request(py)
	req.Vendor = v
	r := apply(t, p, req, makeBundle(t, t.TempDir(), "a", 1))
	e := p.env(py.ID())
	s, err := e.readState()
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Moved {
		s.Moved[i].Done = false
	}
	if err := os.Remove(v.link()); err != nil {
		t.Fatal(err)
	}
	if err := e.writeState(s); err != nil {
		t.Fatal(err)
	}
	if _, err := e.recover(); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(v.link()); err != nil || !strings.HasPrefix(to, r.Ops()) {
		t.Errorf("not finished: %q, %v", to, err)
	}
	if err := e.setCurrent(0); err != nil {
		t.Fatal(err)
	}
	if _, err := e.recover(); err != nil {
		t.Fatal(err)
	}
	if exists(v.link()) {
		t.Error("not undone")
	}
	if b, _ := os.ReadFile(v.config()); string(b) != "load_priority=a\n" {
		t.Errorf("config.ini: %q", b)
	}
}

// The hook that runs a start-up module goes and comes with its generation.
func TestStartupHook(t *testing.T) {
	t.Parallel()
	p, py := openPrefix(t), fakePython(t)
	req := request(py)
	hook := filepath.Join(py.Purelib, HookName)
	plain := apply(t, p, req, makeBundle(t, t.TempDir(), "a", 1))
	req.Startup = true
	with := apply(t, p, req, makeBundle(t, t.TempDir(), "b", 1))
	if b, _ := os.ReadFile(hook); string(b) != with.Hook.Content || !strings.Contains(string(b), startupModule) {
		t.Errorf("hook: %q", b)
	}
	back, err := p.Rollback(t.Context(), py.ID())
	if err != nil || len(back.Restored) != 0 {
		t.Fatalf("got %+v, %v", back, err)
	}
	if b, _ := os.ReadFile(hook); string(b) != plain.Hook.Content {
		t.Errorf("after rollback: %q", b)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	apply(t, p, req, makeBundle(t, t.TempDir(), "c", 1))
	if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil || exists(hook) {
		t.Errorf("uninstall left the hook: %v", err)
	}
}
