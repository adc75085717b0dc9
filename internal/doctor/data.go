package doctor

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/version"
)

//go:embed all:data
var files embed.FS

// Data is everything that differs per version, driver, system and family, with
// its sources. Load reads what is embedded.
type Data struct {
	Matrix      Matrix
	CUDA        cuda.Known
	Floors      Floors
	Install     Install
	Needs       []Need
	Families    []Family
	Environment []Variable
}

// A Need is one requirement beyond those of target.yaml.
type Need struct {
	ID       string   `yaml:"id"`
	Name     string   `yaml:"name"`
	Kind     string   `yaml:"kind"` // selects the judge
	Item     string   `yaml:"item"`
	Want     string   `yaml:"want"`
	Flavours []string `yaml:"flavours"`
	For      string   `yaml:"for"`   // build, install or probe
	Level    string   `yaml:"level"` // fail or warn
	Source   string   `yaml:"source"`

	hint string // of target.yaml
}

// Floors are the oldest drivers and C libraries, and the room that is needed.
type Floors struct {
	Drivers []DriverFloor `yaml:"drivers"`
	Wheels  []WheelFloor  `yaml:"wheels"`
	Policy  []WheelPolicy `yaml:"policies"`
	Disk    []DiskFloor   `yaml:"disk"`
	Jobs    []JobCost     `yaml:"jobs"`
}

// A DriverFloor is the oldest driver that serves a target.
type DriverFloor struct {
	Target  string `yaml:"target"`
	Vendor  string `yaml:"vendor"`
	Product string `yaml:"product"`
	Want    string `yaml:"want"`
	Level   string `yaml:"level"`
	Note    string `yaml:"note"`
	Source  string `yaml:"source"`
}

// A WheelFloor is the C library that the wheels of a distribution need.
type WheelFloor struct {
	Dist   string `yaml:"dist"`
	Want   string `yaml:"want"` // versions of the distribution
	Glibc  string `yaml:"glibc"`
	Source string `yaml:"source"`
}

// A WheelPolicy is what a manylinux tag lets a wheel need.
type WheelPolicy struct {
	Tag     string `yaml:"tag"`   // "2_28"
	Alias   string `yaml:"alias"` // "manylinux2014"
	Glibc   string `yaml:"glibc"`
	GLIBCXX string `yaml:"glibcxx"`
	Source  string `yaml:"source"`
}

// A DiskFloor is room that a build takes, in bytes.
type DiskFloor struct {
	Flavour string `yaml:"flavour"`
	Place   string `yaml:"place"` // tmp, prefix or cann
	Bytes   int64  `yaml:"bytes"`
	When    string `yaml:"when"` // environment: only when invar makes one; ops: only when there is a CANN
	Why     string `yaml:"why"`
	Source  string `yaml:"source"`
}

// A JobCost is the peak memory of one compile job, in bytes.
type JobCost struct {
	Flavour string `yaml:"flavour"`
	Bytes   int64  `yaml:"bytes"`
	Why     string `yaml:"why"`
	Source  string `yaml:"source"`
}

// A Variable is an environment variable with values that do harm.
type Variable struct {
	ID       string   `yaml:"id"`
	Name     string   `yaml:"name"`
	Flavours []string `yaml:"flavours"`
	Wrong    string   `yaml:"wrong"`   // pattern over the value
	Allowed  string   `yaml:"allowed"` // pattern that the value must match
	Level    string   `yaml:"level"`
	Means    string   `yaml:"means"`
	Hint     string   `yaml:"hint"`
	Source   string   `yaml:"source"`
}

// Load is the embedded data, decoded and checked once. It is shared: do not change it.
func Load() (*Data, error) { return loadOnce() }

var loadOnce = sync.OnceValues(decode)

func decode() (*Data, error) {
	var d Data
	var needs struct {
		Needs []Need `yaml:"needs"`
	}
	var families struct {
		Families []Family `yaml:"families"`
	}
	var env struct {
		Variables []Variable `yaml:"variables"`
	}
	for name, into := range map[string]any{
		"matrix": &d.Matrix, "floors": &d.Floors, "install": &d.Install,
		"needs": &needs, "families": &families, "environment": &env,
	} {
		file := "data/" + name + ".yaml"
		b, err := files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := data.Decode("internal/doctor/"+file, b, into); err != nil {
			return nil, err
		}
	}
	known, err := cuda.Load()
	if err != nil {
		return nil, err
	}
	d.CUDA = *known
	d.Needs, d.Families, d.Environment = needs.Needs, families.Families, env.Variables
	return &d, d.check()
}

