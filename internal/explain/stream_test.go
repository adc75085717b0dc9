package explain

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

// scan reads text and returns the scanner, for its work and its buffer.
func scan(t *testing.T, text string) *scanner {
	t.Helper()
	set, err := loadSet()
	if err != nil {
		t.Fatal(err)
	}
	s := newScanner(set)
	if err := s.read(context.Background(), strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWorkIsLinear measures the bytes that the automaton and the expressions
// look at, not time: they may only grow with the input.
func TestWorkIsLinear(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	set, err := loadSet()
	if err != nil {
		t.Fatal(err)
	}
	var literal strings.Builder // every literal of every rule, in one line
	for _, p := range set.patterns {
		lits, _ := literals(p.re.String())
		literal.WriteString(strings.Join(lits, " "))
	}
	for _, c := range []struct {
		name, unit string
		perByte    int64 // most work a byte of input may cause
	}{
		{"quiet build", quietBuild(), 2},
		{"binary", string(noise), 20},
		{"one line of 10 MB", strings.Repeat("x", 10<<20), 2},
		{"one line of errors", strings.Repeat("fatal error: a.h: No such file or directory ", 1<<13), 60},
		{"anchors that fail", strings.Repeat("The detected CUDA version\n", 1<<12), 400},
		{"conflicts without end", strings.Repeat("The conflict is caused by:\n", 1<<15), 400},
		{"undefined symbols", strings.Repeat("x.so: undefined symbol: _ZN1a1bILi1EEE\n", 1<<11), 60},
		{"all literals in lines", strings.ReplaceAll(literal.String(), " ", "\n"), 4000},
		{"all literals in one line", strings.ReplaceAll(literal.String(), "\n", " "), 4000},
		{"empty lines", strings.Repeat("\n", 1<<20), 2},
		{"carriage returns", strings.Repeat("\r", 1<<20) + strings.Repeat("50%\r", 1<<18), 2},
		{"escapes without end", strings.Repeat("\x1b[\x1b]0;\x1b(", 1<<17), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one := scan(t, c.unit)
			two := scan(t, strings.Repeat(c.unit, 3))
			if limit := c.perByte * int64(len(c.unit)); one.work > limit {
				t.Errorf("work %d for %d bytes, want at most %d", one.work, len(c.unit), limit)
			}
			if two.work > 4*one.work+4<<20 {
				t.Errorf("work %d for once, %d for three times the text", one.work, two.work)
			}
			if most := 2*readSize + behind + 2*ahead; len(two.buf) > most {
				t.Errorf("%d bytes in the buffer, want at most %d", len(two.buf), most)
			}
		})
	}
}

// TestConstantMemory reads 256 MB and looks at the heap after it.
func TestConstantMemory(t *testing.T) {
	set, err := loadSet()
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := newScanner(set)
	text := quietBuild() + strings.Repeat("make[1]: *** [Makefile:10: a.o] Error 1\n", 50)
	if err := s.read(context.Background(), &repeated{text: text, left: 256 << 20}); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes for 256 MB of log", grown)
	}
	runtime.KeepAlive(s)
}

// TestChunksDoNotMatter: the answer is the same however the log arrives and
// whatever stands before and after it.
func TestChunksDoNotMatter(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/cases/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		whole, _ := Log(context.Background(), bytes.NewReader(text), Options{})
		bytewise, _ := Log(context.Background(), iotest.OneByteReader(bytes.NewReader(text)), Options{})
		if !reflect.DeepEqual(whole, bytewise) {
			t.Errorf("%s: byte by byte the answer is %s, at once %s", f, bytewise.Rule, whole.Rule)
		}
		pad := strings.Repeat("-- Looking for something - found\n", 9000)
		far, _ := Log(context.Background(), strings.NewReader(pad+string(text)+"\n"+pad), Options{})
		if far.Rule != whole.Rule || far.Cause != whole.Cause {
			t.Errorf("%s: inside a long log the answer is %s, alone %s", f, far.Rule, whole.Rule)
			continue
		}
		for i, e := range far.Evidence {
			if e.Line != whole.Evidence[i].Line+9000 {
				t.Errorf("%s: evidence at line %d, want %d", f, e.Line, whole.Evidence[i].Line+9000)
			}
		}
	}
}

// TestDressedUp puts every case through the prefixes, colours and line ends
// that tools add; the answer must stay.
func TestDressedUp(t *testing.T) {
	t.Parallel()
	perLine := func(f func(int, string) string) func(string) string {
		return func(s string) string {
			lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
			for i, l := range lines {
				lines[i] = f(i, l)
			}
			return strings.Join(lines, "\n") + "\n"
		}
	}
	dress := map[string]func(string) string{
		"crlf":     func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"buildkit": perLine(func(i int, l string) string { return fmt.Sprintf("#12 %d.5 %s", 100+i, l) }),
		"compose":  perLine(func(_ int, l string) string { return "server-1  | " + l }),
		"actions":  perLine(func(_ int, l string) string { return "2026-11-19T11:14:58.1234567Z " + l }),
		"cri":      perLine(func(_ int, l string) string { return "2026-11-19T11:14:58.123456789+08:00 stderr F " + l }),
		"journald": perLine(func(_ int, l string) string { return "Nov 29 17:31:01 node-3 builder[812]: " + l }),
		"kubectl":  perLine(func(_ int, l string) string { return "[pod/build-x7/main] " + l }),
		"srun":     perLine(func(_ int, l string) string { return "3: " + l }),
		"indented": perLine(func(_ int, l string) string { return "      │ " + l }),
		"colour":   perLine(func(_ int, l string) string { return "\x1b[31m\x1b[K" + l + "\x1b[m\x1b[K" }),
		"redrawn":  perLine(func(_ int, l string) string { return "  0% |    |\r 50% |##  |\r" + l }),
		"utf16": func(s string) string {
			var b strings.Builder
			b.WriteString("\xff\xfe")
			for _, u := range utf16.Encode([]rune(s)) {
				b.WriteByte(byte(u))
				b.WriteByte(byte(u >> 8))
			}
			return b.String()
		},
	}
	for name, put := range dress {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, a := range answers {
				text, err := os.ReadFile(filepath.Join("testdata/cases", a.file))
				if err != nil {
					t.Fatal(err)
				}
				if wrong := judgeAnswer(diagnose(t, put(string(text))), a.rule, a.says); wrong != "" {
					t.Errorf("%s: %s", a.file, strings.SplitN(wrong, "\n", 2)[0])
				}
			}
		})
	}
}

func FuzzLog(f *testing.F) {
	files, _ := filepath.Glob("testdata/cases/*/*")
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text)
		}
	}
	f.Add([]byte("\xff\xfe\x00"))
	f.Add([]byte("{\"schema\":\"invar.build\",\"error\":{\"message\":\"x\"}}"))
	f.Add([]byte("\x1b[31m\r\r\n\x1b]0;\x07 fatal error: \xff\xfe.h: No such file or directory"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Log(context.Background(), bytes.NewReader(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Verdict == Found && (d.Rule == "" || d.Cause == "" || d.Fix == nil) {
			t.Errorf("a cause without rule, text or fix: %+v", d)
		}
		for _, e := range d.Evidence {
			if e.Line < 0 || e.Line > d.Lines+1 {
				t.Errorf("evidence at line %d of %d", e.Line, d.Lines)
			}
		}
	})
}
