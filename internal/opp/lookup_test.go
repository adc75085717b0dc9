package opp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/opp"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// TestLookup compares the rules here with what the real torch_npu does: which
// library it opens for aclnnMmBatchInvariant, or that it finds none.
func TestLookup(t *testing.T) {
	t.Parallel()
	py := testkit.Need(t, cann.Environment)
	site := cann.Site(t, cann.ExecExt)
	for _, c := range []struct {
		name    string
		config  string // of opp/vendors with the vendors A and B
		custom  string // ASCEND_CUSTOM_OPP_PATH, {} is the folder of vendors A and B
		damage  string // of A: "empty", "machine", "owner", "needs"
		problem string // that some candidate has
	}{
		{name: "listed", config: "load_priority=A\n"},
		{name: "second listed", config: "load_priority=B,A\n"},
		{name: "custom first", config: "load_priority=A\n", custom: "{}/B"},
		{name: "folder of vendors", custom: "{}", problem: "folder of all vendors"},
		{name: "blanks", config: "load_priority = A\n"},
		{name: "carriage return", config: "load_priority=A\r\n", problem: "carriage returns belong to the name"},
		{name: "cut file, the next serves", config: "load_priority=A,B\n", damage: "empty", problem: "not an ELF file"},
		{name: "other machine, the next serves", config: "load_priority=A,B\n", damage: "machine", problem: "is for"},
		{name: "other owner", config: "load_priority=A\n", damage: "owner", problem: "owner is user 1000"},
		{name: "not listed", config: "load_priority=C\n", problem: "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree := cann.New(t, cann.Options{})
			a := tree.Install(t, cann.Package{Vendor: "A"})
			tree.Install(t, cann.Package{Vendor: "B"})
			vendors := filepath.Dir(a)
			put(t, filepath.Join(vendors, "config.ini"), c.config)
			spoil(t, filepath.Join(a, opp.Library), c.damage)
			env := tree.Env("PYTHONPATH="+site, "ASCEND_CUSTOM_OPP_PATH="+strings.ReplaceAll(c.custom, "{}", vendors))
			got := opp.FromEnviron(env).Candidates()
			problems := ""
			for _, k := range got {
				problems += k.Problem + "; "
			}
			if !strings.Contains(problems, c.problem) {
				t.Errorf("problems %q, want %q", problems, c.problem)
			}
			want := opp.Resolve(got, opp.Pair("aclnnMmBatchInvariant")...)[0].Library
			res, err := cann.Run(t, env, py.Exe, "-c", `
import torch, torch_npu, batch_invariant_ops
x = torch.ones(2, 2).npu()
try:
    torch.ops.batch_invariant_ops.npu_mm_batch_invariant(x, x)
    print("used", [l.split()[-1] for l in open("/proc/self/maps") if "libcust_opapi" in l][-1])
except RuntimeError as e:
    print("failed", str(e).splitlines()[0])
`)
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, res.Stdout, res.Stderr)
			}
			text := string(res.Stdout)
			if want == "" && !strings.Contains(text, "failed aclnnMmBatchInvariant or aclnnMmBatchInvariantGetWorkspaceSize not in libopapi.so") ||
				want != "" && !strings.Contains(text, "used "+want+"\n") {
				t.Errorf("torch_npu: %s\nthe rules here: %q", text, want)
			}
		})
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func spoil(t *testing.T, lib, how string) {
	t.Helper()
	switch how {
	case "empty":
		put(t, lib, "")
	case "machine":
		b, err := os.ReadFile(lib)
		if err != nil {
			t.Fatal(err)
		}
		b[18] = 183 // e_machine EM_AARCH64
		put(t, lib, string(b))
	case "owner":
		if os.Getuid() != 0 {
			t.Skip("needs root to give a file away")
		}
		if err := os.Chown(lib, 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTakeover finds the operator of CANN that a package exports.
func TestTakeover(t *testing.T) {
	t.Parallel()
	tree := cann.New(t, cann.Options{})
	tree.Install(t, cann.Package{Variant: cann.ExtraExports})
	got := opp.FromEnviron(tree.Env()).Candidates()
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	if names := opp.Hijacked(got[0], got[1]); strings.Join(names, " ") != "aclnnAdds aclnnAddsGetWorkspaceSize" {
		t.Errorf("taken over: %v", names)
	}
	found := opp.Resolve(got, "aclnnAdds", "aclnnAdd")
	if found[0].Via != "config.ini" || len(found[0].Shadowed) != 1 || found[1].Via != "CANN" {
		t.Errorf("%+v", found)
	}
}

// TestPrepend puts vllm-ascend's own vendor first, as its workers have it.
func TestPrepend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, other := filepath.Join(dir, "own"), filepath.Join(dir, "other")
	tree := cann.New(t, cann.Options{})
	own = cann.InstallInto(t, own, cann.Package{})
	other = cann.InstallInto(t, other, cann.Package{Vendor: "custom_transformer", Variant: cann.MissingSymbol})
	e := opp.FromEnviron(tree.Env("ASCEND_CUSTOM_OPP_PATH=" + own)).Prepend(other)
	found := opp.Resolve(e.Candidates(), "aclnnMmBatchInvariant", "aclnnReduceMeanBatchInvariant")
	if !strings.HasPrefix(found[0].Library, other) || !strings.HasPrefix(found[1].Library, own) {
		t.Errorf("%+v", found)
	}
	if opp.Split(opp.Resolve(e.Candidates(), opp.Pair("aclnnMmBatchInvariant")...), "aclnnMmBatchInvariant") {
		t.Error("both functions are in one library")
	}
}
