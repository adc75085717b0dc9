package doctor

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/libc"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/toolchain"
)

// defaultPath is where programs are looked for below a root that is not running.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// gatherer carries what every reader needs.
type gatherer struct {
	root rootfs.Root
	env  map[string]string
	o    Options
	d    *Data
	t    target.Target
}

// Gather reads the facts that Judge needs for t. It fails only when the root
// cannot be read at all, when --python names nothing, or when ctx ends; what
// else cannot be read is left unknown.
func Gather(ctx context.Context, t target.Target, d *Data, o Options) (Facts, error) {
	root, err := rootfs.Open(orText(o.Root, "/"))
	if err != nil {
		return Facts{}, report.Usagef("--root: %w", err)
	}
	g := &gatherer{root: root, o: o, d: d, t: t, env: map[string]string{}}
	env := o.RootEnv
	if root.Live() {
		env = o.Env
	}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		g.env[k] = v
	}
	f := Facts{Root: orText(o.Root, "/"), Live: root.Live(), EnvKnown: root.Live() || o.RootEnv != nil, HeldEnv: g.env, SoCs: o.SoCs}
	f.System, f.Arch = g.system(), g.arch()
	f.Tools = g.tools("sh", "tar", "gzip", "uv", "ninja", "git", "make", "cmake", "pip", "pip3", "nvcc", "npu-smi", "nvidia-smi")
	f.Headers = g.headers()
	f.Compiler = g.compiler(ctx)
	if f.Python, err = g.python(ctx); err != nil {
		return f, err
	}
	g.ascend(&f)
	g.cuda(&f)
	g.limits(&f)
	g.container(&f)
	f.Scripts = g.scripts(ctx)
	f.CABundles = g.caBundles()
	f.Named, f.LibraryDirs = g.named(), g.libstdcxxDirs()
	f.Shell = strings.Split(g.env["SHELLOPTS"], ":")
	return f, ctx.Err()
}

func (g *gatherer) path() string {
	if g.root.Live() {
		return g.env["PATH"]
	}
	return orText(g.env["PATH"], defaultPath)
}

// look finds a program on the PATH of the root.
func (g *gatherer) look(name string) string {
	for dir := range strings.SplitSeq(g.path(), ":") {
		if !path.IsAbs(dir) {
			continue
		}
		p := path.Join(dir, name)
		if st, err := g.root.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}

func (g *gatherer) tools(names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		if p := g.look(n); p != "" {
			out[n] = p
		}
	}
	return out
}

// headers looks for one header of the C library, where compilers look.
func (g *gatherer) headers() map[string]string {
	out := map[string]string{}
	for _, dir := range []string{"/usr/include", "/usr/local/include"} {
		if g.root.IsFile(dir + "/stdio.h") {
			out["stdio.h"] = dir + "/stdio.h"
			break
		}
	}
	return out
}

func (g *gatherer) system() System {
	s := System{}
	for _, p := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		b, err := g.root.ReadFile(p)
		if err != nil {
			continue
		}
		kv := assignments(b)
		s.ID, s.Name = strings.ToLower(kv["ID"]), orText(kv["PRETTY_NAME"], kv["NAME"])
		s.Like = strings.Fields(strings.ToLower(kv["ID_LIKE"]))
		break
	}
	g.libc(&s)
	return s
}

// assignments reads the KEY=VALUE lines of os-release and the like.
func assignments(b []byte) map[string]string {
	out := map[string]string{}
	for line := range bytes.Lines(b) {
		k, v, ok := strings.Cut(strings.TrimSpace(string(line)), "=")
		if ok && !strings.HasPrefix(k, "#") {
			out[k] = strings.Trim(v, `"'`)
		}
	}
	return out
}

var glibcxxRE = regexp.MustCompile(`GLIBCXX_3\.4\.(\d+)`)

func (g *gatherer) libc(s *System) {
	if l, ok := libc.Find(g.root); ok {
		s.Libc = l.Kind
		if l.Kind == "glibc" {
			s.Glibc, s.LibcFile = l.Version, l.File
		}
	}
	for _, dir := range libc.Folders {
		for _, p := range g.root.Glob(dir + "/libstdc++.so.6") {
			if b, err := g.root.ReadFile(p); err == nil {
				s.GLIBCXX = newest("", glibcxxRE.FindAllSubmatch(b, -1))
			}
			if s.GLIBCXX != "" {
				return
			}
		}
	}
}

func newest(have string, found [][][]byte) string {
	best := 0
	for _, m := range found {
		best = max(best, atoi(string(m[1])))
	}
	if best == 0 {
		return have
	}
	return "3.4." + itoa(best)
}

// arch is the architecture below the root: that of its C library or shell when
// it is another root, since an image may be for another machine.
func (g *gatherer) arch() string {
	if g.root.Live() {
		return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	}
	return libc.Arch(g.root)
}

