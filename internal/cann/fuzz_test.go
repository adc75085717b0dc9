package cann

import (
	"strings"
	"testing"
)

func FuzzParseInfo(f *testing.F) {
	f.Add([]byte("package_name=Ascend-cann-toolkit\r\nversion=8.1.RC1\r\n"))
	f.Add([]byte("    Ascend-cann-atb : 9.1.0\n    Ascend-cann-atb Version : 9.1.0.B150\n"))
	f.Add([]byte("runtime_running_version=[7.6.0.1.220:8.0.0]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		info := ParseInfo(b)
		for k, v := range info {
			if k == "" || strings.TrimSpace(v) != v && !strings.ContainsAny(v, "\"' ") {
				t.Errorf("%q = %q", k, v)
			}
		}
		if v := info.running(); v != "" && !strings.Contains(string(b), v) {
			t.Errorf("version %q from nowhere", v)
		}
	})
}
