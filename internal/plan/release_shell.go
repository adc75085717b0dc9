package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/invar-ops/invar/internal/run"
)

// writeReleased prints what brings both artifacts of a release into ./dist by
// hand. Like every such script it installs nothing.
func writeReleased(w io.Writer, p Plan) error {
	r, py := *p.Release, run.Quote(p.Python.Exe)
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/bash\n# Brings the %s run package and wheel by hand: bash build.sh [FOLDER]\nset -eu\n", p.Target)
	b.WriteString("work=${1:-$(mktemp -d)}\nmkdir -p \"$work/dist\"\ncd \"$work\"\nset +u\n")
	fmt.Fprintf(&b, ". %s\n", run.Quote(r.CANN.SetEnv))
	if r.CANN.ATB != "" {
		fmt.Fprintf(&b, ". %s --cxx_abi=1\n", run.Quote(r.CANN.ATB))
	}
	b.WriteString("set -u\n")
	if r.CANN.Driver == "" {
		fmt.Fprintf(&b, "export TORCH_DEVICE_BACKEND_AUTOLOAD=0 LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH\":%s\n", run.Quote(r.CANN.Devlib))
	}
	if r.Ops.Tree != "" {
		argv := r.buildOps()
		argv[1] = "build.sh"
		fmt.Fprintf(&b, "cp -R %s ops\n(cd ops && %s)\ncp ops/build*/*.run dist/\n", run.Quote(r.Ops.Tree), run.Cmd{Argv: argv}.String())
	} else {
		r.Ops.shell(&b)
	}
	if r.Extension.Tree != "" {
		fmt.Fprintf(&b, "cp -R %s src\n", run.Quote(r.Extension.Tree))
	} else {
		r.Extension.shell(&b)
		fmt.Fprintf(&b, "%s -m zipfile -e %s src\nrm %s\n", py, run.Quote("dist/"+r.Extension.Name), run.Quote("dist/"+r.Extension.Name))
	}
	b.WriteString("project=$(dirname \"$(find src -name setup.py -o -name pyproject.toml | head -n 1)\")\n")
	fmt.Fprintf(&b, "cd \"$project\"\nif [ -f setup.py ]; then %[1]s setup.py -q bdist_wheel -d \"$work/dist\"\n"+
		"else %[1]s -m pip wheel --no-deps --no-build-isolation -w \"$work/dist\" .; fi\ncd \"$work\"\nsha256sum dist/*\necho \"$work/dist\"\n", py)
	_, err := io.WriteString(w, b.String())
	return err
}

// shell brings one file into dist and checks its content where it is known.
func (o Origin) shell(b *strings.Builder) {
	argv := o.byHand()
	if len(argv) == 0 {
		fmt.Fprintf(b, "# put %s into dist\n", o.Name)
		return
	}
	if argv[0] == "cp" {
		argv[len(argv)-1] = "dist/"
		fmt.Fprintln(b, run.Cmd{Argv: argv}.String())
	} else {
		fmt.Fprintf(b, "(cd dist && %s)\n", run.Cmd{Argv: argv}.String())
	}
	if len(o.Pins) == 1 {
		fmt.Fprintf(b, "echo '%s  '%s | sha256sum --check\n", o.Pins[0], run.Quote("dist/"+o.Name))
	}
}
