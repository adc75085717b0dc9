package lint

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// WriteSARIF writes the findings as SARIF 2.1.0 for code scanning. file is the
// artifact that they are about; "" for a command line or a process.
func WriteSARIF(w io.Writer, starts []Start, file, version string) error {
	run := sarif.NewRunWithInformationURI("invar lint", "https://github.com/invar-ops/invar")
	run.Tool.Driver.WithVersion(version)
	for _, s := range starts {
		for _, f := range s.Findings {
			rule := run.AddRule(f.ID)
			rule.WithName(f.Title).WithDescription(f.Why)
			if strings.HasPrefix(f.Reference, "https://") {
				rule.WithHelpURI(f.Reference)
			}
			text := f.Title + ": " + f.Why + ". Fix: " + f.Fix
			if !f.Sure {
				text = "possible, " + strings.Join(f.Unknown, " and ") + " unknown: " + text
			}
			result := sarif.NewRuleResult(f.ID).WithLevel(f.level()).WithMessage(sarif.NewTextMessage(text))
			result.WithLocations([]*sarif.Location{location(file, f)})
			run.AddResult(result)
		}
	}
	report := sarif.NewReport()
	report.AddRun(run)
	return report.PrettyWrite(w)
}

func location(file string, f Finding) *sarif.Location {
	if file == "" {
		logical := sarif.NewLogicalLocation().WithFullyQualifiedName(f.Where)
		return sarif.NewLocation().WithLogicalLocations([]*sarif.LogicalLocation{logical})
	}
	region := sarif.NewRegion().WithStartLine(max(f.Line, 1))
	artifact := sarif.NewSimpleArtifactLocation(filepath.ToSlash(file))
	return sarif.NewLocationWithPhysicalLocation(sarif.NewPhysicalLocation().WithArtifactLocation(artifact).WithRegion(region))
}

// level is SARIF's word for how much a finding weighs.
func (f Finding) level() string {
	switch {
	case !f.Sure || f.Confidence == "low":
		return "note"
	case f.Kind == "performance" || f.Confidence == "medium":
		return "warning"
	}
	return "error"
}
