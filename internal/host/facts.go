// Package host reads what it can about a machine: accelerators, CPU, memory,
// limits, operating system, container. It keeps every answer as evidence, so
// that a machine can be recorded and judged again elsewhere. Facts and
// judgement are apart: Detect reads, Judge decides and touches nothing.
//
// The package starts vendor tools through a run.Runner and reads files below a
// root; it links no vendor library, so a chip that only NVML or DCMI would
// name stays unknown.
package host

import "time"

// Facts is what the sources said about one machine.
type Facts struct {
	CPU       CPU        `json:"cpu"`
	CPUQuota  float64    `json:"cpu_quota,omitempty"` // CPUs that the cgroups allow; 0 is no limit or not known
	Memory    Memory     `json:"memory"`
	OS        OS         `json:"os"`
	Container Container  `json:"container"`
	Ascend    Ascend     `json:"ascend"`
	NVIDIA    NVIDIA     `json:"nvidia"`
	Evidence  []Evidence `json:"evidence"`
	Pasted    bool       `json:"pasted,omitempty"` // the evidence is a text that somebody brought, not this machine
	// Recognised names the tools whose output was found in a pasted text.
	Recognised []string `json:"recognised,omitempty"`
}

// A CPU is what /proc/cpuinfo and sysfs say.
type CPU struct {
	Arch     string   `json:"arch"` // "x86_64", "aarch64"; empty when not known
	Vendor   string   `json:"vendor,omitempty"`
	Model    string   `json:"model,omitempty"`
	Levels   []string `json:"levels,omitempty"`   // of isa.yaml: "baseline", "avx2", "avx512", "neon"
	Flags    []string `json:"flags,omitempty"`    // features that the levels are made of, and wider ones
	Cores    int      `json:"cores,omitempty"`    // logical CPUs that are online
	Affinity int      `json:"affinity,omitempty"` // logical CPUs that this process may use
	NUMA     int      `json:"numa,omitempty"`     // nodes that are online
}

// Memory is in bytes; 0 is not known, and no limit for CgroupLimitBytes.
type Memory struct {
	TotalBytes       int64 `json:"total_bytes"`
	AvailableBytes   int64 `json:"available_bytes,omitempty"`
	CgroupLimitBytes int64 `json:"cgroup_limit_bytes,omitempty"`
}

// OS is the system below the root.
type OS struct {
	ID          string `json:"id,omitempty"` // os-release: "debian"
	Version     string `json:"version,omitempty"`
	Pretty      string `json:"pretty,omitempty"`
	Libc        string `json:"libc,omitempty"` // "glibc" or "musl"
	LibcVersion string `json:"libc_version,omitempty"`
	Kernel      string `json:"kernel,omitempty"`
}

// Container says whether the process is in one, by which signs.
type Container struct {
	In    bool     `json:"in"`
	Kind  string   `json:"kind,omitempty"` // "docker", "podman", "kubernetes", "wsl"
	Signs []string `json:"signs,omitempty"`
}

// Ascend is what files and tools say about Ascend software on the machine.
type Ascend struct {
	Driver    string `json:"driver,omitempty"`     // running, as npu-smi names it, else installed
	Installed string `json:"installed,omitempty"`  // version.info of the driver package
	Firmware  string `json:"firmware,omitempty"`   // as reported, else firmware/version.info
	CANN      []CANN `json:"cann,omitempty"`       // every toolkit found
	SoCEnv    string `json:"soc_env,omitempty"`    // SOC_VERSION
	DriverDir bool   `json:"driver_dir,omitempty"` // the driver package's folder is there
}

// A CANN is one installed toolkit.
type CANN struct {
	Package string `json:"package,omitempty"`
	Version string `json:"version"`
	Inner   string `json:"inner,omitempty"`
	Arch    string `json:"arch,omitempty"`
	Path    string `json:"path,omitempty"`
	// PreRelease is set when the inner version has no SPC part: a build that
	// carries the number of a release but is none.
	PreRelease bool `json:"pre_release,omitempty"`
}

