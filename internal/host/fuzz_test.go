package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FuzzFrom gives the parsers whatever there is: a verdict comes out, it has a
// reason and an exit code of the contract, and a text never says "none".
func FuzzFrom(f *testing.F) {
	for _, dir := range []string{"detect", "versions"} {
		files, err := filepath.Glob("testdata/" + dir + "/*.txt")
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(b))
		}
	}
	f.Add("|0|x|")
	f.Add("NPU ID : 0\nChip ID : 0\nChip ID : 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		facts, err := From(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		v := Judge(facts)
		if v.State == NoDevice || v.Target == "cpu" {
			t.Errorf("a text cannot say that a machine has no accelerator: %+v", v)
		}
		if v.Reason == "" || v.Rule == "" {
			t.Errorf("no reason: %+v", v)
		}
		if !slices.Contains([]int{0, 3, 6}, v.ExitCode()) || v.ExitCode() == 0 && v.Target == "" {
			t.Errorf("exit %d, target %q", v.ExitCode(), v.Target)
		}
	})
}

// FuzzMask wants masking to settle: what is masked once stays as it is.
func FuzzMask(f *testing.F) {
	f.Add("Serial Number : X\nGPU-5a4b3c2d-1111-2222-3333-444455556666 10.0.0.1 fe80::1 52:54:00:12:34:56")
	f.Fuzz(func(t *testing.T, text string) {
		m := newMasker("build-node-17")
		once := m.text(text)
		if twice := m.text(once); twice != once {
			t.Errorf("once %q, twice %q", once, twice)
		}
	})
}
