package explain

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestVariants reads testdata/variants: logs of the same kinds as the rules'
// examples with other packages, paths, locales and systems. A file is named
// RULE/what, or VERDICT/what for logs without a cause; lines of the log that
// start with "says:" are words that the answer must hold, not part of the log.
func TestVariants(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/variants/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal(err, "no variants")
	}
	right, total := 0, 0
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			var log, says []string
			for l := range strings.SplitSeq(string(f.Data), "\n") {
				if s, ok := strings.CutPrefix(l, "says: "); ok {
					says = append(says, s)
				} else {
					log = append(log, l)
				}
			}
			text := strings.NewReplacer("<ESC>", "\x1b", "<CR>", "\r").Replace(strings.Join(log, "\n"))
			want := path.Dir(f.Name)
			switch Verdict(want) {
			case Succeeded, Elsewhere, Nothing:
				want = "[" + want + "]"
			}
			total++
			if wrong := judgeAnswer(diagnose(t, text), want, says); wrong != "" {
				t.Errorf("%s: %s: %s", filepath.Base(name), f.Name, wrong)
				continue
			}
			right++
		}
	}
	t.Logf("score: %d of %d variants right", right, total)
}
