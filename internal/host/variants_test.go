package host

import (
	"strings"
	"testing"
)

func TestVariants(t *testing.T) {
	t.Parallel()
	answers := readAnswers(t, "variants.yaml")
	right := 0
	for _, a := range answers {
		wrong := a.check(judged(t, strings.ReplaceAll(a.Text, "<TAB>", "\t")))
		if len(wrong) == 0 {
			right++
		}
		for _, w := range wrong {
			t.Errorf("%s: %s", a.Name, w)
		}
	}
	t.Logf("score: %d of %d variants judged right", right, len(answers))
}
