package doctor

import (
	"io/fs"

	"github.com/invar-ops/invar/internal/cann"
	"github.com/invar-ops/invar/internal/python"
)

// Facts is what was read below one root. Judge reads nothing else.
type Facts struct {
	Root      string            `json:"root"`
	Live      bool              `json:"live"`      // the root is this machine's: limits and mounts are known
	EnvKnown  bool              `json:"env_known"` // the environment is that of processes there
	Arch      string            `json:"arch"`
	System    System            `json:"system"`
	Tools     map[string]string `json:"tools"` // name to path, for those that were looked for and found
	Headers   map[string]string `json:"headers"`
	Compiler  Compiler          `json:"compiler"`
	Python    Python            `json:"python"`
	CANN      []cann.Install    `json:"cann"`
	CANNLinks []cann.Link       `json:"cann_broken_links"`
	Driver    *cann.Driver      `json:"npu_driver"`
	Firmware  *cann.Driver      `json:"npu_firmware"`
	ATB       []ATB             `json:"atb"`
	Vendors   []Vendor          `json:"vendors"`
	Toolkits  []Toolkit         `json:"cuda_toolkits"`
	NVIDIA    NVIDIA            `json:"nvidia"`
	SoCs      []string          `json:"socs"` // what detection named: ascend910b4, sm_90
	Limits    Limits            `json:"limits"`
	Places    []Place           `json:"places"`
	Container string            `json:"container"` // why it is taken for one; empty when it is none
	Paths     map[string]Node   `json:"paths"`     // device nodes and mount sources of the families
	Scripts   Scripts           `json:"scripts"`
	CABundles []string          `json:"ca_bundles"`
	HeldEnv   map[string]string `json:"-"` // may hold secrets: never printed as a whole
	Shell     []string          `json:"shell_options"`
	// Named is what a variable's value (by the variable's name) or a path that
	// the environment mentions (by itself) leads to.
	Named       map[string]Target `json:"named"`
	LibraryDirs map[string]string `json:"library_dirs"` // of LD_LIBRARY_PATH with a libstdc++: its GLIBCXX
}

// A Target is what a path leads to.
type Target struct {
	Real    string `json:"real"`
	Missing bool   `json:"missing"`
	Empty   bool   `json:"empty"` // a directory or a file with nothing in it
}

// Env is a variable of the environment, "" when unset.
func (f Facts) Env(name string) string { return f.HeldEnv[name] }

// Has reports whether a variable is set, even to nothing.
func (f Facts) Has(name string) bool { _, ok := f.HeldEnv[name]; return ok }

// System is the operating system below the root.
type System struct {
	ID       string   `json:"id"`   // "debian"
	Like     []string `json:"like"` // ID_LIKE
	Name     string   `json:"name"` // PRETTY_NAME
	Libc     string   `json:"libc"` // "glibc", "musl" or ""
	Glibc    string   `json:"glibc"`
	GLIBCXX  string   `json:"glibcxx"` // newest GLIBCXX_ symbol version of libstdc++.so.6
	LibcFile string   `json:"libc_file"`
}

// A Compiler is the C++ compiler that a build would use.
type Compiler struct {
	Path    string `json:"path"`
	Vendor  string `json:"vendor"`
	Version string `json:"version"` // "12.2.0"; "12" when only a folder told
	How     string `json:"how"`     // "asked" or the file that told
	Reason  string `json:"reason"`  // why there is none
}

// A Python is the interpreter that a build would use and what is in it.
type Python struct {
	python.Python
	Base      bool               `json:"base"` // it has no torch: an environment would be made from it
	Seen      []python.Candidate `json:"seen"`
	Dists     map[string]Dist    `json:"dists"`
	Twice     []string           `json:"twice"` // distributions with two versions on one path
	IncludeAt string             `json:"include_at"`
	HasH      bool               `json:"has_headers"`
	Ensurepip bool               `json:"ensurepip"`
	Managed   string             `json:"externally_managed"` // the marker file, "" without
	CUDA      string             `json:"torch_cuda"`         // torch.version.cuda as its file says; "" for a build without
	FileTorch string             `json:"torch_file_version"` // __version__ of torch/version.py
	Tag       string             `json:"torch_tag"`          // platform tag of the installed torch
	PipOf     string             `json:"pip_of"`             // interpreter that pip on PATH starts
	PipPath   string             `json:"pip_path"`
	UV        bool               `json:"uv"` // uv is on PATH
	Problem   string             `json:"problem"`
}

