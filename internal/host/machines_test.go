package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/host/chip"
	"github.com/invar-ops/invar/internal/run"
)

// A machine is a txtar: the comment is the answer, "env", "soc" and "dev" are
// options and the nodes in /dev, "cmd CODE ARGV" is what a tool says, "link
// PATH" is a symbolic link, everything else is a file below the root. PCI
// paths hold ":", which a module's own files cannot.
type machine struct {
	want    answer
	root    string
	env     []string
	soc     string
	dev     string
	answers []run.Exchange
}

func readMachine(t *testing.T, file string) machine {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := machine{root: t.TempDir()}
	if err := data.Decode(file, a.Comment, &m.want); err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		kind, rest, _ := strings.Cut(f.Name, " ")
		switch {
		case f.Name == "env":
			m.env = strings.Fields(string(f.Data))
		case f.Name == "soc":
			m.soc = strings.TrimSpace(string(f.Data))
		case f.Name == "dev":
			m.dev = string(f.Data)
			m.write(t, "dev/null", nil, 0o644)
		case kind == "cmd":
			m.command(t, rest, string(f.Data))
		case kind == "link":
			at := filepath.Join(m.root, rest)
			if err := os.Symlink(strings.TrimSpace(string(f.Data)), at); err != nil {
				t.Fatal(err)
			}
		default:
			m.write(t, f.Name, f.Data, 0o644)
		}
	}
	return m
}

func (m *machine) command(t *testing.T, text, says string) {
	t.Helper()
	code := int(number(text))
	argv := strings.Fields(text)[1:]
	m.write(t, "usr/bin/"+argv[0], nil, 0o755)
	argv[0] = "/usr/bin/" + argv[0]
	m.answers = append(m.answers, run.Exchange{Argv: argv, Code: code, Stdout: says})
}

func (m *machine) write(t *testing.T, name string, b []byte, mode os.FileMode) {
	t.Helper()
	p := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, b, mode); err != nil {
		t.Fatal(err)
	}
}

// detect asks the machine. Nodes in /dev cannot be made without root, so their
// list takes the place of what was read.
func (m *machine) detect(t *testing.T) Facts {
	t.Helper()
	o := Options{Root: m.root, Env: m.env, SoC: m.soc, Whole: true}
	replay := run.NewReplay(m.answers)
	if len(m.answers) > 0 {
		o.Runner = replay
	}
	f, err := Detect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if u := replay.Unused(); len(u) > 0 {
		t.Errorf("never asked: %q", u)
	}
	f.find("/dev").Answer = m.dev
	rules, err := chip.Load()
	if err != nil {
		t.Fatal(err)
	}
	return understand(rules, mask(f.Evidence, &masker{seen: map[string]string{}, next: map[string]int{}}))
}

func TestMachines(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/machines/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no machines: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			m := readMachine(t, file)
			f := m.detect(t)
			v := Judge(f)
			for _, w := range m.want.check(f, v) {
				t.Error(w)
			}
			if t.Failed() {
				var b bytes.Buffer
				for _, w := range v.Weighed {
					fmt.Fprintf(&b, "%s | %s | %s\n", w.Asked, w.Said, w.Role)
				}
				t.Logf("%s\n%s", v.Reason, b.String())
			}
			roundTrip(t, f, v)
		})
	}
}

// roundTrip records and replays: the verdict must be the same.
func roundTrip(t *testing.T, f Facts, v Verdict) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "machine")
	if err := record(dir, f, "build-node-17"); err != nil {
		t.Fatal(err)
	}
	g, err := Replay(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := Judge(g); !reflect.DeepEqual(got, v) {
		t.Errorf("replayed:\n got %+v\nwant %+v", got, v)
	}
}
