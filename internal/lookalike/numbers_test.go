package lookalike

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestEveryNumberHasBothSides reads the tests of the weaknesses: each of the
// thirty numbers is in the name of one that shows it on the script, and of one
// that shows it gone.
func TestEveryNumberHasBothSides(t *testing.T) {
	t.Parallel()
	for file, names := range map[string]*regexp.Regexp{
		"weakness_script_test.go": regexp.MustCompile(`(?m)^func TestScript(\d\d)\w*\(`),
		"weakness_invar_test.go":  regexp.MustCompile(`(?m)^func TestInvar(\w+)\(|t\.Run\("([^"]+)"`),
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		for _, m := range names.FindAllSubmatch(b, -1) {
			for _, part := range m[1:] {
				seen = append(seen, regexp.MustCompile(`\d\d`).FindAllString(string(part), -1)...)
			}
		}
		for n := 1; n <= 30; n++ {
			if !slices.Contains(seen, fmt.Sprintf("%02d", n)) {
				t.Errorf("%s has no test of number %d", file, n)
			}
		}
	}
}