// NVIDIA is what files and tools say about NVIDIA software on the machine.
type NVIDIA struct {
	Driver string `json:"driver,omitempty"` // kernel driver
	CUDA   string `json:"cuda,omitempty"`   // the most that the driver supports, not a toolkit
	WSL    bool   `json:"wsl,omitempty"`
	Tegra  bool   `json:"tegra,omitempty"`  // Jetson and other integrated GPUs
	WDDM   bool   `json:"wddm,omitempty"`   // the answer is from Windows
	Module bool   `json:"module,omitempty"` // the kernel module is loaded
}

// A Presence is what a source says about accelerators.
type Presence string

// A source that cannot tell says nothing; that is not None.
const (
	Silent  Presence = ""
	Present Presence = "present" // there is one
	None    Presence = "none"    // looked, and there is none
	Unclear Presence = "unclear" // should be able to tell and could not
)

// Evidence is one source: what was asked, what it answered, what was made of it.
type Evidence struct {
	Source     string        `json:"source"` // stable name: "npu-smi info -m", "sysfs pci"
	Asked      string        `json:"asked"`  // command or path
	Answer     string        `json:"answer"` // as it came
	Absent     bool          `json:"absent,omitempty"`
	ExitCode   int           `json:"exit_code,omitempty"`
	Elapsed    time.Duration `json:"elapsed_ns,omitempty"`
	Says       Presence      `json:"says,omitempty"`
	Understood string        `json:"understood,omitempty"`
	Reason     string        `json:"reason,omitempty"` // why it was not asked or not understood
	Reading    *Reading      `json:"reading,omitempty"`

	asked string // Reason as it was before the answer was read
}

// A Reading is what a parser made of one answer about accelerators.
type Reading struct {
	Tool     string   `json:"tool"`
	Vendor   string   `json:"vendor"`
	Devices  []Device `json:"devices,omitempty"`
	Total    int      `json:"total,omitempty"` // count that the tool declared
	Cut      bool     `json:"cut,omitempty"`   // the text ends or begins in the middle
	Driver   string   `json:"driver,omitempty"`
	Firmware string   `json:"firmware,omitempty"`
	CUDA     string   `json:"cuda,omitempty"`
	Version  string   `json:"version,omitempty"` // of the tool
	Notes    []string `json:"notes,omitempty"`
	Faults   []Fault  `json:"faults,omitempty"`
}

// A Device is one accelerator as one source described it. Empty fields and
// zero sizes are not known.
type Device struct {
	ID         string `json:"id,omitempty"`   // the tool's own number: NPU ID, GPU index
	Chip       string `json:"chip,omitempty"` // chip on the card
	Phy        string `json:"phy,omitempty"`
	Logic      string `json:"logic,omitempty"`
	Name       string `json:"name,omitempty"`
	NPUName    string `json:"npu_name,omitempty"`
	NameCut    bool   `json:"name_cut,omitempty"`
	Product    string `json:"product,omitempty"`
	ComputeCap string `json:"compute_cap,omitempty"`
	Bus        string `json:"bus,omitempty"`
	PCI        string `json:"pci,omitempty"` // "19e5:d802"
	Class      string `json:"class,omitempty"`
	Bound      string `json:"bound,omitempty"` // kernel driver
	UUID       string `json:"uuid,omitempty"`
	MemoryMiB  int64  `json:"memory_mib,omitempty"`
	UsedMiB    int64  `json:"used_mib,omitempty"`
	Busy       string `json:"busy,omitempty"` // utilisation in percent, as printed
	Health     string `json:"health,omitempty"`
	MIGMode    bool   `json:"mig_mode,omitempty"`
	MIG        []MIG  `json:"mig,omitempty"`
	Processes  int    `json:"processes,omitempty"`
}

// A MIG is one instance of a GPU that was split.
type MIG struct {
	Profile   string `json:"profile,omitempty"`
	MemoryMiB int64  `json:"memory_mib,omitempty"`
	UUID      string `json:"uuid,omitempty"`
}

// A Fault is a known text by which a tool says that something is wrong.
type Fault struct {
	Rule    string `json:"rule"`
	Vendor  string `json:"vendor"`
	Says    string `json:"says"` // present, unknown, none or warning
	Meaning string `json:"meaning"`
	Hint    string `json:"hint"`
	Text    string `json:"text"` // the line that matched
}
