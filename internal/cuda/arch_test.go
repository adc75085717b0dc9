package cuda

import (
	"slices"
	"strings"
	"testing"
)

func TestParseList(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"8.0;9.0+PTX", "8.0,9.0+PTX"},
		{"8.0 8.6 9.0", "8.0,8.6,9.0"},
		{"9.0, 8.0 ,9.0", "8.0,9.0"},
		{" 12.0 ;\t10.0\n", "10.0,12.0"},
		{"9.0a", "9.0a"},
		{"9.0A+ptx", "9.0a+PTX"},
		{"12.0f;12.0", "12.0,12.0f"},
		{"90", "9.0"},
		{"120", "12.0"},
		{"sm_90", "9.0"},
		{"SM_90a", "9.0a"},
		{"compute_80", "8.0+PTX"},
		{"8.0;8.0+PTX", "8.0+PTX"},
		{"Hopper", "9.0+PTX"},
		{"hopper+PTX", "9.0+PTX"},
		{"Ampere", "8.0,8.6+PTX"},
		{"Ampere+Tegra", "8.7"},
		{"Ada;Hopper", "8.9+PTX,9.0+PTX"},
		{"Blackwell", "10.0,10.3,12.0,12.1+PTX"},
		{"10.3a", "10.3a"},
		{"", ""},
		{" ; ", ""},
	} {
		got, err := ParseList(tc.in)
		if err != nil || Join(got) != tc.want {
			t.Errorf("%q: got %q, %v; want %q", tc.in, Join(got), err, tc.want)
		}
	}
	for _, in := range []string{"9", "9.0b", "nine", "9.0+PTY", "sm_9", "9.00", "Hoper", "-9.0", "9.0aa", "1234", "9.0/8.0", "sm90"} {
		if got, err := ParseList(in); err == nil {
			t.Errorf("%q: got %v, want an error", in, got)
		}
	}
}

func TestRunsOn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		arch   string
		device int
		want   bool
	}{
		{"8.0", 80, true},
		{"8.0", 86, true},
		{"8.6", 80, false},
		{"8.0", 90, false},
		{"8.0+PTX", 90, true},
		{"8.0+PTX", 75, false},
		{"9.0a", 90, true},
		{"10.0a", 103, false},
		{"10.0a+PTX", 120, false},
		{"10.0f", 103, true},
		{"10.0f", 120, false},
		{"12.0f", 121, true},
		{"12.1f", 120, false},
		{"10.0", 110, false},
		{"12.0", 121, true},
	} {
		a, err := ParseArch(tc.arch)
		if err != nil || a.RunsOn(tc.device) != tc.want {
			t.Errorf("%s on sm_%d: %t, %v; want %t", tc.arch, tc.device, !tc.want, err, tc.want)
		}
	}
}

func TestOnlyByPTX(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		list    string
		devices []int
		want    []int
	}{
		{"8.0+PTX", []int{80, 86, 90}, []int{90}},
		{"8.0+PTX,9.0", []int{80, 90, 120}, []int{120}},
		{"8.0", []int{90}, nil},
		{"10.0a+PTX", []int{120}, nil},
	} {
		arches, err := ParseList(tc.list)
		if got := OnlyByPTX(arches, tc.devices); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s on %v: %v, %v; want %v", tc.list, tc.devices, got, err, tc.want)
		}
	}
}

// The lists are those that nvcc itself printed.
func TestArchFault(t *testing.T) {
	t.Parallel()
	known, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	cuda132 := []int{75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121}
	cuda124 := []int{50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90}
	for _, tc := range []struct {
		arch, toolkit string
		supported     []int
		want          string
	}{
		{"9.0", "13.2.86", cuda132, ""},
		{"9.0a", "13.2.86", cuda132, ""},
		{"12.0f", "13.2.86", cuda132, ""},
		{"7.5", "13.2.86", cuda132, "below 8.0"},
		{"7.0", "13.2.86", cuda132, "below 8.0"},
		{"10.7", "13.2.86", cuda132, "too old"},
		{"12.0", "12.4", cuda124, "too old"},
		{"10.1", "13.2.86", cuda132, "too new"},
		{"9.9", "13.2.86", cuda132, "no known toolkit"},
		{"8.0a", "13.2.86", cuda132, "suffix a"},
		{"9.0f", "13.2.86", cuda132, "suffix f"},
		{"12.0f", "12.8", append(cuda124, 100, 101, 120), "needs CUDA 12.9"},
	} {
		a, err := ParseArch(tc.arch)
		if err != nil {
			t.Fatal(err)
		}
		fault, hint := ArchFault(a, 80, tc.toolkit, tc.supported, known)
		if (fault == "") != (tc.want == "") || !strings.Contains(fault, tc.want) || fault != "" && hint == "" {
			t.Errorf("%s with %s: got %q (hint %q), want %q", tc.arch, tc.toolkit, fault, hint, tc.want)
		}
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("8.0;9.0+PTX")
	f.Add("Hopper compute_90a")
	f.Fuzz(func(t *testing.T, text string) {
		arches, err := ParseList(text)
		if err != nil {
			return
		}
		again, err := ParseList(Join(arches))
		if err != nil || Join(again) != Join(arches) {
			t.Errorf("%q gives %q, which gives %q, %v", text, Join(arches), Join(again), err)
		}
	})
}
