// Package target reads targets/: what can be built, from what, and what must
// be there afterwards. It decodes strictly and judges nothing.
package target

// A Target is one thing that invar can build for.
type Target struct {
	Name      string     `yaml:"name" json:"name"`
	Title     string     `yaml:"title" json:"title"`
	Flavour   string     `yaml:"flavour" json:"flavour"`               // which batch_invariant_ops: cpu, cuda or ascend
	Contract  string     `yaml:"contract" json:"contract"`             // numerical contract of stage 1; empty where the vendor states none
	Missing   []string   `yaml:"missing" json:"missing"`               // parts that this version of invar does not have yet
	Arches    []string   `yaml:"arches" json:"arches"`                 // host architectures
	Chips     []Chip     `yaml:"chips" json:"chips"`                   // what detection may find
	Requires  []Need     `yaml:"requires" json:"requires"`             // of the host
	Python    Python     `yaml:"python" json:"python"`                 // of the environment
	Stage1    Stage1     `yaml:"stage1" json:"stage1"`                 // kernels to run package
	Stage2    Stage2     `yaml:"stage2" json:"stage2"`                 // wheel
	Includes  string     `yaml:"includes" json:"includes,omitempty"`   // target whose stages are part of this one's
	CUDA      *CUDA      `yaml:"cuda" json:"cuda,omitempty"`           // what this target adds to them
	Operators []Operator `yaml:"operators" json:"operators"`           // expected after the build
	Overloads []Operator `yaml:"overloads" json:"overloads,omitempty"` // short forms of Operators: "sum.last"
	Probe     []Level    `yaml:"probe" json:"probe"`                   // what each level means here
	Sources   []Source   `yaml:"sources" json:"sources"`               // where these facts come from
}

// A Chip is a name that tools report and the SKUs that go with it.
type Chip struct {
	Pattern string   `yaml:"pattern" json:"pattern"` // regular expression over the whole chip name
	SKUs    []string `yaml:"skus" json:"skus"`       // SOC_VERSION or arch values seen; others may exist
	Product string   `yaml:"product" json:"product,omitempty"`
	Reason  string   `yaml:"reason" json:"reason,omitempty"` // of a refusal
	Source  string   `yaml:"source" json:"source,omitempty"`
}

// A Need is one requirement of the host; internal/plan and internal/doctor judge it.
type Need struct {
	Name   string `yaml:"name" json:"name"`     // "C++ compiler"
	Kind   string `yaml:"kind" json:"kind"`     // compiler, python, package, tool, toolkit, driver
	Item   string `yaml:"item" json:"item"`     // what is looked up: "torch", "gcc", "CANN"
	Want   string `yaml:"want" json:"want"`     // version range; empty when any will do
	For    string `yaml:"for" json:"for"`       // build, install or probe
	Hint   string `yaml:"hint" json:"hint"`     // command that repairs it
	Source string `yaml:"source" json:"source"` // why
}

// Python says which interpreters and torch serve, and what invar installs when
// the host has none.
type Python struct {
	Minimum  string   `yaml:"minimum" json:"minimum"`   // "3.10"
	Torch    string   `yaml:"torch" json:"torch"`       // range that an existing torch must be in
	Install  []string `yaml:"install" json:"install"`   // pinned requirement specifiers for an own environment
	Index    string   `yaml:"index" json:"index"`       // asked first for these
	Download string   `yaml:"download" json:"download"` // size, for people
	Source   string   `yaml:"source" json:"source"`
}

// An Operator is expected in torch.ops.batch_invariant_ops after the build.
type Operator struct {
	Name   string   `yaml:"name" json:"name"`
	Schema string   `yaml:"schema" json:"schema"`
	Keys   []string `yaml:"keys" json:"keys"` // dispatch keys with a kernel
	// Functions are those that it calls in the vendor's library (Ascend), in
	// releases from FunctionsSince on.
	Functions      []string `yaml:"functions" json:"functions,omitempty"`
	FunctionsSince string   `yaml:"functions_since" json:"functions_since,omitempty"`
	// Takes are regular expressions over the types of the arguments that callers
	// pass by position, where the vendor's schema is not ours to state. Overloads
	// are those that callers name.
	Takes     []string `yaml:"takes" json:"takes,omitempty"`
	Overloads []string `yaml:"overloads" json:"overloads,omitempty"`
}

// A Level is what one probe level checks on this target.
type Level struct {
	Level int    `yaml:"level" json:"level"`
	Name  string `yaml:"name" json:"name"`
	Needs string `yaml:"needs" json:"needs,omitempty"` // what the host must have for it
}

// A Source says where facts come from.
type Source struct {
	Fact string `yaml:"fact" json:"fact"`
	From string `yaml:"from" json:"from"`
}

// Builds reports whether this version of invar can carry out the whole build.
func (t Target) Builds() bool { return len(t.Missing) == 0 }
