package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

const referenceDir = "../../docs/reference"

// TestReference keeps docs/reference equal to the commands; -update rewrites it.
func TestReference(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	var index strings.Builder
	index.WriteString("# Commands\n\nWritten from the program by `mage docs`. Exit codes are in the README.\n\n")
	var walk func(parent string, cmds []*cli.Command)
	walk = func(parent string, cmds []*cli.Command) {
		for _, c := range cmds {
			name := strings.TrimSpace(parent + " " + c.Name)
			page := "invar_" + strings.ReplaceAll(name, " ", "_") + ".md"
			pages[page] = referencePage(name, c)
			index.WriteString("- [invar " + name + "](" + page + "): " + c.Usage + "\n")
			walk(name, c.Subcommands)
		}
	}
	walk("", newApp().Commands)
	pages["README.md"] = index.String()
	if *update {
		if err := os.RemoveAll(referenceDir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(referenceDir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range pages {
		path := filepath.Join(referenceDir, name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what the commands say (%v): run mage docs", path, err)
		}
	}
	files, _ := filepath.Glob(referenceDir + "/*")
	if len(files) != len(pages) {
		t.Errorf("%d pages, want %d: run mage docs", len(files), len(pages))
	}
}

func referencePage(name string, c *cli.Command) string {
	var b bytes.Buffer
	b.WriteString("# invar " + name + "\n\n" + c.Usage + "\n")
	if c.Description != "" {
		b.WriteString("\n" + c.Description + "\n")
	}
	if c.UsageText != "" {
		b.WriteString("\n```\n" + c.UsageText + "\n```\n")
	}
	rows := ""
	for _, f := range c.VisibleFlags() {
		d, ok := f.(cli.DocGenerationFlag)
		if !ok || f.Names()[0] == "help" {
			continue
		}
		var names []string
		for _, n := range f.Names() {
			names = append(names, "`"+strings.Repeat("-", min(2, len(n)))+n+"`")
		}
		env := strings.Join(d.GetEnvVars(), ", ")
		rows += "| " + strings.Join(names, ", ") + " | " + strings.ReplaceAll(d.GetUsage(), "|", "\\|") + " | " + env + " |\n"
	}
	if rows != "" {
		b.WriteString("\n| flag | meaning | environment |\n| --- | --- | --- |\n" + rows)
	}
	return b.String()
}
