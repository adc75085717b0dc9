package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/host"
	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
)

// recordFolder makes the folder of --record before anything is probed: what took
// minutes must not be lost for a name.
func recordFolder(c *cli.Context) (string, error) {
	dir := c.String("record")
	if dir == "" {
		return "", nil
	}
	dir = absolute(dir)
	if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
		return "", report.Usagef("--record %s is there already", dir).WithWant("a new folder", "one that exists").WithHint("name another, or remove it")
	} else if err != nil {
		return "", report.Usagef("--record: %w", err)
	}
	return dir, nil
}

// record writes what a probe found and what the host says, for people elsewhere
// to read: probe.json and a recording that invar detect --replay takes.
func record(c *cli.Context, s invar.Session, dir string, res probe.Result) error {
	facts, err := host.Detect(c.Context, host.Options{Root: "/", Runner: s.Runner, Env: s.Env})
	if err != nil {
		return err
	}
	if err := host.Record(filepath.Join(dir, "host"), facts); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	b, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return err
	}
	text := impersonal(string(b))
	if err := writeFile("--record", filepath.Join(dir, "probe.json"), func(w io.Writer) error {
		_, err := io.WriteString(w, text+"\n")
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(c.App.ErrWriter, "recorded in %s: read it, then send the folder\n", dir)
	return nil
}

// impersonal replaces the home folder and the host's name, which paths and
// messages carry.
func impersonal(text string) string {
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		text = strings.ReplaceAll(text, home, "~")
	}
	if name, err := os.Hostname(); err == nil && len(name) > 3 {
		text = strings.ReplaceAll(text, name, "HOST")
	}
	return text
}
