package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/report"
)

const fingerprint = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// filled is a store with one action and its one output.
func filled(t testing.TB) (*Store, Object, string) {
	t.Helper()
	prefix := t.TempDir()
	s, err := Open(prefix)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "out.run")
	if err := os.WriteFile(file, []byte(strings.Repeat("content ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := s.Put(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Record(Action{Fingerprint: fingerprint, Step: "stage 1", Made: time.Now(), Outputs: map[string]Object{"run": o}}); err != nil {
		t.Fatal(err)
	}
	return s, o, file
}

func TestLookup(t *testing.T) {
	t.Parallel()
	s, o, _ := filled(t)
	a, why, err := s.Lookup(t.Context(), fingerprint)
	if err != nil || why != "" || a.Outputs["run"] != o || o.Name != "out.run" {
		t.Errorf("got %+v, %q, %v", a, why, err)
	}
	if _, why, err := s.Lookup(t.Context(), strings.Repeat("0", 64)); err != nil || why == "" {
		t.Errorf("got %q, %v, want a reason", why, err)
	}
	if _, _, err := s.Lookup(t.Context(), "../../etc/passwd"); err == nil {
		t.Error("a fingerprint that is none was looked up")
	}
}

// TestDamageHeals: whatever happens to a stored file or record, Lookup says
// so and does not hand it out, and the step that runs again repairs it.
func TestDamageHeals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, want string
		do         func(s *Store, o Object) error
	}{
		{"truncated", "damaged", func(s *Store, o Object) error { return os.Truncate(s.Path(o.SHA256), 100) }},
		{"emptied", "damaged", func(s *Store, o Object) error { return os.Truncate(s.Path(o.SHA256), 0) }},
		{"bit flip", "damaged", func(s *Store, o Object) error {
			b, err := os.ReadFile(s.Path(o.SHA256))
			if err != nil {
				return err
			}
			b[77] ^= 1
			return os.WriteFile(s.Path(o.SHA256), b, 0o644)
		}},
		{"removed", "no longer in the store", func(s *Store, o Object) error { return os.Remove(s.Path(o.SHA256)) }},
		{"record truncated", "cannot be used", func(s *Store, _ Object) error { return os.Truncate(s.actionPath(fingerprint), 20) }},
		{"record of another schema", "cannot be used", func(s *Store, _ Object) error {
			return os.WriteFile(s.actionPath(fingerprint), []byte(`{"schema": 99}`), 0o644)
		}},
		{"record of another step", "another step", func(s *Store, _ Object) error {
			return os.WriteFile(s.actionPath(fingerprint), []byte(`{"schema": 1, "fingerprint": "x"}`), 0o644)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, o, file := filled(t)
			if err := tc.do(s, o); err != nil {
				t.Fatal(err)
			}
			if _, why, err := s.Lookup(t.Context(), fingerprint); err != nil || !strings.Contains(why, tc.want) {
				t.Fatalf("got %q, %v, want a reason with %q", why, err, tc.want)
			}
			again, err := s.Put(t.Context(), file)
			if err != nil || again != o {
				t.Fatalf("got %+v, %v, want %+v", again, err, o)
			}
			if err := s.Record(Action{Fingerprint: fingerprint, Outputs: map[string]Object{"run": o}}); err != nil {
				t.Fatal(err)
			}
			if _, why, err := s.Lookup(t.Context(), fingerprint); err != nil || why != "" {
				t.Errorf("not healed: %q, %v", why, err)
			}
		})
	}
}

// TestPutReplacesDamage: without a Lookup in between, too.
func TestPutReplacesDamage(t *testing.T) {
	t.Parallel()
	s, o, file := filled(t)
	if err := os.WriteFile(s.Path(o.SHA256), []byte("junk"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(t.Context(), o.SHA256); err != nil {
		t.Error(err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	s, o, _ := filled(t)
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	o2, err := s.Put(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "tmp", "put.1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	want := Garbage{Objects: 1, Bytes: 5}
	for _, dry := range []bool{true, false} {
		if g, err := s.Prune([]string{o.SHA256}, dry); err != nil || g != want {
			t.Errorf("dry %v: got %+v, %v, want %+v", dry, g, err, want)
		}
	}
	if _, err := s.Verify(t.Context(), o2.SHA256); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
	if _, why, err := s.Lookup(t.Context(), fingerprint); why != "" || err != nil {
		t.Errorf("what was kept is gone: %q, %v", why, err)
	}
	if left, _ := os.ReadDir(filepath.Join(s.dir, "tmp")); len(left) != 0 {
		t.Errorf("litter: %v", left)
	}
	if g, err := s.Prune(nil, false); err != nil || g.Objects != 1 || g.Actions != 1 {
		t.Errorf("got %+v, %v", g, err)
	}
}

func TestPutStopsWithTheContext(t *testing.T) {
	t.Parallel()
	s, _, file := filled(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, file); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if left, _ := os.ReadDir(filepath.Join(s.dir, "tmp")); len(left) != 0 {
		t.Errorf("litter: %v", left)
	}
}

// TestLockSurvivesRemoval: a lock whose file was removed by its holder is not
// one that another process can believe to have.
func TestLockSurvivesRemoval(t *testing.T) {
	t.Parallel()
	prefix := filepath.Join(t.TempDir(), "p")
	a, err := Acquire(t.Context(), prefix, LockOptions{Command: "first"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(t.Context(), prefix, LockOptions{NoWait: true})
	if report.ExitCode(err) != report.Failed || !strings.Contains(err.Error(), "first") {
		t.Fatalf("got %v, want exit code 1 and the holder", err)
	}
	got := make(chan *Lock)
	go func() {
		l, err := Acquire(context.Background(), prefix, LockOptions{Command: "second"})
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	time.Sleep(2 * lockPoll) // it waits on the file that is about to go
	if err := a.Remove(); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(prefix) // as Unlock does; fails when the other was faster
	b := <-got
	if _, err := Acquire(t.Context(), prefix, LockOptions{NoWait: true}); err == nil {
		t.Error("two hold the lock")
	}
	if err := b.Release(); err != nil {
		t.Error(err)
	}
}
