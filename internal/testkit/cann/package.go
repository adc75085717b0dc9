package cann

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
)

// A Variant is what is right or wrong with a run package.
type Variant string

// The variants. Only Correct is good.
const (
	Correct        Variant = ""
	BatchDependent Variant = "batch dependent" // mm splits its reduction by the number of rows
	MissingSymbol  Variant = "missing symbol"  // without aclnnReduceMeanBatchInvariant
	OtherSoC       Variant = "other soc"       // the name is of SoC, the kernels are of another
	WritesOutside  Variant = "writes outside"  // install.sh writes beside its target and into $HOME
	Truncated      Variant = "truncated"       // a download that stopped
	HTMLPage       Variant = "html page"       // what curl without --fail saves
	ExtraExports   Variant = "extra exports"   // takes over aclnnAdds of CANN
	FailsToInstall Variant = "fails to install"
	OtherMachine   Variant = "other machine"   // the name is of Arch, the libraries are of another
	OtherOps       Variant = "other operators" // as vllm-ascend's own package: none of the batch-invariant ones
)

// A Package says which run package to make. The zero value is the released one
// of version 1.0.0 for A2, by stock makeself.
type Package struct {
	SoC     string // "ascend910b", "ascend910_93", "ascend950"
	Version string // of the operators
	CANN    string // that it was compiled with
	Arch    string
	Vendor  string
	Variant Variant
	Patched bool   // Huawei's header: unknown options go to install.sh
	Bulk    int    // bytes of objects that nothing compresses, for the size of a real package
	Dir     string // folder to write to; empty is a new one
}

// devices are the names of the SoC families in package names.
var devices = map[string]string{"ascend910b": "910b", "ascend910_93": "A3", "ascend950": "950"}

// Name is the file name of the package as it is released.
func (p Package) Name() string {
	p.fill()
	return fmt.Sprintf("cann-ops-batch_invariant-%s-%s-linux.%s.run", devices[p.SoC], p.Version, p.Arch)
}

func (p *Package) fill() {
	for field, otherwise := range map[*string]string{&p.SoC: "ascend910b", &p.Version: "1.0.0", &p.CANN: "9.1.0", &p.Vendor: "batch_invariant", &p.Arch: Arch()} {
		if *field == "" {
			*field = otherwise
		}
	}
}

