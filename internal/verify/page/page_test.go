package page

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit/simserver"
	"github.com/invar-ops/invar/internal/verify"
	"github.com/invar-ops/invar/internal/verify/judge"
)

// browser is Debian's Chromium. Without it a test is skipped, and fails in CI.
func browser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("short: no browser is started")
	}
	exe := ""
	for _, p := range []string{"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"} {
		if _, err := os.Stat(p); err == nil {
			exe = p
			break
		}
	}
	switch {
	case exe == "" && os.Getenv("INVAR_CI") == "1":
		t.Fatal("no chromium: .ci/apt.txt names it")
	case exe == "":
		t.Skip("no chromium")
	}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(exe), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// verified is the result of a real verification of a simulated server.
func verified(t *testing.T, c simserver.Config) judge.Result {
	t.Helper()
	s := httptest.NewServer(simserver.New(c))
	defer s.Close()
	res, err := verify.Server(t.Context(), verify.Options{URL: s.URL, Timeout: time.Minute, Preset: "quick", Progress: report.Discard})
	if res == nil {
		t.Fatal(err)
	}
	return *res
}

// loaded is what the browser told of a page.
type loaded struct {
	mu       sync.Mutex
	errors   []string
	requests []string
}

func (l *loaded) listen(ev any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		l.errors = append(l.errors, string(e.Type))
	case *runtime.EventExceptionThrown:
		l.errors = append(l.errors, e.ExceptionDetails.Text)
	case *cdplog.EventEntryAdded:
		l.errors = append(l.errors, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		l.requests = append(l.requests, e.Request.URL)
	}
}

// TestInBrowser compares what Chromium shows with the result that the page was
// written from. The page is a file: nothing else may be asked for.
func TestInBrowser(t *testing.T) {
	for name, c := range map[string]simserver.Config{
		"variant": {Seed: 1, Defects: []simserver.Defect{simserver.BatchOfOne}}, "invariant": {Seed: 1},
		"inconclusive": {Seed: 1, Defects: []simserver.Defect{simserver.NoStats}},
	} {
		t.Run(name, func(t *testing.T) {
			res := verified(t, c)
			if string(res.Verdict.Word) != name {
				t.Fatalf("the verdict is %s", res.Verdict.Word)
			}
			ctx := browser(t)
			file := filepath.Join(t.TempDir(), "report.html")
			var b bytes.Buffer
			if err := Write(&b, res); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			var l loaded
			for _, enable := range []func() error{
				func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
				func() error { _, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}); return err },
				func() error { _, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{}); return err },
				func() error { return chromedp.Listen(ctx, l.listen) },
				func() error { return chromedp.Do(ctx, chromedp.Navigate("file://"+file)) },
			} {
				if err := enable(); err != nil {
					t.Fatal(err)
				}
			}
			dom, err := chromedp.Run(ctx, chromedp.Evaluate[map[string]any](readPage))
			if err != nil {
				t.Fatal(err)
			}
			if len(l.errors) > 0 {
				t.Errorf("the console says %v", l.errors)
			}
			if want := []string{"file://" + file}; !slices.Equal(l.requests, want) {
				t.Errorf("requests %v, want %v", l.requests, want)
			}
			compare(t, dom, res)
		})
	}
}

// readPage collects the values that the page shows.
const readPage = `(() => {
  const text = s => document.querySelector(s)?.textContent ?? "";
  const all = (s, f) => Array.from(document.querySelectorAll(s), f);
  return {
    title: document.title, word: text("#word"), sentence: text("#sentence"), model: text("#model"),
    workloads: all("#workloads tr[data-name]", r => r.dataset.name + " " + r.querySelector(".pairs").textContent + " " + r.querySelector(".differ").textContent + " " + r.querySelector(".changed").textContent),
    coverage: all("#coverage tr[data-name]", r => r.dataset.name + " " + r.querySelector(".shown").textContent),
    heat: all("section", s => s.dataset.workload + " " + Array.from(s.querySelectorAll(".heat td[data-differ]"), d => d.dataset.differ).join(",")),
    details: all("section", s => s.dataset.workload + " " + Array.from(s.querySelectorAll(".details tr[data-request]"), d => d.dataset.request + ":" + d.querySelector(".kind").textContent + "@" + d.querySelector(".position").textContent).join(",")),
    deltas: all("section", s => s.dataset.workload + " " + Array.from(s.querySelectorAll(".deltas circle"), d => Number(d.dataset.value)).join(",")),
    lanes: all("section", s => s.dataset.workload + " " + Array.from(s.querySelectorAll(".timeline circle"), d => Number(d.dataset.value)).join(",")),
    reasons: all("#reasons li", r => r.dataset.id), notes: all("#notes li", r => r.dataset.id),
    size: all("svg", s => s.getBoundingClientRect().height > 20), scripts: document.scripts.length,
  };
})()`

