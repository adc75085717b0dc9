package cann

import (
	"strings"
	"testing"
)

func TestNpuSmi(t *testing.T) {
	t.Parallel()
	for machine, want := range map[string]struct {
		args []string
		text string
	}{
		"a2":  {[]string{"info", "-m"}, "Ascend 910B4"},
		"a3":  {[]string{"info", "-t", "board", "-i", "0", "-c", "0"}, "9392"},
		"950": {[]string{"info", "-t", "board", "-i", "0"}, "Ascend950PR"},
	} {
		tool := NpuSmi(t, t.TempDir(), machine)
		res, err := Run(t, []string{"PATH=/usr/bin:/bin"}, append([]string{tool}, want.args...)...)
		if err != nil || !strings.Contains(string(res.Stdout), want.text) {
			t.Errorf("%s: %v, %q", machine, err, res.Stdout)
		}
		if res, _ := Run(t, []string{"PATH=/usr/bin:/bin"}, tool, "-x"); res.Code != 255 {
			t.Errorf("%s -x: %d", machine, res.Code)
		}
	}
}
