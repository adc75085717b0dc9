package deployment

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/rootfs"
)

// Process reads a running process: its arguments and its whole environment.
func Process(root rootfs.Root, pid int) (Deployment, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	cmdline, err := root.ReadFile(dir + "/cmdline")
	if err != nil {
		return Deployment{}, fmt.Errorf("process %d: %w", pid, err)
	}
	d := Deployment{Where: fmt.Sprintf("process %d", pid), Env: map[string]string{}, Argv: strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")}
	environ, err := root.ReadFile(dir + "/environ")
	if err != nil {
		d.Problems = append(d.Problems, fmt.Sprintf("its environment cannot be read (%v): run this as its user or as root", err))
		return d, nil
	}
	for e := range strings.SplitSeq(string(environ), "\x00") {
		if name, value, ok := strings.Cut(e, "="); ok {
			d.Env[name] = value
		}
	}
	return d, nil
}
