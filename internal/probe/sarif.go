package probe

import (
	"fmt"
	"io"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/invar-ops/invar/internal/report"
)

// WriteSARIF writes res as SARIF 2.1.0: a result for each check, passes included,
// so that code scanning sees when one comes back. Checks have no file in a
// repository: they are at a logical location, the installation. Code scanning
// refuses results without a file, so file, where it is given, is the one in the
// repository that asked for the probe.
func WriteSARIF(w io.Writer, res Result, version, file string) error {
	run := sarif.NewRunWithInformationURI("invar probe", "https://github.com/invar-ops/invar")
	run.Tool.Driver.WithVersion(version)
	where := sarif.NewLocation().WithLogicalLocations([]*sarif.LogicalLocation{
		sarif.NewLogicalLocation().WithFullyQualifiedName(fmt.Sprintf("%s, generation %d, %s", res.Prefix, res.Generation, res.Python)),
	})
	if file != "" {
		where.WithPhysicalLocation(sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation(file)).WithRegion(sarif.NewRegion().WithStartLine(1)))
	}
	for _, c := range res.Checks {
		id := fmt.Sprintf("level-%d/%s", c.Level, c.Name)
		run.AddRule(id).WithDescription(firstNonEmpty(c.Want, c.Name))
		r := sarif.NewRuleResult(id).WithLocations([]*sarif.Location{where}).WithMessage(sarif.NewTextMessage(message(c)))
		switch c.Status {
		case report.Pass:
			r.WithKind("pass").WithLevel("none")
		case report.Fail:
			r.WithKind("fail").WithLevel("error")
		case report.Skip:
			r.WithKind("notApplicable").WithLevel("none")
		default: // SARIF: whether there is a problem could not be determined
			r.WithKind("open").WithLevel("none")
		}
		run.AddResult(r)
	}
	all := sarif.NewReport()
	all.AddRun(run)
	return all.PrettyWrite(w)
}

// message is a check in one line.
func message(c report.Check) string {
	var b strings.Builder
	b.WriteString(c.Name + ": " + string(c.Status))
	for _, row := range [][2]string{{"want", c.Want}, {"got", c.Got}, {"reason", c.Reason}, {"try", c.Hint}} {
		if row[1] != "" {
			b.WriteString("; " + row[0] + " " + oneLine(row[1]))
		}
	}
	return b.String()
}
