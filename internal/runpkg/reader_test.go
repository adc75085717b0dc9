package runpkg_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/runpkg"
)

// TestReadsEveryStyle opens headers of all generations, licence texts with
// traps included, and checks every digest that they hold.
func TestReadsEveryStyle(t *testing.T) {
	t.Parallel()
	payload := gzipped(t, tarball(t, file("./install.sh", "echo hi\n"), file("./lib/a.so", "x")))
	for name, s := range styles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := s.build(nil, payload)
			p, err := openBytes(data)
			must(t, err)
			want := runpkg.KindMakeself
			if strings.HasPrefix(name, "huawei") {
				want = runpkg.KindHuawei
			}
			if p.Kind != want || p.Makeself != s.version || p.Label != "a label" || p.Script != "./install.sh" || p.Header != int64(len(data)-len(payload)) {
				t.Errorf("read %+v", p)
			}
			r, err := p.Verify(context.Background(), runpkg.Options{})
			must(t, err)
			digests := 0
			for _, c := range r.Checks {
				if strings.HasPrefix(c.Name, "payload ") && c.Status == report.Pass {
					digests++
				}
			}
			has := 0
			for _, v := range s.vars {
				if v == "CRCsum" || v == "MD5" || v == "SHA" {
					has++
				}
			}
			if digests != has {
				t.Errorf("%d digests checked, want %d: %+v", digests, has, r.Checks)
			}
			for i := range payload {
				if i%7 == 0 || i > len(payload)-9 {
					broken := bytes.Clone(data)
					broken[len(data)-len(payload)+i] ^= 4
					if _, err := verifyBytes(broken); err == nil {
						t.Fatalf("byte %d of the payload changed and nobody noticed", i)
					}
				}
			}
		})
	}
}

// TestSeveralPayloads: each has its own digests and replaces earlier files.
func TestSeveralPayloads(t *testing.T) {
	t.Parallel()
	one := gzipped(t, tarball(t, file("a", "first"), file("b", "stays")))
	two := gzipped(t, tarball(t, file("a", "second"), file("c", "new")))
	for name, s := range styles {
		data := s.build(nil, one, two)
		p, err := openBytes(data)
		must(t, err)
		out := t.TempDir()
		r, err := p.Extract(context.Background(), out, runpkg.Options{})
		must(t, err)
		if got := string(read(t, filepath.Join(out, "a"))); got != "second" || len(r.Entries) != 3 || r.Bytes != int64(len("second")+len("stays")+len("new")) {
			t.Errorf("%s: a = %q, %+v", name, got, r)
		}
		data[len(data)-5] ^= 1
		if _, err := verifyBytes(data); err == nil || !strings.Contains(err.Error(), "payload 2 of 2") {
			t.Errorf("%s: error %v, want one about the second payload", name, err)
		}
	}
}

