package probe

import (
	"fmt"
	"io"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// WriteTAP writes res in the Test Anything Protocol, version 14: a test a check.
// An inconclusive check is "not ok": TAP has no word for it, and it is no pass.
func WriteTAP(w io.Writer, res Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "TAP version 14\n1..%d\n", len(res.Checks))
	for i, c := range res.Checks {
		ok, directive := "ok", ""
		switch c.Status {
		case report.Fail, report.Unclear:
			ok = "not ok"
		case report.Skip:
			directive = " # SKIP " + oneLine(c.Reason)
		}
		fmt.Fprintf(&b, "%s %d - level %d %s%s\n", ok, i+1, c.Level, tapText(c.Name), directive)
		if ok == "ok" {
			continue
		}
		b.WriteString("  ---\n")
		for _, row := range [][2]string{{"status", string(c.Status)}, {"want", c.Want}, {"got", c.Got}, {"reason", c.Reason}, {"hint", c.Hint}} {
			if row[1] != "" {
				fmt.Fprintf(&b, "  %s: %q\n", row[0], row[1])
			}
		}
		b.WriteString("  ...\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tapText keeps "#" from starting a directive.
func tapText(s string) string { return strings.ReplaceAll(oneLine(s), "#", `\#`) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
