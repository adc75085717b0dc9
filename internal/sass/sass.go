// Package sass reads the machine code of GPUs as nvdisasm prints it, and says
// whether a result could depend on the order in which threads run.
package sass

import (
	"bufio"
	"embed"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/data"
)

//go:embed all:data
var files embed.FS

type rule struct {
	Pattern string `yaml:"pattern"`
	Why     string `yaml:"why"`

	re *regexp.Regexp
}

type ruleFile struct {
	Sources []struct {
		Fact string `yaml:"fact"`
		From string `yaml:"from"`
	} `yaml:"sources"`
	Atomics     string `yaml:"atomics"`
	Rules       []rule `yaml:"rules"`
	LocalStores string `yaml:"local_stores"`
	LocalLoads  string `yaml:"local_loads"`
	PTX         []rule `yaml:"ptx"`

	atomics, stores, loads *regexp.Regexp
}

var load = sync.OnceValues(func() (*ruleFile, error) {
	const name = "data/rules.yaml"
	b, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f ruleFile
	if err := data.Decode("internal/sass/"+name, b, &f); err != nil {
		return nil, err
	}
	for _, rules := range [][]rule{f.Rules, f.PTX} {
		for i := range rules {
			if rules[i].re, err = regexp.Compile(rules[i].Pattern); err != nil {
				return nil, err
			}
		}
	}
	for into, pattern := range map[**regexp.Regexp]string{&f.atomics: f.Atomics, &f.stores: f.LocalStores, &f.loads: f.LocalLoads} {
		if *into, err = regexp.Compile(pattern); err != nil {
			return nil, err
		}
	}
	return &f, nil
})

// A Fault is an instruction that must not be there.
type Fault struct {
	Kernel      string `json:"kernel"`
	Instruction string `json:"instruction"`
	Why         string `json:"why"`
}

func (f Fault) String() string {
	return fmt.Sprintf("%s has %s: %s", f.Kernel, f.Instruction, f.Why)
}

// A Kernel is what one function of the code is made of.
type Kernel struct {
	Name         string `json:"name"`
	Instructions int    `json:"instructions"`
	Atomics      int    `json:"atomics"`      // integer ones, which are let through
	LocalStores  int    `json:"local_stores"` // spills and local arrays
	LocalLoads   int    `json:"local_loads"`
}

// A Code is what Scan found.
type Code struct {
	Kernels []Kernel `json:"kernels"`
	Faults  []Fault  `json:"faults,omitempty"`
}

var (
	labelRE = regexp.MustCompile(`^\s*\.text\.([A-Za-z_$][\w$.]*):\s*$|^\s*Function\s*:\s*(\S+)\s*$`)
	// An offset, perhaps a brace and a predicate, then the name with modifiers.
	instructionRE = regexp.MustCompile(`^\s*/\*[0-9a-f]{4,}\*/\s*\{?\s*(?:@!?U?P[0-9T]+\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)(.*)$`)
)

// Scan reads the output of nvdisasm -c, or of cuobjdump -sass. Code in which it
// finds no instruction is an error: nothing would have been looked at.
func Scan(r io.Reader) (Code, error) {
	rules, err := load()
	if err != nil {
		return Code{}, err
	}
	var c Code
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), 4<<20)
	for lines.Scan() {
		l := lines.Text()
		if m := labelRE.FindStringSubmatch(l); m != nil {
			c.Kernels = append(c.Kernels, Kernel{Name: m[1] + m[2]})
			continue
		}
		m := instructionRE.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		if len(c.Kernels) == 0 {
			return c, fmt.Errorf("an instruction before any kernel: %.80q", strings.TrimSpace(l))
		}
		k := &c.Kernels[len(c.Kernels)-1]
		rules.count(k, &c, m[1])
	}
	if err := lines.Err(); err != nil {
		return c, err
	}
	for _, k := range c.Kernels {
		if k.Instructions == 0 {
			return c, fmt.Errorf("kernel %s: no instruction was understood", k.Name)
		}
	}
	if len(c.Kernels) == 0 {
		return c, fmt.Errorf("no kernel in the disassembly")
	}
	return c, nil
}

func (f *ruleFile) count(k *Kernel, c *Code, instruction string) {
	k.Instructions++
	switch {
	case f.stores.MatchString(instruction):
		k.LocalStores++
	case f.loads.MatchString(instruction):
		k.LocalLoads++
	}
	if !f.atomics.MatchString(instruction) {
		return
	}
	for _, r := range f.Rules {
		if r.re.MatchString(instruction) {
			c.Faults = append(c.Faults, Fault{k.Name, instruction, r.Why})
			return
		}
	}
	k.Atomics++
}

var entryRE = regexp.MustCompile(`\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([A-Za-z_$][\w$]*)`)

// ScanPTX reads the text form.
func ScanPTX(r io.Reader) (Code, error) {
	rules, err := load()
	if err != nil {
		return Code{}, err
	}
	var c Code
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), 4<<20)
	for lines.Scan() {
		l := strings.TrimSpace(lines.Text())
		if m := entryRE.FindStringSubmatch(l); m != nil {
			c.Kernels = append(c.Kernels, Kernel{Name: m[1]})
			continue
		}
		if l == "" || len(c.Kernels) == 0 || strings.HasPrefix(l, "//") || strings.HasPrefix(l, ".") {
			continue
		}
		if l[0] == '@' { // a predicate
			_, l, _ = strings.Cut(l, " ")
		}
		l = strings.TrimSpace(strings.TrimLeft(l, "{ \t"))
		k := &c.Kernels[len(c.Kernels)-1]
		k.Instructions++
		for _, p := range rules.PTX {
			if p.re.MatchString(l) {
				c.Faults = append(c.Faults, Fault{k.Name, strings.Fields(l)[0], p.Why})
				break
			}
		}
	}
	if err := lines.Err(); err != nil {
		return c, err
	}
	if len(c.Kernels) == 0 {
		return c, fmt.Errorf("no kernel in the PTX")
	}
	return c, nil
}
