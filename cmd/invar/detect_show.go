package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/invar-ops/invar/internal/host"
)

// verdictLine is the verdict in one line: the chip first, then how many, then versions.
func verdictLine(v host.Verdict, f host.Facts) string {
	var parts []string
	switch {
	case v.State == host.NoDevice:
		parts = []string{or(v.SoC, "unknown architecture"), "no NPU and no GPU", "target cpu"}
	case v.Target == "cpu":
		parts = []string{or(v.SoC, "cpu"), "target cpu"}
	case v.Family != "":
		parts = []string{chipText(v)}
	case len(v.SoCs) > 0:
		parts = []string{strings.Join(v.SoCs, " and ")}
	case v.SKU != "":
		parts = []string{"chip " + v.SKU}
	default:
		parts = []string{"chip not known"}
	}
	if n := countText(v); n != "" && v.Target != "cpu" {
		parts = append(parts, n)
	}
	for _, x := range [][2]string{{"driver", v.Driver}, {"firmware", v.Firmware}, {"CUDA up to", v.CUDA}} {
		if x[1] != "" {
			parts = append(parts, x[0]+" "+x[1])
		}
	}
	for _, c := range f.Ascend.CANN {
		parts = append(parts, "CANN "+c.Version)
	}
	line := strings.Join(parts, ", ")
	if v.State != host.Known && v.State != host.NoDevice {
		line = v.State + ": " + line
	}
	return line
}

func chipText(v host.Verdict) string {
	title := ""
	if v.Title != "" {
		title = " (" + v.Title + ")"
	}
	switch {
	case v.SoC != "":
		return v.SoC + title
	case v.State == host.Refused:
		return or(v.SKU, v.Family) + title
	}
	return v.Family + title + ", SKU not known"
}

func countText(v host.Verdict) string {
	if v.Count == 0 {
		return ""
	}
	noun := "device"
	switch v.Vendor {
	case "huawei":
		noun = "NPU"
	case "nvidia":
		noun = "GPU"
	}
	if v.Count > 1 {
		noun += "s"
	}
	s := fmt.Sprintf("%d %s", v.Count, noun)
	if v.AtLeast {
		s = "at least " + s
	}
	if v.Chips > 0 {
		s += fmt.Sprintf(" with %d chips", v.Chips)
	}
	if v.Health.InUse > 0 {
		s += fmt.Sprintf(" (%d in use)", v.Health.InUse)
	}
	return s
}

// showVerdictNotes prints what a person should know beside the verdict.
func showVerdictNotes(w io.Writer, v host.Verdict, f host.Facts) {
	if f.Pasted && len(v.Recognised) > 0 {
		noteLines(w, "from", []string{strings.Join(v.Recognised, ", ")})
	}
	noteLines(w, "disagrees", v.Disagrees)
	noteLines(w, "health", v.Health.Notes)
	noteLines(w, "unknown", v.Unknown)
}

func noteLines(w io.Writer, name string, texts []string) {
	for _, t := range texts {
		fmt.Fprintf(w, "  %-10s %s\n", name, t)
		name = ""
	}
}

// Widths of the evidence table; the last column takes the rest.
const (
	askedWidth = 36
	saidWidth  = 40
)

func showEvidence(w io.Writer, v host.Verdict) {
	fmt.Fprintf(w, "%s  %s  %s\n", fit("source", askedWidth), fit("said", saidWidth), "so")
	for _, x := range v.Weighed {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%s  %s  %s", fit(sourceText(x), askedWidth), fit(x.Said, saidWidth), x.Role), " "))
	}
}

// sourceText is the command for a tool, and the source's name for everything else.
func sourceText(x host.Weight) string {
	if strings.Contains(x.Asked, "-smi") || x.Source == "--soc" || x.Source == "cann" {
		return x.Asked
	}
	return x.Source
}

// fit cuts or pads s to n characters.
func fit(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if k := utf8.RuneCountInString(s); k <= n {
		return s + strings.Repeat(" ", n-k)
	}
	return string([]rune(s)[:n-1]) + "…"
}
