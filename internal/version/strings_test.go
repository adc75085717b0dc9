package version

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
)

// lines reads a recorded list of strings, one a line, without pip's prefix.
func lines(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func TestRecordedPythonVersions(t *testing.T) {
	t.Parallel()
	n := 0
	for _, name := range []string{"13-vllm-version-strings.txt", "14-vllm-ascend-version-strings.txt", "16-torch-npu-strings.txt"} {
		for _, line := range lines(t, name) {
			_, v, ok := strings.Cut(line, "==")
			if !ok {
				v = line
			}
			got, err := Parse(PEP440, v)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if !strings.HasPrefix(v, got.Release()) {
				t.Errorf("%s: %q has release %q", name, v, got.Release())
			}
			n++
		}
	}
	if n < 25 {
		t.Errorf("only %d recorded strings were read", n)
	}
}

func TestRecordedDriverVersions(t *testing.T) {
	t.Parallel()
	known, unknown := 0, 0
	for _, line := range lines(t, "20-nvidia-driver-strings.txt") {
		v, err := Parse(Driver, line)
		switch {
		case errors.Is(err, ErrUnknown):
			unknown++
		case err != nil:
			t.Error(err)
		case v.Major() < 500 || len(v.Segments()) < 2:
			t.Errorf("%q read as %s", line, v.Release())
		default:
			known++
		}
	}
	if known != 6 || unknown != 3 {
		t.Errorf("%d known and %d unknown, want 6 and 3", known, unknown)
	}
}

func TestRecordedCANNPairs(t *testing.T) {
	t.Parallel()
	pair := regexp.MustCompile(`\[([^:]+):([^]]+)\]`)
	var cann []Version
	for _, line := range lines(t, "07-version-cfg-lines-history.txt") {
		m := pair.FindStringSubmatch(line)
		if _, err := Parse(CANN, m[1]); err != nil {
			t.Error(err)
		}
		v, err := Parse(CANN, m[2])
		if err != nil {
			t.Fatal(err)
		}
		cann = append(cann, v)
	}
	// T63 < RC2.alpha001 < RC3 < 8.0.0, in the order of the file 0, 3, 2, 1.
	for _, p := range [][2]int{{0, 3}, {3, 2}, {2, 1}, {4, 0}, {5, 4}} {
		if !Less(cann[p[0]], cann[p[1]]) {
			t.Errorf("%s does not sort below %s", cann[p[0]], cann[p[1]])
		}
	}
}
