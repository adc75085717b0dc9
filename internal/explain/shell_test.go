package explain

import (
	"strings"
	"testing"
)

// TestHostileValues: what a log says never becomes part of a command that a
// shell would take apart, nor steers the terminal.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	for _, log := range []string{
		"x.sh: line 1: /tmp/$(reboot)/set_env.sh: line 3: A: unbound variable",
		"chmod: cannot access '/opt/a;reboot': Permission denied",
		"[ops_custom] [ERROR] create /opt/$(reboot)/x failed",
		"ERROR: No matching distribution found for torch>=2.9;reboot",
		"fatal: clone of 'https://x/`reboot`.git' into submodule path '/w' failed",
		"fatal: detected dubious ownership in repository at '/a&&reboot'",
		"a.cpp:1:10: fatal error: -rf/reboot.h: No such file or directory",
		"a.cpp:1:10: fatal error: \u202ereboot\x07.h: No such file or directory",
	} {
		d := diagnose(t, log)
		if d.Verdict != Found {
			t.Errorf("%q: %s", log, d.Verdict)
			continue
		}
		commands := append([]string{}, d.Check...)
		commands = append(append(append(append(commands, d.Fix.Run...), d.Fix.Apt...), d.Fix.Dnf...), d.Fix.Pip...)
		for _, c := range commands {
			for _, bad := range []string{"$(reboot)", ";reboot", "`reboot", "&&reboot", " -rf", "\u202e"} {
				if strings.Contains(c, bad) {
					t.Errorf("%q: command %q", log, c)
				}
			}
		}
		for _, e := range d.Evidence {
			if strings.ContainsAny(e.Text, "\x07\x1b\u202e") {
				t.Errorf("%q: evidence %q", log, e.Text)
			}
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"äö", 3, "ä…"}, {"", 0, ""}} {
		if got := clip(c.s, c.most); got != c.want {
			t.Errorf("clip(%q, %d) = %q, want %q", c.s, c.most, got, c.want)
		}
	}
}