// A Dist is an installed distribution.
type Dist struct {
	Version string `json:"version"`
	Dir     string `json:"dir"`
}

// installer is how something is installed for this interpreter. One that the system
// manages refuses pip (PEP 668), and where there is none it will be the
// system's: both get an environment first.
func (p Python) installer() string {
	switch {
	case p.Exe == "":
		return "python3 -m venv /opt/venv && /opt/venv/bin/python -m pip install"
	case p.Managed != "" && !p.Venv:
		return p.Exe + " -m venv /opt/venv && /opt/venv/bin/python -m pip install"
	}
	if _, ok := p.Dists["pip"]; !ok && p.UV { // environments of uv have no pip
		return "uv pip install --python " + p.Exe
	}
	return p.Exe + " -m pip install"
}

// An ATB is one nnal installation.
type ATB struct {
	Dir     string `json:"dir"`
	Version string `json:"version"`
}

// A Vendor is one custom operator package that the loader may take.
type Vendor struct {
	Name      string `json:"name"`
	Dir       string `json:"dir"`
	From      string `json:"from"`    // ASCEND_CUSTOM_OPP_PATH or the config.ini that lists it
	Library   string `json:"library"` // its libcust_opapi.so, "" without
	Invariant bool   `json:"invariant"`
	Listed    bool   `json:"listed"` // in load_priority, or on ASCEND_CUSTOM_OPP_PATH
}

// A Toolkit is one CUDA toolkit.
type Toolkit struct {
	Home    string `json:"home"`
	Real    string `json:"real"` // Home with its links resolved
	From    string `json:"from"` // CUDA_HOME, PATH, /usr/local, wheels
	Version string `json:"version"`
	Source  string `json:"source"` // what told the version
	NVCC    string `json:"nvcc"`   // "" when the compiler is not in it
	CICC    bool   `json:"cicc"`
	CRT     bool   `json:"crt"`     // include/crt/host_config.h
	Runtime bool   `json:"runtime"` // include/cuda_runtime.h
	Cudart  string `json:"cudart"`  // libcudart.so without version, "" when missing
	Soname  string `json:"soname"`  // libcudart.so.13, "" when missing
	GCCMax  int    `json:"gcc_max"` // newest major that host_config.h takes; 0 unknown
}

// NVIDIA is what files tell about the driver.
type NVIDIA struct {
	Kernel  string   `json:"kernel"`  // module version
	User    string   `json:"user"`    // libcuda.so.VERSION
	Library string   `json:"library"` // where libcuda.so.1 is
	GPUs    []string `json:"gpus"`    // device nodes
	// Operators is the CUDA that the operators installed by invar hold the runtime of.
	Operators string `json:"operators_cuda"`
}

// Limits are memory and processors that the process may use.
type Limits struct {
	CPUs        int    `json:"cpus"`
	Memory      int64  `json:"memory_bytes"`
	Available   int64  `json:"available_bytes"`
	Cgroup      int64  `json:"cgroup_limit_bytes"` // 0 is no limit
	CgroupUsed  int64  `json:"cgroup_used_bytes"`
	CgroupFile  string `json:"cgroup_file"`
	SharedBytes int64  `json:"shm_bytes"` // size of /dev/shm; 0 unknown
}

// A Place is a directory that a build writes to.
type Place struct {
	Use     string `json:"use"` // tmp, prefix or cann
	Path    string `json:"path"`
	Free    int64  `json:"free_bytes"` // -1 unknown
	Mount   string `json:"mount"`
	Options string `json:"options"` // of the mount
	Error   string `json:"error"`
}

// A Node is one path that a container needs.
type Node struct {
	Kind   string      `json:"kind"` // char, dir, file, link (broken) or other
	Mode   fs.FileMode `json:"mode"`
	GID    uint32      `json:"gid"`
	UID    uint32      `json:"uid"`
	Access string      `json:"access"` // why this process cannot use it, "" when it can or that is not known
}

// Scripts is what reading the source tree told.
type Scripts struct {
	Dir      string   `json:"dir"` // "" when there is no source tree here
	Read     int      `json:"read"`
	CRLF     []string `json:"crlf"`
	Nounset  []string `json:"nounset"`  // source set_env.sh while set -u holds
	Overlays []string `json:"overlays"` // CMake caches that name a pip build overlay
	Isolated []string `json:"isolated"` // pyproject files that want torch from isolation
}
