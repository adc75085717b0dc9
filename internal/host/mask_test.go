package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	t.Parallel()
	m := newMasker("gpu-node-17.example.org")
	for _, tt := range []struct{ name, in, want string }{
		{"serial", "\tSerial Number                  : 033ABC10M1234567", "\tSerial Number                  : MASKED-1"},
		{"serial that is not there", "Serial Number : NA", "Serial Number : NA"},
		{"die", "\tVDie ID                        : 0A1B2C3D 44556677", "\tVDie ID                        : MASKED-2"},
		{"uuid", "GPU-5A4B3C2D-1111-2222-3333-444455556666", "GPU-00000000-0000-0000-0000-000000000001"},
		{"the same uuid again", "CUDA_VISIBLE_DEVICES=GPU-5a4b3c2d-1111-2222-3333-444455556666", "CUDA_VISIBLE_DEVICES=GPU-00000000-0000-0000-0000-000000000001"},
		{"pod", "/kubepods/pod5a4b3c2d_1111_2222_3333_444455557777", "/kubepods/pod00000000_0000_0000_0000_000000000002"},
		{"mac", "ether 52:54:00:12:34:56", "ether 02:00:00:00:00:01"},
		{"ipv4", "peer 10.12.13.14 is up", "peer 192.0.2.1 is up"},
		{"a version of four parts", "| npu-smi 23.0.2.1  Version: 23.0.2.1 |", "| npu-smi 23.0.2.1  Version: 23.0.2.1 |"},
		{"a version of five parts", "fw 9.0.0.105.229", "fw 9.0.0.105.229"},
		{"ipv6", "addr fe80::5054:ff:fe12:3456 up", "addr 2001:db8::1 up"},
		{"bus addresses stay", "00000000:DD:00.0 0000:9D:00.0 19e5:d802", "00000000:DD:00.0 0000:9D:00.0 19e5:d802"},
		{"host", "user@gpu-node-17:~$ on GPU-NODE-17", "user@host:~$ on host"},
		{"home", "/home/jane/x.py", "/home/user/x.py"},
		{"container", "/docker/0f21d6dbff3f9906f44810c883caa1c00f21d6dbff3f9906f44810c883caa1c0", "/docker/00000000000000000000000000000001"},
	} {
		if got := m.text(tt.in); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
		if again := m.text(m.text(tt.in)); again != m.text(tt.in) {
			t.Errorf("%s: masked twice: %q", tt.name, again)
		}
	}
}

// A recording must hold nothing that the machine's files did.
func TestRecordHoldsNoIdentity(t *testing.T) {
	t.Parallel()
	m := readMachine(t, "testdata/machines/a2.txtar")
	f, err := Detect(t.Context(), Options{Root: m.root, Env: m.env})
	if err != nil {
		t.Fatal(err)
	}
	f.Evidence = append(f.Evidence, Evidence{Source: "npu-smi info -t board", Asked: "x", Answer: string(m.answers[3].Stdout)})
	dir := filepath.Join(t.TempDir(), "m")
	if err := record(dir, f, "node"); err != nil {
		t.Fatal(err)
	}
	if err := record(dir, f, "node"); err == nil {
		t.Error("a second recording into the same folder was not refused")
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, p := range files {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "033ABC10M") {
			t.Errorf("%s holds a serial number", filepath.Base(p))
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no file":        "",
		"other schema":   `{"schema":"x","version":1,"recorded":[]}`,
		"newer":          `{"schema":"invar.machine","version":99,"recorded":[]}`,
		"unknown key":    `{"schema":"invar.machine","version":1,"recorded":[],"x":1}`,
		"trailing text":  `{"schema":"invar.machine","version":1,"recorded":[]} {}`,
		"file elsewhere": `{"schema":"invar.machine","version":1,"recorded":[{"source":"x","asked":"x","file":"../../etc/passwd"}]}`,
		"file missing":   `{"schema":"invar.machine","version":1,"recorded":[{"source":"x","asked":"x","file":"01.txt"}]}`,
	} {
		dir := t.TempDir()
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, recordFile), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Replay(dir); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}
