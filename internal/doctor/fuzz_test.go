package doctor

import (
	"strings"
	"testing"
)

func FuzzReaders(f *testing.F) {
	for _, s := range []string{
		"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n", "set -u\nsource set_env.sh\r\n",
		"[build-system]\nrequires = [\"torch\"]\n", "ID=debian\nID_LIKE=\"a b\"\n", "load_priority=a,b\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		mounts := parseMounts(s)
		if m := mountOf(mounts, "/tmp"); m.point != "" && m.point != "/" && !strings.HasPrefix("/tmp", m.point) {
			t.Errorf("/tmp is on %q", m.point)
		}
		if sourcesUnderNounset(s) && !strings.Contains(s, "set_env.sh") {
			t.Error("a script without set_env.sh sources it")
		}
		if wantsTorch(s) && !strings.Contains(s, "torch") {
			t.Error("torch is wanted and not named")
		}
		if crlf([]byte(s)) && !strings.Contains(s, "\r\n") {
			t.Error("CR LF where none is")
		}
		for k := range assignments([]byte(s)) {
			if !strings.Contains(s, k) {
				t.Errorf("key %q from nowhere", k)
			}
		}
	})
}

// A matrix judgement stands whatever is installed.
func FuzzNearest(f *testing.F) {
	d, err := Load()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("3.11", "9.1.0", "2.10.0", "2.10.0.post4", "0.23.0")
	f.Add("", "x", "N/A", "1!0", "0.1.dev1+g96d6fa7")
	f.Fuzz(func(t *testing.T, py, cann, torch, npu, va string) {
		have := Have{"python": py, "cann": cann, "torch": torch, "torch_npu": npu, "vllm_ascend": va}
		all := d.Matrix.nearest(d.Matrix.Rows, have)
		if len(all) != len(d.Matrix.Rows) {
			t.Fatalf("%d of %d rows", len(all), len(d.Matrix.Rows))
		}
		for i := 1; i < len(all); i++ {
			if all[i].hard < all[i-1].hard {
				t.Fatalf("row %d needs %d changes, the one before %d", i, all[i].hard, all[i-1].hard)
			}
		}
		_ = all[0].Phrase()
	})
}