// TestSaysWhatItFound: every error names what the file is, and what to do.
func TestSaysWhatItFound(t *testing.T) {
	t.Parallel()
	payload := gzipped(t, tarball(t, file("f", "x")))
	good := styles["2.4.5"].build(nil, payload)
	var z bytes.Buffer
	zw := zip.NewWriter(&z)
	_, err := zw.Create("f")
	must(t, err)
	must(t, zw.Close())
	edited := func(key, value string) []byte {
		return styles["2.4.5"].build(map[string]string{key: value}, payload)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":              {nil, "empty file"},
		"html":               {[]byte("\n<!DOCTYPE html><html>404</html>"), "HTML"},
		"html upper":         {[]byte("<HTML><body>"), "HTML"},
		"object store":       {[]byte("<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>"), "XML"},
		"json":               {[]byte("{\"message\": \"Not Found\"}"), "JSON"},
		"lfs":                {[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "Git LFS"},
		"zip":                {z.Bytes(), "zip"},
		"elf":                {[]byte("\x7fELF\x02\x01\x01"), "ELF"},
		"tar":                {tarball(t, file("f", "x")), "tar archive"},
		"gzip":               {payload, "gzip"},
		"zeros":              {make([]byte, 4096), "zeros"},
		"text":               {[]byte("hello"), `"hello"`},
		"script":             {[]byte("#!/bin/sh\necho hi\n"), "no makeself header"},
		"tail script":        {append([]byte("#!/bin/bash\nlines=3\ntail -n +3 $0 | tar xz\n"), payload...), "no makeself header"},
		"crlf":               {bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n")), "CR LF"},
		"cut in header":      {good[:300], "inside the header"},
		"cut in payload":     {good[:len(good)-10], "10 bytes are missing"},
		"cut before payload": {good[:len(good)-len(payload)], "truncated"},
		"garbage behind":     {append(bytes.Clone(good), "garbage"...), "7 bytes follow"},
		"sizes text":         {edited("filesizes", "12x"), "filesizes"},
		"sizes expanded":     {edited("filesizes", "$(id)"), "filesizes"},
		"sizes empty":        {edited("filesizes", ""), "0 payloads"},
		"sizes huge":         {styles["2.3.0"].build(map[string]string{"filesizes": "999999999999999999"}, payload), "truncated"},
		"sizes and total":    {edited("filesizes", "999999999999999999"), "totalsize"},
		"total wrong":        {edited("totalsize", "12"), "totalsize"},
		"sha short":          {edited("SHA", "abcd"), "SHA"},
		"sha wrong":          {edited("SHA", strings.Repeat("a", 64)), "SHA-256 does not match"},
		"md5 wrong":          {edited("MD5", strings.Repeat("a", 32)), "MD5 does not match"},
		"crc wrong":          {edited("CRCsum", "17"), "CRC does not match"},
		"two digests":        {edited("SHA", strings.Repeat("a", 64)+" "+strings.Repeat("a", 64)), "2 values of SHA"},
		"injected":           {edited("label", "x\"\nskip=\"3"), "3 lines"},
		"zlib":               {styles["2.4.5"].build(nil, []byte("\x78\x9c some zlib, not an archive")), "no archive"},
		"lzw":                {styles["2.1.5"].build(nil, []byte("\x1f\x9d\x90 compress")), "compress"},
		"gpg":                {styles["2.4.5"].build(nil, []byte("\x8c\x0d\x04\x09 gpg")), "gpg"},
		"lzop":               {styles["2.4.5"].build(nil, []byte("\x89LZO\x00\r\n\x1a\n")), "lzop"},
		"bzip3":              {styles["2.7.2"].build(nil, []byte("BZ3v1 xx")), "bzip3"},
		"newer of ours":      {bytes.Replace(read(t, pack(t, sample(t), "")), []byte(`invar_format="1"`), []byte(`invar_format="2"`), 1), "newer"},
		"cut inside gzip":    {styles["2.4.5"].build(nil, payload[:len(payload)-6]), "cannot be unpacked"},
		"cut inside tar":     {styles["2.4.5"].build(nil, gzipped(t, tarball(t, file("f", strings.Repeat("x", 3000)))[:2000])), "cannot be unpacked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := verifyBytes(c.data)
			p, ok := errors.AsType[*report.Problem](err)
			if !ok || p.Hint == "" || p.Got == "" {
				t.Fatalf("error %v, want a Problem with what was found and a hint", err)
			}
			if text := err.Error() + " " + p.Hint; !strings.Contains(text, c.want) {
				t.Errorf("error %q, want one with %q", text, c.want)
			}
		})
	}
}

// TestLongHeader: megabytes of licence before the payload.
func TestLongHeader(t *testing.T) {
	t.Parallel()
	s := styles["2.3.0"]
	s.body = strings.Repeat("# lines and lines of a licence\n", 100_000)
	if _, err := verifyBytes(s.build(nil, gzipped(t, tarball(t, file("f", "x"))))); err != nil {
		t.Error(err)
	}
	// An uncompressed payload may hold whole packages, whose headers are no
	// part of ours.
	inner := styles["2.1.5"].build(nil, gzipped(t, tarball(t, file("inner", "x"))))
	for name, s := range styles {
		if _, err := verifyBytes(s.build(nil, tarball(t, file("inner.run", string(inner)), file("g", "\nskip=\"3\"\n")))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusesUnsafeContent checks Verify, and that Extract leaves nothing
// inside its folder and changes nothing outside.
func TestRefusesUnsafeContent(t *testing.T) {
	t.Parallel()
	setuid := file("tool", "x")
	setuid.Mode = 0o4755
	setgid := special("dir/", tar.TypeDir, "")
	setgid.Mode = 0o2755
	for name, c := range map[string]struct {
		members []member
		want    string
	}{
		"dot dot":              {[]member{file("a/../../evil", "x")}, "climbs out"},
		"dot dot inside":       {[]member{file("a/../b", "x")}, "climbs out"},
		"absolute":             {[]member{file("/tmp/evil", "x")}, "absolute"},
		"link absolute":        {[]member{special("l", tar.TypeSymlink, "/etc")}, "leads out"},
		"link out":             {[]member{special("a/l", tar.TypeSymlink, "../../x")}, "leads out"},
		"link by link":         {[]member{file("a/b/c", "x"), special("l", tar.TypeSymlink, "a/b"), special("m", tar.TypeSymlink, "l/../../../x")}, "leads out"},
		"link by later link":   {[]member{special("m", tar.TypeSymlink, "d/e/../.."), special("d/e", tar.TypeSymlink, "../k"), file("k/f", "x")}, "leads out"},
		"file through link":    {[]member{special("l", tar.TypeSymlink, "d"), special("d/", tar.TypeDir, ""), file("l/f", "x")}, "lies below"},
		"file below file":      {[]member{file("f", "x"), file("f/g", "x")}, "lies below"},
		"link becomes file":    {[]member{special("l", tar.TypeSymlink, "x"), file("l", "x")}, "both a link and a file"},
		"dir becomes link":     {[]member{file("d/f", "x"), special("d", tar.TypeSymlink, "e")}, "both a dir and a link"},
		"twice":                {[]member{file("f", "x"), file("./f", "y")}, "twice"},
		"link twice":           {[]member{special("l", tar.TypeSymlink, "x"), special("l", tar.TypeSymlink, "y")}, "twice"},
		"char device":          {[]member{special("d", tar.TypeChar, "")}, "character device"},
		"block device":         {[]member{special("d", tar.TypeBlock, "")}, "block device"},
		"fifo":                 {[]member{special("d", tar.TypeFifo, "")}, "named pipe"},
		"set-uid":              {[]member{setuid}, "set-uid"},
		"set-gid folder":       {[]member{setgid}, "set-gid"},
		"hard link absolute":   {[]member{special("h", tar.TypeLink, "/etc/passwd")}, "absolute"},
		"hard link to nothing": {[]member{special("h", tar.TypeLink, "later"), file("later", "x")}, "no earlier file"},
		"hard link to folder":  {[]member{special("d/", tar.TypeDir, ""), special("h", tar.TypeLink, "d")}, "no earlier file"},
		"control character":    {[]member{file("a\x1b[2Jb", "x")}, "control characters"},
		"root is a link":       {[]member{special("./", tar.TypeSymlink, "x")}, "root"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			members := append([]member{file("first", "x")}, c.members...)
			data := styles["2.4.5"].build(nil, gzipped(t, tarball(t, members...)))
			p, err := openBytes(data)
			must(t, err)
			r, err := p.Verify(context.Background(), runpkg.Options{})
			problem, ok := errors.AsType[*report.Problem](err)
			if !ok || problem.Code != report.CheckFailed || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want a refusal with %q", err, c.want)
			}
			if last := r.Checks[len(r.Checks)-1]; last.Status != report.Fail {
				t.Errorf("the last check is %+v, want the one that failed", last)
			}
			outer := t.TempDir()
			out := filepath.Join(outer, "in", "out")
			if _, err := p.Extract(context.Background(), out, runpkg.Options{}); err == nil {
				t.Error("extracted")
			}
			given := filepath.Join(outer, "given")
			must(t, os.Mkdir(given, 0o755))
			if _, err := p.Extract(context.Background(), given, runpkg.Options{}); err == nil {
				t.Error("extracted")
			}
			if got := listing(t, outer); got != "given/ 755\nin/ 755\n" {
				t.Errorf("left behind:\n%s", got)
			}
		})
	}
}

// TestAcceptsOddButHarmless: what real packages do and some readers refuse.
func TestAcceptsOddButHarmless(t *testing.T) {
	t.Parallel()
	readOnly := special("ro/", tar.TypeDir, "")
	readOnly.Mode = 0o555
	data := styles["2.4.5"].build(nil, gzipped(t, tarball(t,
		special("./", tar.TypeDir, ""), readOnly, file("ro/f", "x"), file("./f", "same"), file("f", "same"),
		special("d/l", tar.TypeSymlink, "../f"), special("d/l", tar.TypeSymlink, "../f"), special("h", tar.TypeLink, "./f"),
		special("d/hl", tar.TypeLink, "d/l"), special("loop", tar.TypeSymlink, "loop"), special("up", tar.TypeSymlink, "d/.."),
	)))
	p, err := openBytes(data)
	must(t, err)
	out := filepath.Join(t.TempDir(), "out")
	_, err = p.Extract(context.Background(), out, runpkg.Options{})
	must(t, err)
	got := listing(t, out)
	for _, want := range []string{"ro/ 555\n", "d/l -> ../f\n", "d/hl -> ../f\n", "loop -> loop\n", "up -> d/..\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if string(read(t, filepath.Join(out, "h"))) != "same" {
		t.Error("the hard link has another content")
	}
}

func TestRefusesBombs(t *testing.T) {
	t.Parallel()
	zeros := gzipped(t, tarball(t, file("zeros", strings.Repeat("\x00", 100<<20))))
	var many []member
	for i := range 50 {
		many = append(many, file(strings.Repeat("f", i+1), ""))
	}
	for name, c := range map[string]struct {
		payload []byte
		limits  runpkg.Limits
		want    string
	}{
		"ratio": {zeros, runpkg.Limits{}, "250 times"},
		"bytes": {gzipped(t, tarball(t, file("f", strings.Repeat("ab", 5000)))), runpkg.Limits{Bytes: 9999}, "9999 bytes"},
		"files": {gzipped(t, tarball(t, many...)), runpkg.Limits{Files: 49}, "49 files"},
		// After the end of the tar, where no entry declares anything.
		"padding": {gzipped(t, append(tarball(t, file("f", "x")), make([]byte, 100<<20)...)), runpkg.Limits{}, "250 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := openBytes(styles["2.4.5"].build(nil, c.payload))
			must(t, err)
			out := filepath.Join(t.TempDir(), "out")
			_, err = p.Extract(context.Background(), out, runpkg.Options{Limits: c.limits})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("something was left")
			}
		})
	}
	p, err := openBytes(styles["2.4.5"].build(nil, zeros))
	must(t, err)
	if _, err := p.Verify(context.Background(), runpkg.Options{Limits: runpkg.Limits{Ratio: 2000}}); err != nil {
		t.Errorf("with a higher limit: %v", err)
	}
}

