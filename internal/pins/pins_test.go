package pins

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

var (
	aa = strings.Repeat("aa", 32)
	bb = strings.Repeat("bb", 32)
	cc = strings.Repeat("cc", 32)
)

// Every target whose stage 1 is a released package has sources, and no other.
func TestEveryPackagedTargetHasSources(t *testing.T) {
	t.Parallel()
	all, err := target.All()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, x := range all {
		s, ok, err := Of(x.Name)
		if err != nil {
			t.Error(err)
		}
		if want := x.Stage1.From == "package"; ok != want {
			t.Errorf("%s: sources %v, want %v", x.Name, ok, want)
		}
		if !ok {
			continue
		}
		n++
		for _, arch := range x.Arches {
			name := s.PackageName(s.Default, arch)
			if strings.Contains(name, "{") || !strings.HasPrefix(name, x.Stage1.Package) || !strings.HasSuffix(name, arch+".run") {
				t.Errorf("%s: %s", x.Name, name)
			}
		}
	}
	if n == 0 {
		t.Error("no packaged target")
	}
}

func TestDecodeIsStrict(t *testing.T) {
	t.Parallel()
	good := `token: x
package: p
extension: e
vendors: [v]
kernels: [k]
addresses: [{url: "https://h/d/", source: s}]
versions: [{version: "1", source: s}]
default: "1"
contents: [{name: p, sha256: ` + aa + `, size: 1, source: s}]
`
	if _, err := Decode("f", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"https://h/d/", "http://h/d/"},
		{"https://h/d/", "https://h/d"},
		{`default: "1"`, `default: "2"`},
		{aa, "AA"},
		{"token: x", "token: \"\""},
		{"kernels: [k]", "kernels: []"},
		{"token: x", "token: x\nextra: 1"},
	} {
		if _, err := Decode("f", []byte(strings.Replace(good, change[0], change[1], 1))); err == nil {
			t.Errorf("%s instead of %s was taken", change[1], change[0])
		}
	}
}

func TestLockIsSortedAndComesBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), LockName)
	l, err := ReadLock(file)
	if err != nil || len(l.Files) != 0 {
		t.Fatalf("got %+v, %v", l, err)
	}
	for _, f := range []Locked{{"b", aa, 1, "https://h/b"}, {"a", bb, 2, "/x: y"}, {"b", aa, 1, "again"}, {"a", aa, 2, "#1"}} {
		l, _ = l.Add(f)
	}
	if err := l.Write(file); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLock(file)
	if err != nil {
		b, _ := os.ReadFile(file)
		t.Fatalf("%v\n%s", err, b)
	}
	want := []Locked{{"a", aa, 2, "#1"}, {"a", bb, 2, "/x: y"}, {"b", aa, 1, "https://h/b"}}
	if len(got.Files) != len(want) {
		t.Fatalf("got %+v", got.Files)
	}
	for i, w := range want {
		if got.Files[i] != w {
			t.Errorf("%d: got %+v, want %+v", i, got.Files[i], w)
		}
	}
	before, _ := os.ReadFile(file)
	if err := got.Write(file); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Error("written again it is another file")
	}
}

func TestLockIsStrict(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"unsorted":    "schema: 1\nfiles: [{name: b, sha256: " + aa + ", size: 1, from: x}, {name: a, sha256: " + aa + ", size: 1, from: x}]\n",
		"twice":       "schema: 1\nfiles: [{name: a, sha256: " + aa + ", size: 1, from: x}, {name: a, sha256: " + aa + ", size: 1, from: x}]\n",
		"upper case":  "schema: 1\nfiles: [{name: a, sha256: " + strings.ToUpper(aa) + ", size: 1, from: x}]\n",
		"unknown key": "schema: 1\nfiles: []\nmore: 1\n",
		"a path":      "schema: 1\nfiles: [{name: ../a, sha256: " + aa + ", size: 1, from: x}]\n",
		"schema":      "schema: 2\nfiles: []\n",
		"a conflict":  "<<<<<<< HEAD\nschema: 1\n=======\n",
	} {
		file := filepath.Join(t.TempDir(), LockName)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLock(file); report.ExitCode(err) != report.Usage {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	src := Sources{Contents: []Content{{Name: "known", SHA256: aa, Size: 5}}}
	lock := Lock{Files: []Locked{{Name: "locked", SHA256: bb, Size: 7}}}
	for _, tc := range []struct {
		name string
		t    Trust
		file string
		pins string
	}{
		{"published", Trust{Sources: src}, "known", aa},
		{"the lock beats what is published", Trust{Sources: src, Lock: Lock{Files: []Locked{{Name: "known", SHA256: bb}}}}, "known", bb},
		{"accepted now comes first", Trust{Sources: src, Accepted: []string{cc}}, "known", cc + " " + aa},
		{"nobody knows it", Trust{Sources: src, Lock: lock}, "new", ""},
		{"one is accepted", Trust{Accepted: []string{cc}}, "new", cc},
		{"two are accepted: either may be it", Trust{Accepted: []string{cc, bb}}, "new", ""},
	} {
		if got := strings.Join(tc.t.Pins(tc.file), " "); got != tc.pins {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.pins)
		}
	}
	all := Trust{Sources: src, Lock: lock, Accepted: []string{cc}}
	for sum, want := range map[string]bool{aa: false, bb: false, cc: true} {
		if fresh, err := all.Check("any name", sum, "x"); err != nil || fresh != want {
			t.Errorf("%.4s: got %v, %v", sum, fresh, err)
		}
	}
	_, err := all.Check("x.run", strings.Repeat("dd", 32), "https://h")
	if report.ExitCode(err) != report.Unmet || !strings.Contains(problem(err).Hint, "--accept-digest sha256:dddd") {
		t.Errorf("unknown content: got %v", err)
	}
}

func TestParseDigest(t *testing.T) {
	t.Parallel()
	if got, err := ParseDigest("sha256:" + strings.ToUpper(aa)); err != nil || got != aa {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{aa, "sha256:" + aa[1:], "sha512:" + aa, "", "sha256:" + aa + "0"} {
		if _, err := ParseDigest(bad); report.ExitCode(err) != report.Usage {
			t.Errorf("%q was taken", bad)
		}
	}
}

// problem is err as one, empty when it is none.
func problem(err error) *report.Problem {
	if p, ok := errors.AsType[*report.Problem](err); ok {
		return p
	}
	return &report.Problem{}
}