// check finds what a decoder cannot: ranges and patterns that do not parse,
// kinds without a judge, entries without a source.
func (d *Data) check() error {
	if err := d.Matrix.check(); err != nil {
		return fmt.Errorf("matrix.yaml: %w", err)
	}
	for _, n := range d.Needs {
		if _, ok := judges[n.Kind]; !ok || n.Source == "" || !slices.Contains([]string{"fail", "warn"}, n.Level) {
			return fmt.Errorf("needs.yaml: %s: kind %q, level %q, source %q", n.ID, n.Kind, n.Level, n.Source)
		}
	}
	for _, v := range d.Environment {
		if (v.Wrong == "") == (v.Allowed == "") || v.Source == "" {
			return fmt.Errorf("environment.yaml: %s: one of wrong and allowed, and a source", v.ID)
		}
		if _, err := regexp.Compile(v.Wrong + v.Allowed); err != nil {
			return fmt.Errorf("environment.yaml: %s: %w", v.ID, err)
		}
	}
	for _, w := range d.Floors.Wheels {
		if _, err := version.ParseRange(version.PEP440, w.Want, version.AllowPre); err != nil {
			return fmt.Errorf("floors.yaml: %s: %w", w.Dist, err)
		}
	}
	for _, f := range d.Floors.Drivers {
		if _, err := version.ParseRange(version.Driver, f.Want, version.AllowPre); err != nil {
			return fmt.Errorf("floors.yaml: %s: %w", f.Target, err)
		}
	}
	return nil
}

// jobCost is the entry of flavour.
func (d *Data) jobCost(flavour string) (JobCost, bool) {
	for _, j := range d.Floors.Jobs {
		if j.Flavour == flavour {
			return j, true
		}
	}
	return JobCost{}, false
}

// An Install says what things are called in each package manager.
type Install struct {
	Managers []Manager `yaml:"managers"`
	Items    []Item    `yaml:"items"`
}

// A Manager is a package manager and the systems that have it.
type Manager struct {
	Name    string   `yaml:"name"`
	IDs     []string `yaml:"ids"` // ID and ID_LIKE of os-release
	Command string   `yaml:"command"`
}

// An Item is one thing to install.
type Item struct {
	Name   string `yaml:"name"`
	Apt    string `yaml:"apt"`
	Dnf    string `yaml:"dnf"`
	Zypper string `yaml:"zypper"`
	Apk    string `yaml:"apk"`
	Pip    string `yaml:"pip"`
}

func (i Item) of(manager string) string {
	return map[string]string{"apt": i.Apt, "dnf": i.Dnf, "zypper": i.Zypper, "apk": i.Apk}[manager]
}

// Command is the pasteable command that installs the items on s for the
// interpreter py; every manager's form when s is not known.
func (in Install) Command(s System, py Python, items ...string) string {
	var pip []string
	perManager := map[string][]string{}
	for _, name := range items {
		for _, it := range in.Items {
			if it.Name != name {
				continue
			}
			if it.Pip != "" {
				pip = append(pip, it.Pip)
				continue
			}
			for _, m := range in.Managers {
				perManager[m.Name] = append(perManager[m.Name], strings.ReplaceAll(it.of(m.Name), "{py}", "python"+orText(py.Minor(), "3")))
			}
		}
	}
	var out []string
	if len(perManager) > 0 {
		out = append(out, in.system(s, perManager))
	}
	if len(pip) > 0 {
		out = append(out, py.installer()+" "+strings.Join(pip, " "))
	}
	return strings.Join(out, "; ")
}

func (in Install) system(s System, names map[string][]string) string {
	m, ok := in.manager(s)
	if ok {
		return m.Command + " " + strings.Join(names[m.Name], " ")
	}
	var all []string
	for _, m := range in.Managers[:2] {
		all = append(all, m.Command+" "+strings.Join(names[m.Name], " "))
	}
	return strings.Join(all, "   or   ")
}

// manager is the package manager of s, by its own name first, then by what it
// says it is like.
func (in Install) manager(s System) (Manager, bool) {
	for _, id := range append([]string{s.ID}, s.Like...) {
		for _, m := range in.Managers {
			if slices.Contains(m.IDs, id) {
				return m, true
			}
		}
	}
	return Manager{}, false
}

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
