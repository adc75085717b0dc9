// Package cann reads what files tell about CANN, its driver and firmware:
// which versions are where. It judges nothing and starts nothing.
package cann

import (
	"bufio"
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Info is a version file as its keys and values. Keys are lower case with "_"
// for blanks: the files use "version=", "Version=" and "Ascend-cann-atb Version :".
type Info map[string]string

// ParseInfo reads KEY=VALUE and "KEY : VALUE" lines; others are passed over.
// The first value of a key stands.
func ParseInfo(b []byte) Info {
	out := Info{}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		k, v, ok := strings.Cut(s.Text(), "=")
		if !ok {
			k, v, ok = strings.Cut(s.Text(), ":")
		}
		k = strings.ToLower(strings.Join(strings.Fields(k), "_"))
		if !ok || k == "" || strings.HasPrefix(k, "#") {
			continue
		}
		if _, twice := out[k]; !twice {
			out[k] = strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return out
}

// First is the value of the first of keys that has one.
func (i Info) First(keys ...string) string {
	for _, k := range keys {
		if i[k] != "" {
			return i[k]
		}
	}
	return ""
}

// running is the CANN version in the pairs of version.cfg, such as
// runtime_running_version=[7.6.0.1.220:8.0.0]: component, then CANN. The
// toolkit's own pair goes first, then that of any component.
func (i Info) running() string {
	for _, k := range append([]string{"toolkit_running_version", "compiler_running_version", "runtime_running_version"}, slices.Sorted(maps.Keys(i))...) {
		if !strings.HasSuffix(k, "_running_version") {
			continue
		}
		if _, cann, ok := strings.Cut(strings.Trim(i[k], "[] "), ":"); ok && cann != "" {
			return cann
		}
	}
	return ""
}
