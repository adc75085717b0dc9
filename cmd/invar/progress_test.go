package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBarsOfStepsThatOverlap draws on a terminal (script makes one): the line
// of a step that ends while another's bar is shown begins at the margin.
func TestBarsOfStepsThatOverlap(t *testing.T) {
	t.Parallel()
	if os.Getenv("INVAR_TEST_BARS") == "1" {
		p := newProgress(os.Stderr, false)
		a, b := p.Start("probe", "six", 0), p.Start("probe", "seven", 3) // six has no bar of its own to clear
		b.Add(1)
		a.Done("ended first")
		p.Note("a note")
		b.Done("ended last")
		return
	}
	b := onTerminal(t, "1")
	if !strings.Contains(b, "━") {
		t.Fatalf("no bar was drawn: %q", b)
	}
	for _, line := range []string{"probe     six ended first", "a note", "probe     seven ended last"} {
		at := strings.Index(b, line)
		if at < 1 || b[at-1] != '\r' && b[at-1] != '\n' && !strings.HasSuffix(string(b[:at]), "\x1b[2K\r") {
			t.Errorf("%q does not begin at the margin: %q", line, b)
		}
	}
}

// TestBarOfBytes: a step whose size becomes known while it runs turns from a
// spinner into a bar of bytes.
func TestBarOfBytes(t *testing.T) {
	t.Parallel()
	if os.Getenv("INVAR_TEST_BARS") == "2" {
		s := newProgress(os.Stderr, false).Start("python", "environment", -1)
		s.Expect(200e6)
		s.Expect(300e6)
		s.Add(250e6)
		for range 5 { // bars are drawn every 65 ms at most
			time.Sleep(100 * time.Millisecond)
			s.Add(0)
		}
		s.Done("whole")
		return
	}
	said := onTerminal(t, "2")
	for _, want := range []string{"━", "50%", "250/500 MB", "environment whole"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %q", want, said)
		}
	}
}

// onTerminal runs the calling test once more on a terminal, which script
// makes, as the given part, and returns what was written there.
func onTerminal(t *testing.T, part string) string {
	t.Helper()
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("needs script (package bsdutils)")
	}
	file := filepath.Join(t.TempDir(), "typescript")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "script", "-qec", "'"+self+"' -test.run '^"+t.Name()+"$'", file)
	cmd.Env = append(os.Environ(), "INVAR_TEST_BARS="+part, "TERM=xterm", "CI=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
