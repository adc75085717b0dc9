package cann

import (
	"embed"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// answers are outputs of real tools, one file for each list of arguments, with
// "_" for blanks. a2, a3 and 950 are one machine each.
//
//go:embed all:npusmi
var answers embed.FS

// NpuSmi writes an npu-smi into dir that answers as the named machine ("a2",
// "a3", "950") was recorded to. It ends with 255 for what was not recorded.
func NpuSmi(t testing.TB, dir, machine string) string {
	t.Helper()
	entries, err := answers.ReadDir(path.Join("npusmi", machine))
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "."+machine)
	for _, e := range entries {
		b, err := answers.ReadFile(path.Join("npusmi", machine, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(kept, e.Name()), string(b), 0o644)
	}
	out := filepath.Join(dir, "npu-smi")
	write(t, out, strings.ReplaceAll(`#!/bin/sh
name=$(echo "$*" | tr ' ' '_')
if [ ! -f "DIR/$name.txt" ]; then
	echo "Command or option is not found."
	exit 255
fi
cat "DIR/$name.txt"
`, "DIR", kept), 0o755)
	return out
}
