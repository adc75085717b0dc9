// Package cgroup reads the limits that control groups put on this process: of
// its own group and of every one above it, in version 2 and version 1. The
// tightest counts. It knows files by a reader, and so any root.
package cgroup

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A File is one limit file and what it holds.
type File struct{ Path, Value string }

// A Reader gives the text of a file, "" when it cannot be read.
type Reader func(path string) string

// limitFiles are asked for in this order; controller "" is version 2.
var limitFiles = []struct{ controller, name string }{
	{"", "cpu.max"},
	{"", "memory.max"},
	{"cpu", "cpu.cfs_quota_us"},
	{"cpu", "cpu.cfs_period_us"},
	{"memory", "memory.limit_in_bytes"},
}

// Read finds the limit files of the process that /proc/self names. In a
// container the path given there may not exist: then the mount's own root is
// the group.
func Read(read Reader) []File {
	groups := read("/proc/self/cgroup")
	var out []File
	for _, f := range limitFiles {
		for _, mount := range mounts(f.controller) {
			for _, dir := range ancestors(groupOf(groups, f.controller)) {
				p := mount + dir + "/" + f.name
				v, _, _ := strings.Cut(strings.TrimSpace(read(p)), "\n")
				if v != "" && !slices.ContainsFunc(out, func(have File) bool { return have.Path == p }) {
					out = append(out, File{p, v})
				}
			}
		}
	}
	return out
}

func mounts(controller string) []string {
	switch controller {
	case "":
		return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
	case "cpu":
		return []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}
	}
	return []string{"/sys/fs/cgroup/" + controller}
}

// groupOf finds a controller's path in /proc/self/cgroup; "" is the line "0::/path".
func groupOf(groups, controller string) string {
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if c == controller && (controller != "" || f[0] == "0") {
				return strings.TrimSuffix(path.Clean("/"+f[2]), "/")
			}
		}
	}
	return ""
}

// ancestors lists a group and those above it, ending with the root "".
func ancestors(group string) []string {
	out := []string{group}
	for group != "" {
		group = group[:max(strings.LastIndexByte(group, '/'), 0)]
		out = append(out, group)
	}
	return out
}

// Limits are the tightest of what the files say; 0 is no limit.
type Limits struct {
	CPUs       float64
	Memory     int64  // bytes
	MemoryFile string // the file with that limit
}

// Tightest reads the values.
func Tightest(files []File) Limits {
	var l Limits
	quotas, periods := map[string]string{}, map[string]string{}
	for _, f := range files {
		switch dir := path.Dir(f.Path); path.Base(f.Path) {
		case "cpu.max":
			q, p, _ := strings.Cut(f.Value, " ")
			l.cpus(q, cmp.Or(p, "100000")) // the kernel's own period
		case "cpu.cfs_quota_us":
			quotas[dir] = f.Value
		case "cpu.cfs_period_us":
			periods[dir] = f.Value
		case "memory.max", "memory.limit_in_bytes":
			l.memory(f)
		}
	}
	for dir, q := range quotas {
		l.cpus(q, periods[dir])
	}
	return l
}

// cpus takes in a quota and its period; "max" and -1 are no limit.
func (l *Limits) cpus(quota, period string) {
	q, err := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	p, perr := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if err != nil || perr != nil || q <= 0 || p <= 0 || math.IsInf(q/p, 0) {
		return
	}
	if n := q / p; l.CPUs == 0 || n < l.CPUs {
		l.CPUs = n
	}
}

func (l *Limits) memory(f File) {
	n, err := strconv.ParseInt(strings.TrimSpace(f.Value), 10, 64)
	// Version 1 writes the largest number that is whole pages for no limit.
	if err != nil || n <= 0 || n >= 1<<60 || l.Memory != 0 && n >= l.Memory {
		return
	}
	l.Memory, l.MemoryFile = n, f.Path
}

// Used is how many bytes the group of a limit file holds that the kernel could
// not give back: its page cache is left out.
func Used(read Reader, limitFile string) int64 {
	dir, name := path.Split(limitFile)
	current := map[string]string{"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}[name]
	used, err := strconv.ParseInt(strings.TrimSpace(read(dir+current)), 10, 64)
	if current == "" || err != nil {
		return 0
	}
	for line := range strings.Lines(read(dir + "memory.stat")) {
		f := strings.Fields(line)
		if len(f) == 2 && (f[0] == "inactive_file" || f[0] == "total_inactive_file") {
			if cache, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return max(0, used-cache)
			}
		}
	}
	return used
}

// Text is files as lines "path: value", which Parse reads again.
func Text(files []File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s: %s\n", f.Path, f.Value)
	}
	return b.String()
}

// Parse reads what Text wrote; other lines are passed over.
func Parse(text string) []File {
	var out []File
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if at := strings.LastIndex(line, ": "); at > 0 {
			out = append(out, File{line[:at], strings.TrimSpace(line[at+2:])})
		}
	}
	return out
}