// RunPackage makes p and gives its path.
func RunPackage(t testing.TB, p Package) string {
	t.Helper()
	p.fill()
	if p.Dir == "" {
		p.Dir = t.TempDir()
	}
	out := filepath.Join(p.Dir, p.Name())
	if p.Variant == HTMLPage {
		write(t, out, errorPage, 0o644)
		return out
	}
	tree := t.TempDir()
	p.vendor(t, filepath.Join(tree, "packages", "vendors", p.Vendor))
	script, err := sources.ReadFile("src/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tree, "install.sh"), strings.NewReplacer("@VENDOR@", p.Vendor, "@EXTRA@", p.extra()).Replace(string(script)), 0o755)
	write(t, filepath.Join(tree, "help.info"), "  --install-path=DIR    Install to DIR, an absolute path\n  --install-for-all     Readable for every user\n  --quiet               Without questions\n", 0o644)
	p.makeself(t, tree, out)
	if p.Variant == Truncated {
		info, err := os.Stat(out)
		if err == nil {
			err = os.Truncate(out, info.Size()*2/3)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// extra is what install.sh does besides in this variant.
func (p Package) extra() string {
	switch p.Variant {
	case WritesOutside:
		return "echo 'export LOOKALIKE_ESCAPED=1' >>\"$HOME/.bashrc\"\necho escaped >\"$(dirname \"$to\")/escaped\""
	case FailsToInstall:
		return "stop 'copy new op_api files failed'"
	}
	return ""
}

// Operators are the operator types that the package has kernels of, with the
// folder that the runtime looks for: the type in snake case, "_" before digits.
var Operators = map[string]string{
	"MatMulV3BatchInvariant":                 "mat_mul_v_3_batch_invariant",
	"BatchMatMulV3BatchInvariant":            "batch_mat_mul_v_3_batch_invariant",
	"ReduceSumBatchInvariant":                "reduce_sum_batch_invariant",
	"ReduceMeanBatchInvariant":               "reduce_mean_batch_invariant",
	"LogSoftmaxV2BatchInvariant":             "log_softmax_v_2_batch_invariant",
	"FusedInferAttentionScoreBatchInvariant": "fused_infer_attention_score_batch_invariant",
}

// vendor writes vendors/NAME.
func (p Package) vendor(t testing.TB, dir string) {
	t.Helper()
	machine := p.Arch
	if p.Variant == OtherMachine {
		machine = map[string]string{"x86_64": "aarch64", "aarch64": "x86_64"}[p.Arch]
	}
	install(t, p.library().compiled(t, machine), filepath.Join(dir, "op_api", "lib", "libcust_opapi.so"))
	if p.Variant == OtherOps {
		Rename(t, filepath.Join(dir, "op_api", "lib", "libcust_opapi.so"), "BatchInvariant", "SomethingOther")
	}
	write(t, filepath.Join(dir, "op_api", "include", "aclnnop", "aclnn_mm_batch_invariant.h"),
		"#pragma once\n#include \"aclnn/acl_meta.h\"\naclnnStatus aclnnMmBatchInvariantGetWorkspaceSize(const aclTensor *, const aclTensor *, aclTensor *, uint64_t *, aclOpExecutor **);\n", 0o644)
	install(t, library{name: "libcust_opsproto_rt2.0.so"}.compiled(t, machine), filepath.Join(dir, "op_proto", "lib", "linux", p.Arch, "libcust_opsproto_rt2.0.so"))
	tbe := filepath.Join(dir, "op_impl", "ai_core", "tbe")
	tiling := filepath.Join("lib", "linux", p.Arch, "libcust_opmaster_rt2.0.so")
	install(t, library{name: "libcust_opmaster_rt2.0.so"}.compiled(t, machine), filepath.Join(tbe, "op_tiling", tiling))
	link(t, tiling, filepath.Join(tbe, "op_tiling", "liboptiling.so"))
	soc := p.SoC
	if p.Variant == OtherSoC {
		soc = map[string]string{"ascend910b": "ascend910_93", "ascend910_93": "ascend910b", "ascend950": "ascend910b"}[soc]
	}
	for op, folder := range Operators {
		p.kernel(t, filepath.Join(tbe, "kernel"), soc, op, folder)
		write(t, filepath.Join(tbe, p.Vendor+"_impl", "dynamic", folder+".py"), "# generated: "+op+"\n", 0o644)
	}
	p.bulk(t, filepath.Join(tbe, "kernel", soc, "bulk"))
	write(t, filepath.Join(dir, "version.info"), "custom_opp_compiler_version="+p.CANN+"\n", 0o644)
}

// bulk writes objects of 2 MB each, as the kernels of a release are many.
func (p Package) bulk(t testing.TB, dir string) {
	t.Helper()
	const each = 2 << 20
	random := rand.NewChaCha8([32]byte{})
	for n := 0; n*each < p.Bulk; n++ {
		b := make([]byte, min(each, p.Bulk-n*each))
		_, _ = random.Read(b)
		write(t, filepath.Join(dir, fmt.Sprintf("bulk_%d.o", n)), kernelObject("bulk")+string(b), 0o644)
	}
}

// kernel writes the object of one operator and what names it. Version 1.0.0 for
// A3 was released with one file named otherwise than the runtime looks for it.
func (p Package) kernel(t testing.TB, dir, soc, op, folder string) {
	t.Helper()
	base := op + "_0a1b2c3d4e5f"
	write(t, filepath.Join(dir, soc, folder, base+".o"), kernelObject(op), 0o644)
	write(t, filepath.Join(dir, soc, folder, base+".json"), fmt.Sprintf("{\"binFileName\": %q, \"kernelName\": %q, \"magic\": \"RT_DEV_BINARY_MAGIC_ELF\", \"supportInfo\": {\"deterministic\": \"true\"}}\n", base, base), 0o644)
	config := folder
	if p.SoC == "ascend910_93" && p.Version == "1.0.0" && op == "MatMulV3BatchInvariant" {
		config = "mat_mul_v3_batch_invariant"
	}
	path := soc + "/" + folder + "/" + base
	write(t, filepath.Join(dir, "config", soc, config+".json"), fmt.Sprintf("{\"binList\": [{\"staticKey\": \"0\", \"binInfo\": {\"jsonFilePath\": \"%s.json\"}}]}\n", path), 0o644)
}

// kernelObject is a relocatable ELF file without sections for a machine that is
// no CPU, which carries the operator's name.
func kernelObject(op string) string {
	const machine = 0x1029 // as compilers for these cores write it
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(b[16:], 1)
	binary.LittleEndian.PutUint16(b[18:], machine)
	binary.LittleEndian.PutUint32(b[20:], 1)
	binary.LittleEndian.PutUint16(b[52:], 64)
	binary.LittleEndian.PutUint16(b[58:], 64)
	return string(b) + op + "\x00"
}

// Rename gives symbols of a library another name of the same length: whoever
// looks for the old one does not find it, as in a library that has it not.
func Rename(t testing.TB, lib, symbol, to string) {
	t.Helper()
	b, err := os.ReadFile(lib)
	if err != nil {
		t.Fatal(err)
	}
	if len(symbol) != len(to) || !bytes.Contains(b, []byte(symbol)) {
		t.Fatalf("%s: %q cannot become %q", lib, symbol, to)
	}
	if err := os.WriteFile(lib, bytes.ReplaceAll(b, []byte(symbol), []byte(to)), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (p Package) library() library {
	l := library{name: "libcust_opapi.so", sources: []string{"custopapi.cpp"}, needs: []string{"libnnopbase.so"}, headers: true}
	l.flags = []string{fmt.Sprintf("-DVENDOR=%q", p.Vendor+" "+p.Version)}
	switch p.Variant {
	case BatchDependent:
		l.flags = append(l.flags, "-DBATCH_DEPENDENT")
	case MissingSymbol:
		l.flags = append(l.flags, "-DNO_REDUCE_MEAN")
	case ExtraExports:
		l.flags = append(l.flags, "-DBUILTINS")
	}
	return l
}

// header is where Debian's makeself keeps the script before an archive.
const header = "/usr/share/makeself/makeself-header.sh"

func (p Package) makeself(t testing.TB, tree, out string) {
	t.Helper()
	head := header
	if p.Patched {
		head = filepath.Join(t.TempDir(), "makeself-header.sh")
		write(t, head, patch(t), 0o644)
	}
	argv := []string{
		"makeself", "--header", head, "--help-header", filepath.Join(tree, "help.info"), "--tar-format", "posix",
		"--gzip", "--complevel", "4", "--nomd5", "--sha256", tree, out, "version:1.0", "./install.sh",
	}
	res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: argv, Dir: tree, Env: os.Environ()})
	if err != nil {
		t.Fatalf("%v\n%s%s", err, res.Stdout, res.Stderr)
	}
}

// patch makes of Debian's header one that does what Huawei's does: the name and
// folder of the file are kept, and an option that it does not know is the
// script's.
func patch(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, change := range [][2]string{
		{"targetdir=\"$archdirname\"\n", "targetdir=\"$archdirname\"\nname_of_file=\"\\$0 \"\npwd_of_file=\"\\$PWD\"\n"},
		{"\techo Unrecognized flag : \"\\$1\" >&2\n\tMS_Help\n\texit 1\n", "\tbreak\n"},
	} {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("%s: not once in it: %q", header, change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	return text
}

const errorPage = `<!DOCTYPE html>
<html><head><title>503 Service Unavailable</title></head>
<body><h1>Service Unavailable</h1><p>The object store is busy. Try again later.</p></body></html>
`

// InstallInto makes p and runs its install.sh with --install-path, as a user
// would, and gives the folder of the vendor.
func InstallInto(t testing.TB, dir string, p Package) string {
	t.Helper()
	p.fill()
	res, err := Run(t, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, "bash", RunPackage(t, p), "--", "--install-path="+dir)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, res.Stdout, res.Stderr)
	}
	return filepath.Join(dir, "vendors", p.Vendor)
}

// Install makes p and installs it into the opp folder of the tree, which writes
// config.ini, and gives the folder of the vendor.
func (c *Tree) Install(t testing.TB, p Package) string {
	t.Helper()
	p.fill()
	res, err := Run(t, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ASCEND_OPP_PATH=" + c.Opp}, "bash", RunPackage(t, p))
	if err != nil {
		t.Fatalf("%v\n%s%s", err, res.Stdout, res.Stderr)
	}
	return filepath.Join(c.Opp, "vendors", p.Vendor)
}
