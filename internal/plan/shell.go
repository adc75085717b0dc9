package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/run"
)

// WriteShell prints p as a POSIX shell script that makes the same artifacts in
// ./dist of a new folder. It installs nothing: that is a transaction, and
// `invar build` is the command for it.
func WriteShell(w io.Writer, p Plan) error {
	if p.Release != nil {
		return writeReleased(w, p)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# Makes the %s run package and wheel by hand: sh build.sh [FOLDER]\n", p.Target)
	b.WriteString("# Needs the invar that printed it on PATH, or named in INVAR.\nset -eu\n")
	b.WriteString("invar=${INVAR:-invar}\nwork=${1:-$(mktemp -d)}\nmkdir -p \"$work\"\ncd \"$work\"\n")
	b.WriteString("\"$invar\" targets --sources src\n")
	var dirs []string
	for _, s := range p.Steps {
		for _, o := range s.Outputs {
			d := path.Dir(o)
			if o == "dist" {
				d = o
			}
			if !path.IsAbs(d) && !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	fmt.Fprintf(&b, "mkdir -p %s\n", strings.Join(dirs, " "))
	for _, s := range p.Steps {
		if err := shellStep(&b, p, s); err != nil {
			return err
		}
	}
	b.WriteString("sha256sum dist/*\necho \"$work/dist\"\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func shellStep(b *strings.Builder, p Plan, s Step) error {
	switch s.Kind {
	case Env:
		for _, argv := range p.Recipe.Commands(p.Recipe.Index) {
			fmt.Fprintln(b, run.Cmd{Argv: argv}.String())
		}
	case Toolkit:
		for _, argv := range p.CUDA.Recipe.Commands() {
			fmt.Fprintln(b, run.Cmd{Argv: argv}.String())
		}
	case Run:
		fmt.Fprintf(b, "env -i PATH=\"$PATH\" %s %s\n", strings.Join(s.Env, " "), run.Cmd{Argv: s.Argv}.String())
	case Pack, Wheel, Prove:
		spec, err := json.MarshalIndent(s.Spec, "", "  ")
		if err != nil {
			return err
		}
		verb := map[Kind]string{Pack: "pack", Wheel: "wheel", Prove: "prove"}[s.Kind]
		out := map[bool]string{true: s.Outputs[0], false: "dist"}[s.Kind == Prove]
		fmt.Fprintf(b, "cat >%s.json <<'END_OF_SPEC'\n%s\nEND_OF_SPEC\n", verb, spec)
		fmt.Fprintf(b, "\"$invar\" package %s --spec %s.json --out %s\n", verb, verb, out)
	}
	return nil
}
