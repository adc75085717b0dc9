package cuda

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/run"
)

// lastFile remembers the toolkit of the last build, for probe.
func lastFile(prefix string) string { return filepath.Join(Own(prefix), "last") }

// Remember keeps the home of the toolkit that a build took. It is best effort:
// without it probe looks for one as a build does.
func Remember(prefix, home string) {
	if os.MkdirAll(Own(prefix), 0o755) == nil {
		_ = os.WriteFile(lastFile(prefix), []byte(home+"\n"), 0o644)
	}
}

// Readers finds cuobjdump and nvdisasm, beside each other: of the last build,
// of what a build would take, or on PATH. They start nothing else and need no GPU.
func Readers(prefix string, py python.Python, env []string) (cuobjdump, nvdisasm string, ok bool) {
	var homes []string
	if b, err := os.ReadFile(lastFile(prefix)); err == nil {
		homes = append(homes, strings.TrimSpace(string(b)))
	}
	for _, p := range places(Options{Env: env, Python: py, Own: Own(prefix)}) {
		homes = append(homes, p.home)
	}
	own, _ := filepath.Glob(filepath.Join(escape(Own(prefix)), "*", "lib", "python3*", "site-packages", "nvidia", "cu[0-9]*"))
	for _, home := range append(homes, own...) {
		c, n := filepath.Join(home, "bin", "cuobjdump"), filepath.Join(home, "bin", "nvdisasm")
		if isFile(c) && isFile(n) {
			return c, n, true
		}
	}
	c, cerr := run.LookPath("cuobjdump", env)
	n, nerr := run.LookPath("nvdisasm", env)
	return c, n, cerr == nil && nerr == nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
