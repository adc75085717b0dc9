package install

import (
	"slices"
	"strings"
	"testing"
)

// FuzzPriority: whatever config.ini holds, our vendor comes first once, the
// others keep their order, and taking it out leaves them.
func FuzzPriority(f *testing.F) {
	for _, s := range []string{"", "load_priority=a,b\n", "load_priority = a , v,\r\n# x\n", "load_priority=\nload_priority=v\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		others := slices.DeleteFunc(priority(text), func(n string) bool { return n == "v" })
		with := withVendor(text, "v")
		if got := priority(with); !slices.Equal(got, append([]string{"v"}, others...)) {
			t.Errorf("%q became %q: %q", text, with, got)
		}
		if got := priority(withoutVendor(with, "v")); !slices.Equal(got, others) {
			t.Errorf("taken out: %q, want %q", got, others)
		}
		if !strings.HasSuffix(with, "\n") {
			t.Errorf("%q", with)
		}
	})
}