// TestManifestMustHold: a package of ours whose archive is not what its
// manifest says, with digests that fit the archive.
func TestManifestMustHold(t *testing.T) {
	t.Parallel()
	dir := sample(t)
	path := pack(t, dir, runpkg.None)
	p := open(t, path)
	if p.Kind != runpkg.KindInvar || p.Manifest == nil || p.Manifest.Version != "1.2.3" {
		t.Fatalf("read %+v", p)
	}
	if _, err := p.Verify(context.Background(), runpkg.Options{}); err != nil {
		t.Fatal(err)
	}
	sum := p.Manifest.Files[len(p.Manifest.Files)-1].SHA256
	data := bytes.Replace(read(t, path), []byte(`"sha256": "`+sum), []byte(`"sha256": "`+strings.Repeat("1", 64)), 1)
	if _, err := verifyBytes(data); err == nil || !strings.Contains(err.Error(), "manifest says") {
		t.Errorf("error %v, want one about the manifest", err)
	}
}

func TestExtractStopsWithContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	blob(t, filepath.Join(dir, "blob"), 8<<20)
	p := open(t, pack(t, dir, runpkg.Gzip))
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	out := filepath.Join(t.TempDir(), "out")
	_, err := p.Extract(ctx, out, runpkg.Options{Progress: func(int64) { cancel(why) }})
	if !errors.Is(err, why) {
		t.Errorf("error %v, want the cause %v", err, why)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was left")
	}
}

