package image

import (
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// tell puts into p what the step that failed printed, without the builder's own
// lines around it, and what the invar inside said: it knows better than any
// rule about the log around it.
func tell(p *report.Problem, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.Tail = run.LastLines(strings.Join(lines, "\n"), 12)
	p.Cause, p.Hint = ownWords(lines)
}

// ownWords are the last error of invar in lines and its advice.
func ownWords(lines []string) (cause, hint string) {
	const mark = "invar: error: "
	at := -1
	for i, l := range lines {
		if strings.HasPrefix(l, mark) {
			at = i
		}
	}
	if at < 0 {
		return "", ""
	}
	details := []string{strings.TrimPrefix(lines[at], mark)}
	for _, l := range lines[at+1:] {
		label, text, _ := strings.Cut(strings.TrimSpace(l), " ")
		if !strings.HasPrefix(l, "  ") || label == "last" { // "last lines:"
			break
		}
		switch label {
		case "try":
			hint = strings.TrimSpace(text)
		case "cause":
			details = append(details, strings.TrimSpace(text))
		case "log", "rule": // of a file system that is gone
		default: // a requirement, or its advice
			details = append(details, strings.Join(strings.Fields(l), " "))
		}
	}
	return "in the build: " + strings.Join(details, "; "), hint
}
