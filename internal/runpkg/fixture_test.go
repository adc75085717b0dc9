package runpkg_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/runpkg"
)

// A style is how one generation of makeself says where its payload begins and
// what its digests are. The text around is ours: only the variables and the
// commands that a reader has to know are as in the real headers.
type style struct {
	version string
	vars    []string // in their order
	lines   string   // how the header skips itself; %d is the number of lines
	body    string   // further text, such as a licence
}

var (
	md2      = "`head -n %d \"$1\" | wc -c | tr -d \" \"`"
	skipLine = "skip=\"%d\""
	styles   = map[string]style{
		"2.1.0": {version: "2.1.0", vars: []string{"CRCsum", "MD5", "label", "script", "scriptargs", "targetdir", "filesizes"}, lines: "    offset=`head -%d \"$1\" | wc -c | tr -d \" \"`"},
		"2.1.5": {version: "2.1.5", vars: []string{"CRCsum", "MD5", "label", "script", "scriptargs", "targetdir", "filesizes"}, lines: "    offset=" + md2},
		"2.3.0": {version: "2.3.0", vars: []string{"CRCsum", "MD5", "label", "script", "scriptargs", "licensetxt", "targetdir", "filesizes"}, lines: "    offset=" + md2 + "\n    offset=`head -n %[1]d \"$0\" | wc -c | tr -d \" \"`"},
		"2.4.0": {version: "2.4.0", vars: []string{"CRCsum", "MD5", "SHA", "label", "script", "scriptargs", "licensetxt", "helpheader", "targetdir", "filesizes"}, lines: "    offset=" + md2},
		"2.4.5": {version: "2.4.5", vars: []string{"CRCsum", "MD5", "SHA", "SIGNATURE", "label", "script", "scriptargs", "cleanup_script", "licensetxt", "helpheader", "targetdir", "filesizes", "totalsize"}, lines: skipLine},
		"2.7.2": {version: "2.7.2", vars: []string{"CRCsum", "MD5", "SHA", "SIGNATURE", "label", "script", "scriptargs", "cleanup_script", "licensetxt", "helpheader", "preextract", "targetdir", "filesizes", "totalsize"}, lines: skipLine},
		// Huawei's: bash, the package's own name and folder kept for the script.
		"huawei": {version: "2.5.0", vars: []string{"CRCsum", "MD5", "SHA", "SIGNATURE", "label", "script", "scriptargs", "licensetxt", "helpheader", "targetdir", "filesizes", "totalsize", "name_of_file", "pwd_of_file"}, lines: skipLine},
		// A variant of it that keeps SHA-256 only.
		"huawei sha": {version: "2.4.2", vars: []string{"SHA", "SIGNATURE", "label", "script", "scriptargs", "helpheader", "targetdir", "filesizes", "totalsize", "name_of_file", "pwd_of_file"}, lines: skipLine},
	}
)

// build renders a package of this style. edit may change the variables.
func (s style) build(edit map[string]string, payloads ...[]byte) []byte {
	var sizes, crcs, md5s, shas []string
	total := 0
	for _, p := range payloads {
		sizes = append(sizes, fmt.Sprint(len(p)))
		crcs = append(crcs, fmt.Sprint(slowCksum(p)))
		md5s = append(md5s, fmt.Sprintf("%x", md5.Sum(p)))
		shas = append(shas, fmt.Sprintf("%x", sha256.Sum256(p)))
		total += len(p)
	}
	values := map[string]string{
		"CRCsum": strings.Join(crcs, " "), "MD5": strings.Join(md5s, " "), "SHA": strings.Join(shas, " "),
		"label": "a label", "script": "./install.sh", "targetdir": "dir", "filesizes": strings.Join(sizes, " "),
		"totalsize": fmt.Sprint(total), "name_of_file": "$0 ", "pwd_of_file": "$PWD",
		"licensetxt": "You may\nskip=\"7\"\nfilesizes=\"1\"\nwithout asking.",
	}
	maps.Copy(values, edit)
	render := func(lines int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "#!/bin/sh\n# This script was generated using Makeself %s\n\n", s.version)
		for _, v := range s.vars {
			quote := "\""
			if v == "helpheader" {
				quote = "'"
			}
			fmt.Fprintf(&b, "%s=%s%s%s\n", v, quote, values[v], quote)
		}
		fmt.Fprintf(&b, s.lines+"\n%s\nTMPROOT=${TMPDIR:=/tmp}\nexit 0\n", lines, s.body)
		return b.String()
	}
	lines := strings.Count(render(0), "\n")
	return append([]byte(render(lines)), bytes.Join(payloads, nil)...)
}

// slowCksum is POSIX cksum bit by bit.
func slowCksum(data []byte) uint32 {
	crc := uint32(0)
	feed := func(b byte) {
		crc ^= uint32(b) << 24
		for range 8 {
			top := crc >> 31
			crc <<= 1
			if top == 1 {
				crc ^= 0x04c11db7
			}
		}
	}
	for _, b := range data {
		feed(b)
	}
	for n := len(data); n > 0; n >>= 8 {
		feed(byte(n))
	}
	return ^crc
}

// member is one entry of a hand-made tar.
type member struct {
	tar.Header
	content string
}

func file(name, content string) member {
	return member{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}, content}
}

func special(name string, flag byte, link string) member {
	return member{tar.Header{Name: name, Typeflag: flag, Mode: 0o777, Linkname: link}, ""}
}

func tarball(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		m.Size = int64(len(m.content))
		must(t, w.WriteHeader(&m.Header))
		_, err := w.Write([]byte(m.content))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func openBytes(data []byte) (*runpkg.Package, error) {
	return runpkg.OpenReader("x.run", bytes.NewReader(data), int64(len(data)))
}

// read through all checks, the way every caller starts.
func verifyBytes(data []byte) (runpkg.Report, error) {
	p, err := openBytes(data)
	if err != nil {
		return runpkg.Report{}, err
	}
	return p.Verify(context.Background(), runpkg.Options{})
}

func TestSlowCksumIsCksum(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/blob"
	blob(t, path, 3<<20)
	cmd := exec.Command(tool(t, "cksum"), path)
	out, err := cmd.Output()
	must(t, err)
	if got := fmt.Sprint(slowCksum(read(t, path))); got != strings.Fields(string(out))[0] {
		t.Errorf("got %s, want %s", got, out)
	}
}