func TestExtractNeedsAnEmptyFolder(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	must(t, os.WriteFile(filepath.Join(out, "mine"), nil, 0o644))
	if _, err := open(t, pack(t, sample(t), "")).Extract(context.Background(), out, runpkg.Options{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("error %v", err)
	}
	if got := listing(t, out); !strings.HasPrefix(got, "mine ") || strings.Count(got, "\n") != 1 {
		t.Errorf("changed:\n%s", got)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	dir := sample(t)
	a, same := open(t, pack(t, dir, runpkg.Gzip)), open(t, pack(t, dir, runpkg.Gzip))
	changes, err := runpkg.Diff(context.Background(), a, same, runpkg.Options{})
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("a package differs from itself: %+v", changes)
	}
	must(t, os.Remove(filepath.Join(dir, "empty")))
	must(t, os.WriteFile(filepath.Join(dir, "new"), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "a file"), []byte("other"), 0o644))
	must(t, os.Chmod(filepath.Join(dir, "include/invar/cpu.h"), 0o755))
	changes, err = runpkg.Diff(context.Background(), a, open(t, pack(t, dir, runpkg.Zstd)), runpkg.Options{})
	must(t, err)
	var got []string
	for _, c := range changes {
		got = append(got, c.Fact+c.Path)
	}
	if want := "codec,a file,empty,include/invar/cpu.h,new"; strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
