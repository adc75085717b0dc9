package explain

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the list of rules into docs/explain.md")

// TestDocs keeps the list of rules in docs/explain.md as the rule files are.
func TestDocs(t *testing.T) {
	t.Parallel()
	const (
		file = "../../docs/explain.md"
		mark = "<!-- rules: written by go test ./internal/explain -run TestDocs -update -->\n"
	)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s does not hold %q", file, mark)
	}
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	last := ""
	for _, r := range rules {
		if r.Level == Success || r.Level == Progress {
			continue
		}
		if r.Family != last {
			last = r.Family
			fmt.Fprintf(&b, "\n### %s\n\n| rule | level | cause |\n|---|---|---|\n", r.Family)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.ID, r.Level, strings.ReplaceAll(r.Summary(), "|", "\\|"))
	}
	want := head + mark + b.String()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("the list of rules in %s is out of date: go test ./internal/explain -run TestDocs -update", file)
	}
}
