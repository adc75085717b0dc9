package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Command{
		"vllm serve m --port 9":                     {Argv: []string{"vllm", "serve", "m", "--port", "9"}, URL: "http://127.0.0.1:9"},
		"A=1 B='x y' vllm serve 'a b' --port=9":     {Env: []string{"A=1", "B=x y"}, Argv: []string{"vllm", "serve", "a b", "--port=9"}, URL: "http://127.0.0.1:9"},
		"x --host 0.0.0.0 --port 9":                 {Argv: []string{"x", "--host", "0.0.0.0", "--port", "9"}, URL: "http://127.0.0.1:9"},
		"x --host ::1 --port 9 -O '{\"a\": \"b\"}'": {Argv: []string{"x", "--host", "::1", "--port", "9", "-O", `{"a": "b"}`}, URL: "http://[::1]:9"},
	} {
		got, err := Parse(text)
		if err != nil || got.URL != want.URL || !slices.Equal(got.Argv, want.Argv) || !slices.Equal(got.Env, want.Env) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	c, err := Parse("vllm serve m")
	if err != nil || len(c.Argv) != 5 || c.Argv[3] != "--port" || !strings.HasSuffix(c.URL, ":"+c.Argv[4]) {
		t.Errorf("%+v, %v: want a free port", c, err)
	}
	for _, bad := range []string{"", "A=1", "a 'b", "a && b", "a | b", "a > b"} {
		if _, err := Parse(bad); report.ExitCode(err) != report.Usage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestStartLogs are real lines of servers, with what they mean for the verdict.
func TestStartLogs(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		"11-preemption-v0.log":                   {Preempted},
		"13-preemption-v1-resumed.log":           {Preempted, Preempted},
		"29-bi-startup-no-attention-backend.log": {Refused},
		"31-bi-ascend-ops-not-available.log":     {Inactive},
		"01-npu-v091-kv-then-fail.log":           nil,
		"14-usage-lines-glued.log":               nil,
		"22-sglang-comparison.log":               nil,
	} {
		f, err := os.Open(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		found, err := ReadLog(f)
		_ = f.Close()
		var kinds []string
		for _, x := range found {
			kinds = append(kinds, x.Kind)
			if x.Text == "" || x.Hint == "" || x.Source == "" {
				t.Errorf("%s: rule %s says too little", file, x.ID)
			}
		}
		if err != nil || !slices.Equal(kinds, want) {
			t.Errorf("%s: %v, %v, want %v", file, kinds, err, want)
		}
	}
}

// TestRefusedStart: the reason why a server did not start is read from its log.
func TestRefusedStart(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct{ rule, cause, hint string }{
		"29-bi-startup-no-attention-backend.log": {"invariant-backend", "attention backend", "--attention-backend FLASH_ATTN"},
		"16-npu-no-memory-shared-card.log":       {"no-memory-for-kv-cache", "shared card", ""},
		"19-fp8-max-len-estimate.log":            {"kv-cache-too-small", "10.12 GiB", ""},
		"20-kv-needed-wrapped-line.log":          {"kv-cache-too-small", "4.26 GiB", ""},
		"01-npu-v091-kv-then-fail.log":           {"", "", ""},
		"02-npu-hybrid-ratio-mismatch-oom.log":   {"", "", ""},
	} {
		abs, err := filepath.Abs(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(t.TempDir(), "s.log")
		c := Command{Argv: []string{"sh", "-c", `cat "$0"; exit 3`, abs}, URL: "http://127.0.0.1:1"}
		_, err = Start(t.Context(), run.System{}, c, os.Environ(), log, time.Minute)
		p, ok := err.(*report.Problem) //nolint:errorlint // returned bare
		if !ok || p.Rule != want.rule || !strings.Contains(p.Cause, want.cause) || !strings.Contains(p.Hint, want.hint) || p.Log != log || p.Tail == "" || !strings.Contains(p.Error(), "exit code 3") {
			t.Errorf("%s: %+v\nwant %+v", file, p, want)
		}
	}
}

// TestStopTakesTheGroup: children of the server end with it.
func TestStopTakesTheGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `sleep 1000 & echo $! >"$0/child"; exec python3 -c 'import http.server,sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("127.0.0.1",int(sys.argv[1])),H).serve_forever()' "$2"`
	c, err := Parse("sh -c x")
	if err != nil {
		t.Fatal(err)
	}
	port := c.Argv[len(c.Argv)-1]
	c.Argv = []string{"sh", "-c", script, dir, "--port", port}
	s, err := Start(t.Context(), run.System{}, c, os.Environ(), filepath.Join(dir, "s.log"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), run.System{}, c, os.Environ(), filepath.Join(dir, "t.log"), time.Minute); err == nil || !strings.Contains(err.Error(), "listens on") {
		t.Errorf("a second server on the port: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if !s.Gone() {
		t.Error("it did not end")
	}
	// It was sent SIGKILL; when the kernel carries that out is its own affair.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("its child is still there: %s", stat)
		}
	}
}

// TestRouting: a vLLM server that was asked for invar's operators and whose
// workers say nothing runs without them.
func TestRouting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &Server{routing: dir, Log: "l"}
	if err := s.routed(); report.ExitCode(err) != report.CheckFailed {
		t.Errorf("no record: %v", err)
	}
	file := filepath.Join(dir, "routing-0-7.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"schema":"invar.routing","modules":{},"linear":{}}`)
	if err := s.routed(); report.ExitCode(err) != report.CheckFailed {
		t.Errorf("a record of nothing: %v", err)
	}
	write(`{"schema":"invar.routing","modules":{"linear":29,"attention":4},"worker":{"threads":2,"dtype":"float32"},"operators":{"contract":"invar-cpu-fp32/1"}}`)
	all, err := s.Routing()
	if err != nil || s.routed() != nil || len(all) != 1 || !strings.Contains(all[0].Text(), "29 linear layers") {
		t.Errorf("%+v, %v", all, err)
	}
	write("{")
	if err := s.routed(); err == nil {
		t.Error("a record that is cut: no error")
	}
	on := []string{"INVAR_BATCH_INVARIANT=1"}
	for _, argv := range [][]string{{"/env/bin/vllm", "serve"}, {"python3", "-m", "vllm.entrypoints.openai.api_server"}} {
		if c := (Command{Argv: argv}); !c.wantsRouting(on) || c.wantsRouting(nil) {
			t.Errorf("%v", argv)
		}
	}
	if (Command{Argv: []string{"sglang"}}).wantsRouting(on) {
		t.Error("another engine has no records")
	}
}
