package probe

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/invar-ops/invar/internal/data"
)

//go:embed schedule.yaml
var scheduleYAML []byte

//go:embed schedule_ascend.yaml
var ascendYAML []byte

// A Schedule says what levels 6 and 7 call. It goes to the Python side as JSON.
type Schedule struct {
	Sources   []Source           `yaml:"sources" json:"-"`
	Seed      int64              `yaml:"seed" json:"seed"`
	Dtypes    []string           `yaml:"dtypes" json:"dtypes"`
	Operators []Spec             `yaml:"operators" json:"operators"`
	Routed    []Spec             `yaml:"routed" json:"routed"`
	Control   *Spec              `yaml:"control" json:"control,omitempty"`
	Observe   *Spec              `yaml:"observe" json:"observe,omitempty"`
	Profiles  map[string]Profile `yaml:"profiles" json:"-"`
	Profile                      // the chosen one
}

// A Source says where facts come from.
type Source struct {
	Fact string `yaml:"fact"`
	From string `yaml:"from"`
}

// A Spec is one operator with the shape to call it with.
type Spec struct {
	Operator string   `yaml:"operator" json:"operator"`
	Family   string   `yaml:"family" json:"family"`
	Size     int      `yaml:"size" json:"size"`
	Columns  int      `yaml:"columns" json:"columns,omitempty"`
	Pool     int      `yaml:"pool" json:"pool,omitempty"`
	Needs    []string `yaml:"needs" json:"needs,omitempty"`
	Routed   string   `yaml:"routed" json:"routed,omitempty"`
}

// A Profile is how far a sweep goes: quick for every build, full on demand.
type Profile struct {
	Sweeps   []Sweep   `yaml:"sweeps" json:"sweeps"`
	Settings []Setting `yaml:"settings" json:"settings"`
}

// A Sweep is a family of contexts: the product of its lists at each row count.
type Sweep struct {
	Name      string   `yaml:"name" json:"name"`
	Rows      []int    `yaml:"rows" json:"rows"`
	Orders    []string `yaml:"orders" json:"orders"`
	Layouts   []string `yaml:"layouts" json:"layouts"`
	Fills     []string `yaml:"fills" json:"fills"`
	Positions []string `yaml:"positions" json:"positions"`
	Shifts    int      `yaml:"shifts" json:"shifts"`
	Repeats   int      `yaml:"repeats" json:"repeats"`
	Routed    bool     `yaml:"routed" json:"routed"`
}

// A Setting is the instruction set and the threads under which sweeps run.
// Threads 0 is as many as torch uses by itself. ISA best, fast and slow are the
// last, the middle and the first level that this machine can run.
type Setting struct {
	ISA     string   `yaml:"isa" json:"isa"`
	Threads int      `yaml:"threads" json:"threads"`
	Sweeps  []string `yaml:"sweeps" json:"sweeps"`
}

// LoadSchedule reads the built-in schedule with the named profile chosen.
func LoadSchedule(profile string) (Schedule, error) {
	return decodeSchedule("internal/probe/schedule.yaml", scheduleYAML, profile)
}

func loadAscendSchedule(profile string) (Schedule, error) {
	return decodeSchedule("internal/probe/schedule_ascend.yaml", ascendYAML, profile)
}

func decodeSchedule(file string, b []byte, profile string) (Schedule, error) {
	var s Schedule
	if err := data.Decode(file, b, &s); err != nil {
		return s, err
	}
	p, ok := s.Profiles[profile]
	if !ok {
		return s, fmt.Errorf("%s: no profile %q", file, profile)
	}
	for i := range p.Sweeps {
		p.Sweeps[i].fillIn()
	}
	s.Profile = p
	for name, p := range s.Profiles {
		if err := p.check(); err != nil {
			return s, fmt.Errorf("%s: profile %s: %w", file, name, err)
		}
	}
	return s, nil
}

func (s *Sweep) fillIn() {
	if s.Orders == nil {
		s.Orders = []string{"in order"}
	}
	if s.Layouts == nil {
		s.Layouts = []string{"plain"}
	}
	s.Shifts, s.Repeats = max(s.Shifts, 1), max(s.Repeats, 1)
	s.Fills, s.Positions = append([]string{}, s.Fills...), append([]string{}, s.Positions...)
}

func (p Profile) check() error {
	var names []string
	for _, s := range p.Sweeps {
		if len(s.Rows) == 0 || slices.Contains(names, s.Name) {
			return fmt.Errorf("sweep %q: no rows, or named twice", s.Name)
		}
		names = append(names, s.Name)
	}
	for _, set := range p.Settings {
		for _, n := range set.Sweeps {
			if !slices.Contains(names, n) {
				return fmt.Errorf("setting %s: no sweep %q", set.ISA, n)
			}
		}
	}
	return nil
}

// only keeps the operators in names, and says which names no line calls.
func (s Schedule) only(names []string) (kept Schedule, uncovered []string) {
	kept = s
	kept.Operators = nil
	var covered []string
	for _, o := range s.Operators {
		if slices.Contains(names, o.Operator) {
			kept.Operators = append(kept.Operators, o)
			covered = append(append(covered, o.Operator), o.Needs...)
		}
	}
	for _, n := range names {
		if !slices.Contains(covered, n) {
			uncovered = append(uncovered, n)
		}
	}
	return kept, uncovered
}
