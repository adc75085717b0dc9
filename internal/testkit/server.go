package testkit

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/vllm"
)

// startLimit is how long a server may take until it answers: about 40 s on an
// idle machine with two cores.
const startLimit = 15 * time.Minute

// A Server is a running vLLM server on the loopback. It is stopped when its test ends.
type Server struct {
	URL   string
	Model string // as the server calls it
	Log   string // file with everything it printed
	done  chan error
}

// ServeVLLM starts a server for a model of place, as `invar setup vllm` says it
// has to be started, with further environment, and waits until it answers.
func ServeVLLM(t testing.TB, place vllm.Place, model string, env ...string) *Server {
	t.Helper()
	s := LaunchVLLM(t, place, model, env...)
	deadline := time.Now().Add(startLimit)
	for time.Now().Before(deadline) {
		select {
		case err := <-s.done:
			t.Fatalf("the server ended before it answered: %v\n%s", err, s.tail())
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(500 * time.Millisecond):
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s
			}
		}
	}
	t.Fatalf("no answer in %v\n%s", startLimit, s.tail())
	return nil
}

// LaunchVLLM starts a server and does not wait for it.
func LaunchVLLM(t testing.TB, place vllm.Place, model string, env ...string) *Server {
	t.Helper()
	port, err := freePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &Server{
		URL: fmt.Sprintf("http://127.0.0.1:%d", port), Model: place.Models[model],
		Log: filepath.Join(dir, "server.log"), done: make(chan error, 1),
	}
	argv := append([]string{
		place.Command, "serve", s.Model, "--dtype", place.Dtypes[model], "--host", "127.0.0.1", "--port", fmt.Sprint(port),
	}, place.Serve.Arguments...)
	full := run.Unsetenv(os.Environ(), "PYTHONPATH", "VIRTUAL_ENV", "INVAR_BATCH_INVARIANT", "INVAR_CPU_LIBRARY", "INVAR_CPU_ISA", "VLLM_PLUGINS")
	// Another home: compiled graphs of this test meet no others.
	full = run.Setenv(full, "VLLM_CACHE_ROOT", filepath.Join(dir, "cache"))
	for _, k := range slices.Sorted(maps.Keys(place.Serve.Environment)) {
		full = run.Setenv(full, k, place.Serve.Environment[k])
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := run.System{}.Run(ctx, run.Cmd{Argv: argv, Env: append(full, env...), Log: s.Log})
		s.done <- err
	}()
	t.Cleanup(func() { stop(); <-ended })
	return s
}

// Ended waits until a server that should not start has ended, and returns what it printed.
func (s *Server) Ended(t testing.TB) string {
	t.Helper()
	select {
	case err := <-s.done:
		if err == nil {
			t.Errorf("the server ended with exit code 0")
		}
	case <-time.After(startLimit):
		t.Fatalf("the server did not end\n%s", s.tail())
	}
	return s.text()
}

func (s *Server) text() string {
	b, _ := os.ReadFile(s.Log)
	return string(b)
}

func (s *Server) tail() string { return run.LastLines(s.text(), 30) }

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
