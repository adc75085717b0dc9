package probe

import (
	"fmt"
	"io"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// WriteSummary writes res as Markdown for the summary of a CI job.
func WriteSummary(w io.Writer, res Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### invar probe: %s, proved to level %d of %d\n\n| level | | outcome |\n| --- | --- | --- |\n", res.Target, res.Proved, Deepest)
	for _, l := range res.Levels {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", l.Level, l.Name, cell(firstNonEmpty(l.Reason, "")+" "+mark(l.Status)))
	}
	b.WriteString("\n")
	for _, line := range res.Summary {
		fmt.Fprintf(&b, "%s  \n", cell(line))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func mark(s report.Status) string { return "**" + string(s) + "**" }

// cell keeps a text in its cell of a table.
func cell(s string) string {
	return strings.TrimSpace(strings.NewReplacer("|", `\|`, "\n", "<br>", "<", "&lt;").Replace(s))
}

// WriteAnnotations writes a line for each check that did not pass, as GitHub's
// runner reads them from the output of a step.
func WriteAnnotations(w io.Writer, res Result) error {
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, c := range res.Checks {
		kind := ""
		switch c.Status {
		case report.Fail:
			kind = "error"
		case report.Unclear:
			kind = "warning"
		default:
			continue
		}
		_, err := fmt.Fprintf(w, "::%s title=%s::%s\n", kind, property.Replace(fmt.Sprintf("probe level %d", c.Level)), escape.Replace(message(c)))
		if err != nil {
			return err
		}
	}
	return nil
}