func compare(t *testing.T, dom map[string]any, res judge.Result) {
	t.Helper()
	want := map[string]any{
		"title": "invar verify: " + string(res.Verdict.Word) + ", " + res.Server.Model,
		"word":  string(res.Verdict.Word), "sentence": res.Verdict.Sentence, "model": res.Server.Model, "scripts": 0.0,
		"reasons": ids(res.Verdict.Reasons), "notes": ids(res.Verdict.Notes),
	}
	var workloads, coverage, heat, details, deltas, lanes []any
	for _, c := range res.Coverage {
		coverage = append(coverage, c.Name+" "+map[bool]string{true: "yes", false: "no"}[c.Shown])
	}
	for _, w := range res.Workloads {
		workloads = append(workloads, fmt.Sprintf("%s %d %d %d", w.Name, w.Pairs, w.Differ, w.Changed))
		var h, d, v, at []string
		for _, row := range w.Heat {
			for _, n := range row {
				if n >= 0 {
					h = append(h, strconv.Itoa(n))
				}
			}
		}
		for i, r := range w.Details {
			d = append(d, fmt.Sprintf("%d:%s@%d", r.Index, r.First.Kind, r.First.Position))
			for _, x := range r.First.Deltas {
				if i < maxLines {
					v = append(v, number(x))
				}
			}
		}
		for _, l := range w.Timeline {
			for _, x := range l.At {
				at = append(at, number(x))
			}
		}
		heat = append(heat, w.Name+" "+strings.Join(h, ","))
		details = append(details, w.Name+" "+strings.Join(d, ","))
		deltas = append(deltas, w.Name+" "+strings.Join(v, ","))
		lanes = append(lanes, w.Name+" "+strings.Join(at, ","))
	}
	want["workloads"], want["coverage"], want["heat"], want["details"], want["deltas"], want["lanes"] = workloads, coverage, heat, details, deltas, lanes
	for k, w := range want {
		if got := fmt.Sprint(dom[k]); got != fmt.Sprint(w) {
			t.Errorf("%s: the page shows\n%.300s\nwant\n%.300s", k, got, fmt.Sprint(w))
		}
	}
	for _, visible := range dom["size"].([]any) {
		if visible != true {
			t.Error("a drawing has no height")
		}
	}
}

func ids(rs []judge.Reason) []any {
	out := []any{}
	for _, r := range rs {
		out = append(out, r.ID)
	}
	return out
}

// number is v as JavaScript prints it, for the values that occur here.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if m, e, ok := strings.Cut(s, "e-0"); ok {
		s = m + "e-" + e
	}
	if v != 0 && v < 1e-4 && v >= 1e-6 {
		s = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return s
}

// TestHostileText: what a server says of itself is text, never markup.
func TestHostileText(t *testing.T) {
	t.Parallel()
	res := judge.Result{Server: judge.Server{Model: `<script>alert(1)</script>`, URL: "http://x/\"onload=x"}, Verdict: judge.Verdict{Word: judge.Invariant, Sentence: "<img src=http://evil>"}}
	var b bytes.Buffer
	if err := Write(&b, res); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<img", `"onload`} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%q is markup in the page", bad)
		}
	}
	if !strings.Contains(b.String(), "&lt;script&gt;") {
		t.Error("the model is not shown")
	}
}
