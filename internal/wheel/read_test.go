package wheel

import (
	"archive/zip"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rawMember is a member of a wheel as it comes from elsewhere.
type rawMember struct {
	name, text string
	mode       fs.FileMode
	unlisted   bool   // not in RECORD
	record     string // digest in RECORD instead of the right one
}

const rawInfo = "x-1.dist-info/"

// rawWheel writes members and the usual metadata without any check.
func rawWheel(t testing.TB, name string, members ...rawMember) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	add := func(name, text string, mode fs.FileMode) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if mode == 0 {
			mode = 0o644
		}
		h.SetMode(mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	usual := []rawMember{
		{name: rawInfo + "METADATA", text: "Metadata-Version: 2.1\nName: X\nVersion: 1\n\nName: body\n"},
		{name: rawInfo + "WHEEL", text: "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	var entries []Entry
	for _, m := range append(members, usual...) {
		add(m.name, m.text, m.mode)
		sum := sha256.Sum256([]byte(m.text))
		e := Entry{m.name, digestText(sum[:]), int64(len(m.text))}
		if m.record != "" {
			e.Digest = m.record
		}
		if !m.unlisted {
			entries = append(entries, e)
		}
	}
	add(rawInfo+"RECORD", string(formatRecord(entries, rawInfo+"RECORD")), 0)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	ok := rawMember{name: "x/__init__.py", text: "a = 1\n"}
	for _, tc := range []struct {
		name, file string
		members    []rawMember
		want       string // "" opens and extracts
	}{
		{"good", "X-1-py3-none-any.whl", []rawMember{ok}, ""},
		{"store object without the name", "0123", []rawMember{ok}, ""},
		{"libraries of a data folder", "x-1-py3-none-any.whl", []rawMember{ok, {name: "x-1.data/platlib/x/lib.so", text: "so"}}, ""},
		{"parent folder", "x-1-py3-none-any.whl", []rawMember{{name: "../x.py"}}, "plain relative path|leaves"},
		{"parent folder inside", "x-1-py3-none-any.whl", []rawMember{{name: "x/../../y.py"}}, "plain relative path"},
		{"absolute", "x-1-py3-none-any.whl", []rawMember{{name: "/etc/x.py"}}, "absolute"},
		{"backslash", "x-1-py3-none-any.whl", []rawMember{{name: `x\y.py`}}, "backslash"},
		{"dot", "x-1-py3-none-any.whl", []rawMember{{name: "./x.py"}}, "plain relative path"},
		{"link", "x-1-py3-none-any.whl", []rawMember{{name: "x/l", text: "/etc/passwd", mode: fs.ModeSymlink | 0o777}}, "plain file"},
		{"device", "x-1-py3-none-any.whl", []rawMember{{name: "x/d", mode: fs.ModeDevice | 0o644}}, "plain file"},
		{"set-uid", "x-1-py3-none-any.whl", []rawMember{{name: "x/s", text: "s", mode: fs.ModeSetuid | 0o755}}, "set-uid"},
		{"twice", "x-1-py3-none-any.whl", []rawMember{ok, ok}, "twice"},
		{"file and folder", "x-1-py3-none-any.whl", []rawMember{{name: "x", text: "f"}, ok}, "file and a folder"},
		{"not in RECORD", "x-1-py3-none-any.whl", []rawMember{ok, {name: "x/y.py", unlisted: true}}, "not in RECORD"},
		{"wrong digest", "x-1-py3-none-any.whl", []rawMember{{name: "x/y.py", text: "a", record: "sha256=AAAA"}}, "not what RECORD says"},
		{"weak digest", "x-1-py3-none-any.whl", []rawMember{{name: "x/y.py", text: "a", record: "md5=AAAA"}}, "sha256"},
		{"bomb", "x-1-py3-none-any.whl", []rawMember{{name: "x/y.py", text: strings.Repeat("\x00", 1<<20)}}, ""},
		{"other name", "y-1-py3-none-any.whl", []rawMember{ok}, "file name says"},
		{"other version", "x-2-py3-none-any.whl", []rawMember{ok}, "file name says"},
		{"no wheel name", "x.whl", []rawMember{ok}, "no wheel name"},
		{"scripts", "x-1-py3-none-any.whl", []rawMember{ok, {name: "x-1.data/scripts/x", text: "#!python"}}, "no place"},
		{"two metadata folders", "x-1-py3-none-any.whl", []rawMember{ok, {name: "y-1.dist-info/WHEEL", text: "Wheel-Version: 1.0\n"}}, "two metadata folders"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := rawWheel(t, tc.file, tc.members...)
			dir := t.TempDir()
			a, err := Open(path)
			if err == nil {
				defer a.Close()
				err = a.Verify(t.Context())
				if _, xerr := a.Extract(t.Context(), dir); err == nil {
					err = xerr
				}
			}
			if tc.want == "" {
				if err != nil {
					t.Errorf("got %v, want none", err)
				}
				return
			}
			for w := range strings.SplitSeq(tc.want, "|") {
				if err != nil && strings.Contains(err.Error(), w) {
					return
				}
			}
			t.Errorf("got %v, want it to hold %q", err, tc.want)
		})
	}
}

func TestOpenRefusesWhatIsNoWheel(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(rawWheel(t, "x-1-py3-none-any.whl", rawMember{name: "x.py", text: "a"}))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"empty": {}, "text": []byte("hello"), "truncated": whole[:len(whole)-10]} {
		path := filepath.Join(t.TempDir(), "x-1-py3-none-any.whl")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if a, err := Open(path); err == nil {
			_ = a.Close()
			t.Errorf("%s: opened", name)
		}
	}
}

func FuzzOpen(f *testing.F) {
	b, err := os.ReadFile(rawWheel(f, "x-1-py3-none-any.whl", rawMember{name: "x.py", text: "a"}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "w")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		a, err := Open(path)
		if err != nil {
			return
		}
		defer a.Close()
		_, _ = a.Extract(t.Context(), filepath.Join(dir, "out"))
	})
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte("a,sha256=x,1\nRECORD,,\n"))
	f.Add([]byte("\"a,\"\"b\"\"\",sha256=x,\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := ParseRecord(b)
		if err != nil || len(entries) == 0 {
			return
		}
		for i := range entries {
			entries[i].Size = max(0, entries[i].Size)
		}
		again, err := ParseRecord(formatRecord(entries, "RECORD"))
		if err != nil || len(again) != len(entries)+1 {
			t.Fatalf("%v: %d entries became %d", err, len(entries), len(again)-1)
		}
	})
}

func TestParseName(t *testing.T) {
	t.Parallel()
	n, err := ParseName("/a/b/torch_x-1.0+cpu-1-cp310.cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
	want := Name{"torch_x", "1.0+cpu", "1", Tag{"cp310.cp311", "abi3", "manylinux_2_17_x86_64.manylinux2014_x86_64"}}
	if err != nil || n != want || len(n.Tag.each()) != 4 {
		t.Errorf("got %+v, %v, want %+v", n, err, want)
	}
	for _, bad := range []string{"", "x.whl", "x-1.whl", "a-b-c-d-e-f-g.whl", "x-1-py3-none-any.zip"} {
		if _, err := ParseName(bad); err == nil {
			t.Errorf("%q is taken for a wheel name", bad)
		}
	}
}