// compiler is what a build would take: asked when the root runs, else read from
// the names and folders that the packages lay down.
func (g *gatherer) compiler(ctx context.Context) Compiler {
	if g.root.Live() {
		c, reasons := toolchain.Find(ctx, g.o.Env, g.o.Runner, "")
		if c.Path != "" {
			return Compiler{Path: c.Path, Vendor: c.Vendor, Version: c.Version, How: "asked"}
		}
		var why []string
		for _, r := range reasons {
			why = append(why, r.Command+": "+r.Reason)
		}
		return Compiler{Reason: strings.Join(why, "; ")}
	}
	for _, name := range toolchain.Names {
		if p := g.look(name); p != "" {
			return g.readCompiler(p)
		}
	}
	return Compiler{Reason: strings.Join(toolchain.Names, ", ") + ": not found on PATH"}
}

var compilerRE = regexp.MustCompile(`(clang|g)\+\+(?:-(\d+(?:\.\d+)*))?$|(clang)-(\d+(?:\.\d+)*)$`)

// readCompiler follows /usr/bin/g++ -> g++-12 -> x86_64-linux-gnu-g++-12; where
// the name has no number, the folder of the compiler's own files has.
func (g *gatherer) readCompiler(p string) Compiler {
	real, _ := g.root.Resolve(p)
	c := Compiler{Path: p, Vendor: "gcc", How: real}
	if m := compilerRE.FindStringSubmatch(path.Base(real)); m != nil {
		c.Version = orText(m[2], m[4])
		if m[1] == "clang" || m[3] == "clang" {
			c.Vendor = "clang"
		}
	}
	folders := map[string][]string{
		"gcc":   {"/usr/lib/gcc/*/[0-9]*", "/usr/lib64/gcc/*/[0-9]*", "/usr/local/lib/gcc/*/[0-9]*"},
		"clang": {"/usr/lib/clang/[0-9]*", "/usr/lib/llvm-*/lib/clang/[0-9]*", "/usr/lib64/clang/[0-9]*"},
	}
	for _, pattern := range folders[c.Vendor] {
		for _, dir := range g.root.Glob(pattern) {
			v := path.Base(dir)
			if c.Version == "" || strings.HasPrefix(v, c.Version) {
				c.Version, c.How = v, dir
			}
		}
	}
	return c
}

// caBundles are the files that TLS clients of distributions read.
func (g *gatherer) caBundles() []string {
	var out []string
	for _, p := range []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if st, err := g.root.Stat(p); err == nil && st.Size() > 0 {
			out = append(out, p)
		}
	}
	return out
}

// named follows the paths that the environment mentions.
func (g *gatherer) named() map[string]Target {
	out := map[string]Target{}
	for _, name := range slices.Concat(cannVariables, caVariables, []string{"CUDA_HOME", "CUDA_PATH"}) {
		if v := g.env[name]; v != "" {
			out[name] = g.leads(v)
		}
	}
	for _, name := range []string{"LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "ASCEND_OPP_PATH"} {
		for _, p := range paths(g.env[name]) {
			if m := treeOf.FindStringSubmatch(p); m != nil {
				out[m[1]] = g.leads(m[1])
			}
		}
	}
	return out
}

func (g *gatherer) leads(p string) Target {
	real, err := g.root.Resolve(p)
	if err != nil {
		return Target{Missing: true}
	}
	t := Target{Real: real}
	switch st, err := g.root.Stat(real); {
	case err != nil:
		t.Missing = true
	case st.IsDir():
		t.Empty = len(g.root.ReadDir(real)) == 0
	default:
		t.Empty = st.Size() == 0
	}
	return t
}

func (g *gatherer) libstdcxxDirs() map[string]string {
	out := map[string]string{}
	for _, dir := range paths(g.env["LD_LIBRARY_PATH"]) {
		if b, err := g.root.ReadFile(dir + "/libstdc++.so.6"); err == nil {
			out[dir] = newest("", glibcxxRE.FindAllSubmatch(b, -1))
		}
	}
	return out
}

// show turns a path on this machine into one below the root.
func (g *gatherer) show(host string) string {
	if g.root.Live() {
		return host
	}
	rel, err := filepath.Rel(g.root.Dir(), host)
	if err != nil || strings.HasPrefix(rel, "..") {
		return host
	}
	return "/" + rel
}

// homeOf is the invar home that a build would use, for its own environments.
func (g *gatherer) homeOf() string {
	if !g.root.Live() || g.o.Prefix == "" {
		return "/nonexistent"
	}
	if abs, err := filepath.Abs(g.o.Prefix); err == nil {
		return abs
	}
	return g.o.Prefix
}

func hostExists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}
