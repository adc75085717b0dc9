package python

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// heard is a Progress and a Runner that note what they are given; no process
// is started, so no environment comes to be.
type heard struct {
	report.Progress
	mu    sync.Mutex
	notes []string
	argv  [][]string
}

func (h *heard) Note(text string) { h.notes = append(h.notes, text) }

func (h *heard) Run(_ context.Context, c run.Cmd) (run.Result, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.argv = append(h.argv, c.Argv)
	return run.Result{}, nil
}

// TestIndexThatIsNotReached: one that refuses, hangs or has no torch is left
// within seconds, aloud, for the configured one; one that answers is asked, and
// so is one that the user named, whatever it answers.
func TestIndexThatIsNotReached(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refuses := "http://" + closed.Addr().String()
	_ = closed.Close()
	answer := func(handle http.HandlerFunc) string {
		s := httptest.NewServer(handle)
		t.Cleanup(s.Close)
		return s.URL + "/whl/cpu"
	}
	hangs := answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	empty := answer(http.NotFound)
	good := answer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/whl/cpu/torch/" {
			http.NotFound(w, r)
		}
	})
	for _, tc := range []struct {
		name, index       string
		explicit, offline bool
		note              string
		asked             bool
	}{
		{"refuses", refuses, false, false, "refused", false},
		{"hangs", hangs, false, false, IndexTimeout.String(), false},
		{"has no torch", empty, false, false, "404", false},
		{"answers", good, false, false, "", true},
		{"named by the user", refuses, true, false, "", true},
		{"offline", refuses, false, true, "", false},
	} {
		for _, installer := range []string{"uv", "pip"} {
			t.Run(tc.name+"/"+installer, func(t *testing.T) {
				t.Parallel()
				h := &heard{Progress: report.Discard}
				r := Recipe{
					Base: Python{Exe: "/usr/bin/python3"}, Dir: filepath.Join(t.TempDir(), "env"), Packages: []string{"torch==2.15.0"},
					Index: tc.index, Explicit: tc.explicit, Offline: tc.offline, Installer: installer,
				}
				start := time.Now()
				_, err := Make(t.Context(), r, Options{Runner: h}, "", "python", h)
				if err == nil || !strings.Contains(err.Error(), "no torch") {
					t.Errorf("an environment that nobody made: %v", err)
				}
				if took := time.Since(start); took > IndexTimeout+10*time.Second {
					t.Errorf("took %v", took)
				}
				switch {
				case tc.note == "" && len(h.notes) > 0, tc.note != "" && (len(h.notes) != 1 || !strings.Contains(h.notes[0], tc.note) || !strings.Contains(h.notes[0], tc.index)):
					t.Errorf("said %q, want %q about %s", h.notes, tc.note, tc.index)
				}
				if asked := slices.ContainsFunc(h.argv, func(argv []string) bool { return slices.Contains(argv, tc.index) }); asked != tc.asked {
					t.Errorf("ran %q; want the index among them: %v", h.argv, tc.asked)
				}
			})
		}
	}
}
