package version

import "testing"

// Each list is in ascending order; every pair is compared both ways.
func TestCompareOrders(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		kind Kind
		up   []string
	}{
		{"CANN pre-releases", CANN, []string{
			"8.0.T63", "8.0.RC2.alpha001", "8.0.RC2", "8.0.RC3.alpha001", "8.0.RC3", "8.0.0", "8.1.RC1.alpha002",
			"8.1.RC1", "8.1.RC1.1", "8.2.RC1", "8.2.RC2", "8.2.RC10", "8.2.0", "8.3.RC1", "8.5.0.alpha001",
			"8.5.0-beta.1", "8.5.0", "8.5.0.2.220", "8.5.1", "9.1.0",
		}},
		{"CANN old naming", CANN, []string{"CANN-1.83", "6.0.1", "7.0.1.1.220", "8.0.RC2.alpha001"}},
		{"Ascend drivers", Driver, []string{"24.1.rc3", "24.1.rc3.6", "24.1.0", "25.2.RC1", "25.2.0", "25.2.3", "25.3.rc1", "26.0.RC1"}},
		{"NVIDIA drivers", Driver, []string{"470.256", "525.60.13", "546.80", "550.54.15", "555.99", "570.148.08", "573.24", "595.80", "610.57.04"}},
		{"PEP 440", PEP440, []string{
			"1.0.dev0", "1.0a1.dev1", "1.0a1", "1.0a2", "1.0b1", "1.0rc1.dev2", "1.0rc1", "1.0rc2.dev123", "1.0rc2",
			"1.0rc10", "1.0", "1.0.post1.dev1", "1.0.post1", "1.0.1", "1.10", "1!0.5",
		}},
		{"torch_npu", PEP440, []string{"2.5.1.dev20250320", "2.5.1", "2.5.1.post1.dev20250619", "2.5.1.post1", "2.7.1.dev20250724", "2.7.1rc1", "2.7.1", "2.8.0.post2"}},
		{"vllm", PEP440, []string{"0.8.4", "0.11.0rc1.dev356", "0.11.0rc1", "0.11.0", "0.11.1rc6.dev0", "0.23.0rc1", "0.23.0", "0.23.0.post1"}},
		{"CUDA", CUDA, []string{"9.2", "cu118", "12080", "12.8.93", "cu130", "13.2"}},
	}
	for _, tt := range tests {
		for i, a := range tt.up {
			for j, b := range tt.up {
				want := 0
				if i < j {
					want = -1
				} else if i > j {
					want = 1
				}
				if got := Compare(MustParse(tt.kind, a), MustParse(tt.kind, b)); got != want {
					t.Errorf("%s: Compare(%s, %s) = %d, want %d", tt.name, a, b, got, want)
				}
			}
		}
	}
}

func TestCompareEquals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind Kind
		a, b string
	}{
		{PEP440, "9.1", "9.1.0"},
		{PEP440, "2.10.0+cpu", "2.10.0+cu128"},
		{PEP440, "2.10.0+cpu", "2.10"},
		{PEP440, "1.0-1", "1.0.post1"},
		{PEP440, "1.0-RC.1", "1.0c1"},
		{CANN, "8.2.RC1", "8.2.0-rc1"},
		{CANN, "9.1.0.B150", "9.1.0"},
		{CANN, "8.1.RC1.0", "8.1.RC1"},
		{Driver, "570.148.08", "570.148.8"},
		{CUDA, "12080", "cu128"},
		{Plain, "3.14t", "3.14"},
	}
	for _, tt := range tests {
		if got := Compare(MustParse(tt.kind, tt.a), MustParse(tt.kind, tt.b)); got != 0 {
			t.Errorf("Compare(%s, %s) = %d, want 0", tt.a, tt.b, got)
		}
	}
}

func TestZeroVersionSortsFirst(t *testing.T) {
	t.Parallel()
	v := MustParse(PEP440, "0.dev0")
	if Compare(Version{}, v) != -1 || Compare(v, Version{}) != 1 || Compare(Version{}, Version{}) != 0 {
		t.Error("the zero version does not sort below 0.dev0")
	}
	if s := (Version{}).Canonical() + (Version{}).Release() + (Version{}).String(); s != "" {
		t.Errorf("the zero version prints %q", s)
	}
}
