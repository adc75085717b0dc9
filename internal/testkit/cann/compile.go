package cann

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

//go:embed all:src
var sources embed.FS

// A library is one compile and link of the look-alike.
type library struct {
	name    string
	sources []string // in src; none makes an empty library
	flags   []string
	needs   []string // names of libraries to link to
	headers bool     // includes acl.h
}

// libraries are those that libtorch_npu.so needs, in the order of their links.
var libraries = []library{
	{name: "libascend_hal.so", sources: []string{"hal.c"}},
	{name: "libascendcl.so", sources: []string{"ascendcl.cpp", "rest.c"}, needs: []string{"libascend_hal.so"}, headers: true},
	{name: "libacl_op_compiler.so", sources: []string{"opcompiler.cpp"}, headers: true},
	{name: "libhccl.so", sources: []string{"hccl.c"}},
	{name: "libge_runner.so"},
	{name: "libgraph.so"},
	{name: "libacl_tdt_channel.so"},
	{name: "libnnopbase.so", sources: []string{"nnopbase.cpp"}, headers: true},
	{name: "libopapi.so", sources: []string{"opapi.cpp"}, needs: []string{"libnnopbase.so"}, headers: true},
}

// devlib is the driver's library for machines that only build.
var devlib = library{name: "libascend_hal.so", sources: []string{"hal.c"}, flags: []string{"-DDEVLIB"}}

// compiler is the C++ compiler for arch.
func compiler(arch string) string {
	if arch == Arch() {
		return "g++"
	}
	return arch + "-linux-gnu-g++"
}

// Arch is this machine's architecture as uname -m says it.
func Arch() string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
}

// include is the folder of torch_npu's headers, which hold acl.h.
func include(t testing.TB) string {
	t.Helper()
	py := testkit.Need(t, Environment)
	return filepath.Join(py.Purelib, "torch_npu", "include")
}

// compiled gives the path of l for arch, compiled once into the CI cache: the
// folder's name is the digest of everything that goes in.
func (l library) compiled(t testing.TB, arch string) string {
	t.Helper()
	notShort(t)
	dir := filepath.Join(testkit.Cache(), "look-alike", l.digest(t, arch))
	out := filepath.Join(dir, l.name)
	if _, err := os.Stat(out); err == nil {
		return out
	}
	work := t.TempDir()
	unpack(t, work)
	argv := append([]string{compiler(arch), "-shared", "-fPIC", "-O2", "-Wall", "-Wl,-soname," + l.name, "-o", "made.so"}, l.flags...)
	if l.headers {
		argv = append(argv, "-isystem", include(t), "-isystem", filepath.Join(include(t), "third_party", "acl", "inc"))
	}
	for _, s := range l.sources {
		// g++ takes a .c file for C++ too, where these names would be mangled.
		if strings.HasSuffix(s, ".c") {
			argv = append(argv, "-x", "c", s, "-x", "none")
		} else {
			argv = append(argv, s)
		}
	}
	if len(l.sources) == 0 {
		argv = append(argv, "-x", "c", "/dev/null", "-x", "none")
	}
	argv = append(argv, "-Wl,--no-as-needed")
	for _, n := range l.needs {
		argv = append(argv, find(n).compiled(t, arch))
	}
	res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: argv, Dir: work, Env: os.Environ()})
	if err != nil {
		t.Fatalf("look-alike CANN: %s: %v\n%s", l.name, err, res.Stderr)
	}
	// Another test may make the same at this moment: the last rename wins.
	part := filepath.Join(dir, filepath.Base(filepath.Dir(work))+"-"+filepath.Base(work)+".part")
	install(t, filepath.Join(work, "made.so"), part)
	if err := os.Rename(part, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func find(name string) library {
	for _, l := range libraries {
		if l.name == name {
			return l
		}
	}
	panic("look-alike CANN has no " + name)
}

// digest is over the sources, the command and what stands behind the headers.
func (l library) digest(t testing.TB, arch string) string {
	t.Helper()
	h := sha256.New()
	fmt.Fprintln(h, compiler(arch), l.name, l.sources, l.flags, l.needs)
	if l.headers {
		fmt.Fprintln(h, include(t))
	}
	err := fs.WalkDir(sources, "src", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := sources.ReadFile(p)
		fmt.Fprintf(h, "%s %d\n%s", p, len(b), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range l.needs {
		fmt.Fprintln(h, find(n).digest(t, arch))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// notShort skips what compiles and runs the look-alike.
func notShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("the look-alike of CANN is left out of short runs")
	}
}

// unpack writes the sources into dir.
func unpack(t testing.TB, dir string) {
	t.Helper()
	entries, err := sources.ReadDir("src")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		b, err := sources.ReadFile(path.Join("src", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, e.Name()), string(b), 0o644)
	}
}

// write makes a file and the folders above it.
func write(t testing.TB, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

// install copies a file: a link would let a test write into the cache.
func install(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(b), 0o755)
}
