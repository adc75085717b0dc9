package host

import (
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

var (
	gpuLine = regexp.MustCompile(`^\s*GPU\s+([0-9]+)\s*:\s*(.*?)\s*(?:\(UUID:\s*([^)]*)\)?)?$`)
	migLine = regexp.MustCompile(`^\s*MIG\s+([0-9cgmebx.+]+)\s+Device\s+[0-9]+\s*:\s*(?:\(UUID:\s*([^)]*)\)?)?`)
)

// parseGPUList reads `nvidia-smi -L` and the same lines in torch's collect_env.
func parseGPUList(text string) (Reading, bool) {
	r := Reading{Tool: "nvidia-smi -L", Vendor: chip.NVIDIA}
	collect := strings.Contains(text, "GPU models and configuration")
	last := -1
	all := lines(text)
	for i, line := range all {
		// collect_env sets a single GPU behind the key, several below it.
		line = strings.TrimPrefix(line, "GPU models and configuration:")
		if m := migLine.FindStringSubmatch(line); m != nil && len(r.Devices) > 0 {
			d := &r.Devices[len(r.Devices)-1]
			d.MIGMode, d.MIG, last = true, append(d.MIG, MIG{Profile: m[1], UUID: given(m[2])}), i
			continue
		}
		m := gpuLine.FindStringSubmatch(line)
		if m == nil || m[2] == "" || strings.HasPrefix(m[2], "(") {
			continue
		}
		if !collect && m[3] == "" && !strings.Contains(line, "UUID") && !isGPUName(m[2]) {
			continue
		}
		name, _, _ := strings.Cut(m[2], " (UUID")
		r.Devices = append(r.Devices, Device{ID: m[1], Name: name, UUID: given(m[3])})
		last = i
	}
	if collect {
		r.Tool = "torch collect_env"
		r.Cut = strings.TrimSpace(strings.Join(all[last+1:], "")) == ""
	}
	if n := len(r.Devices); n > 0 && strings.Contains(all[last], "UUID") && !strings.HasSuffix(strings.TrimSpace(all[last]), ")") {
		r.Cut = true
	}
	if n := len(r.Devices); n > 0 && r.Cut {
		r.Devices[n-1].NameCut = true
	}
	return r, len(r.Devices) > 0
}

// isGPUName keeps "GPU 0: some text" of other programs out of the list.
func isGPUName(s string) bool {
	rules, err := chip.Load()
	if err != nil {
		return false
	}
	_, ok := rules.GPU(s, true)
	return ok || strings.Contains(s, "NVIDIA")
}

// parseGPUKeys reads the keys of `nvidia-smi --version`, `nvidia-smi -q` and
// collect_env. In -q a line "GPU 00000000:01:00.0" begins a device.
func parseGPUKeys(text string) (r Reading, known bool) {
	r = Reading{Tool: "nvidia-smi -q", Vendor: chip.NVIDIA}
	values := map[string]string{}
	var section string
	for _, line := range lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "|") {
			continue
		}
		if m := gpuHead.FindStringSubmatch(line); m != nil {
			r.Devices = append(r.Devices, Device{Bus: strings.ToLower(m[1])})
			continue
		}
		key, value, ok := keyValue(line)
		if !ok {
			section = strings.TrimSpace(line)
			continue
		}
		if len(r.Devices) > 0 {
			detailKey(&r, section, key, value)
		}
		if _, have := values[strings.ToLower(key)]; !have {
			values[strings.ToLower(key)] = value
		}
	}
	r.Driver, r.CUDA = gpuVersions(values)
	if values["driver version"] == "" && values["kmd version"] == "" && values["nvidia driver version"] == "" {
		r.CUDA = "" // "CUDA version" alone is other tools' key too
	}
	if v, ok := values["nvidia-smi version"]; ok {
		r.Tool, r.Version = "nvidia-smi --version", releaseText(v)
	}
	_, collect := values["gpu models and configuration"]
	if collect {
		r.Tool = "torch collect_env"
	}
	if n := number(values["attached gpus"]); n > 0 {
		r.Total = int(n)
		r.Cut = len(r.Devices) < r.Total
	}
	_, named := values["nvidia-smi version"]
	return r, len(r.Devices) > 0 || r.Driver != "" || named || collect || values["attached gpus"] != ""
}

var gpuHead = regexp.MustCompile(`^GPU\s+((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$`)

// detailKey takes in one key of a GPU of `nvidia-smi -q`.
func detailKey(r *Reading, section, key, value string) {
	d := &r.Devices[len(r.Devices)-1]
	switch key {
	case "Product Name":
		d.Name = given(value)
	case "Product Architecture":
		d.Product = given(value)
	case "GPU UUID":
		d.UUID = given(value)
	case "Minor Number":
		d.ID = given(value)
	case "CUDA Compute Capability", "Compute Capability":
		d.ComputeCap = given(value)
	case "Total":
		if section == "FB Memory Usage" {
			d.MemoryMiB = number(value)
		}
	case "Used":
		if section == "FB Memory Usage" {
			d.UsedMiB = number(value)
		}
	case "Current":
		if section == "MIG Mode" && value == "Enabled" {
			d.MIGMode = true
		}
	case "Reset Required":
		if value == "Yes" {
			r.Notes = append(r.Notes, "GPU "+d.Bus+": reset required")
			d.Health = "reset required"
		}
	case "Drain and Reset Recommended":
		if value == "Yes" {
			r.Notes = append(r.Notes, "GPU "+d.Bus+": drain and reset recommended")
		}
	case "Pending":
		if section == "Remapped Rows" && value == "Yes" {
			r.Notes = append(r.Notes, "GPU "+d.Bus+": row remapping pending until a reset or reboot")
			d.Health = "row remapping pending"
		}
	}
}
