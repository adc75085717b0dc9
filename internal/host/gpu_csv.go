package host

import (
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

var (
	queryOption = regexp.MustCompile(`--query-gpu[= ]"?([A-Za-z0-9_.,\- ]+?)"?(?:\s+-|\s*$)`)
	unit        = regexp.MustCompile(`\s*\[[^\]]*\]\s*$`)
	capValue    = regexp.MustCompile(`^[0-9]{1,2}\.[0-9]$`)
	mibValue    = regexp.MustCompile(`^[0-9]+ MiB$`)
)

// queryFields are the fields of --query-gpu that are read.
var queryFields = map[string]func(*Device, *Reading, string){
	"index":            func(d *Device, _ *Reading, v string) { d.ID = v },
	"name":             func(d *Device, _ *Reading, v string) { d.Name = v },
	"gpu_name":         func(d *Device, _ *Reading, v string) { d.Name = v },
	"uuid":             func(d *Device, _ *Reading, v string) { d.UUID = v },
	"gpu_uuid":         func(d *Device, _ *Reading, v string) { d.UUID = v },
	"pci.bus_id":       func(d *Device, _ *Reading, v string) { d.Bus = strings.ToLower(v) },
	"gpu_bus_id":       func(d *Device, _ *Reading, v string) { d.Bus = strings.ToLower(v) },
	"pci.device_id":    func(d *Device, _ *Reading, v string) { d.PCI = deviceID(v) },
	"compute_cap":      func(d *Device, _ *Reading, v string) { d.ComputeCap = v },
	"driver_version":   func(_ *Device, r *Reading, v string) { r.Driver = releaseText(v) },
	"memory.total":     func(d *Device, _ *Reading, v string) { d.MemoryMiB = number(v) },
	"memory.used":      func(d *Device, _ *Reading, v string) { d.UsedMiB = number(v) },
	"utilization.gpu":  func(d *Device, _ *Reading, v string) { d.Busy = v },
	"mig.mode.current": func(d *Device, _ *Reading, v string) { d.MIGMode = v == "Enabled" },
	"count":            func(_ *Device, r *Reading, v string) { r.Total = int(number(v)) },
}

// otherFields are common fields that are known and not used, so that a header
// line can be told from values.
var otherFields = []string{
	"timestamp", "memory.free", "memory.reserved", "power.draw", "temperature.gpu", "power.limit", "pstate",
	"utilization.memory", "vbios_version", "serial", "gpu_serial", "pci.bus", "pci.device", "persistence_mode",
	"clocks.sm", "clocks.mem", "clocks.gr", "fan.speed", "compute_mode", "mig.mode.pending", "driver_model.current",
}

// deviceID makes "10de:20b2" of nvidia-smi's 0x20B210DE.
func deviceID(v string) string {
	s := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(v, "0x"), "0X"))
	if len(s) != 8 {
		return ""
	}
	return s[4:] + ":" + s[:4]
}

// parseGPUQuery reads the CSV of `nvidia-smi --query-gpu`. asked are the
// fields in order where the command is known; a header line in the text comes
// first, and a text without either is read by the shape of its values.
func parseGPUQuery(text string, asked []string) (Reading, bool) {
	r := Reading{Tool: "nvidia-smi --query-gpu", Vendor: chip.NVIDIA}
	if m := queryOption.FindStringSubmatch(text); m != nil && asked == nil {
		asked = strings.FieldsFunc(m[1], func(c rune) bool { return c == ',' || c == ' ' })
	}
	fields := asked
	for _, line := range lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "|") || strings.Contains(line, "--query-gpu") {
			continue
		}
		values := splitCSV(line)
		if h := headerFields(values); h != nil {
			fields = h
			continue
		}
		if d, ok := queryRow(&r, fields, values); ok {
			r.Devices = append(r.Devices, d)
		}
	}
	return r, len(r.Devices) > 0
}

func splitCSV(line string) []string {
	out := strings.Split(line, ",")
	for i := range out {
		out[i] = strings.Trim(strings.TrimSpace(out[i]), `"`)
	}
	return out
}

// headerFields are the fields of a header line, or nil for any other line.
func headerFields(values []string) []string {
	out := make([]string, len(values))
	known := 0
	for i, v := range values {
		out[i] = strings.ToLower(unit.ReplaceAllString(v, ""))
		if _, ok := queryFields[out[i]]; ok {
			known++
			continue
		}
		for _, o := range otherFields {
			if out[i] == o {
				known++
			}
		}
	}
	if known == 0 || known < len(values)/2 {
		return nil
	}
	return out
}

func queryRow(r *Reading, fields, values []string) (Device, bool) {
	var d Device
	if fields != nil {
		if len(values) != len(fields) || len(fields) == 1 && !fits(fields[0], values[0]) {
			return d, false
		}
		for i, f := range fields {
			if take, ok := queryFields[f]; ok && given(values[i]) != "" {
				take(&d, r, values[i])
			}
		}
		return d, true
	}
	return shapedRow(r, values)
}

// fits keeps the lines around a column of one field out of it.
func fits(field, value string) bool {
	switch field {
	case "compute_cap":
		return capValue.MatchString(value)
	case "name", "gpu_name":
		return isGPUName(value)
	case "uuid", "gpu_uuid":
		return strings.HasPrefix(value, "GPU-")
	case "driver_version":
		return releaseText(value) != ""
	}
	return false
}

// shapedRow reads values without a header: only what its shape alone names. A
// line counts when it has a GPU's UUID, or a name that a rule knows.
func shapedRow(r *Reading, values []string) (Device, bool) {
	var d Device
	if len(values) < 2 {
		return d, false
	}
	shapes := 0
	for i, v := range values {
		if shapedValue(&d, r, i, v) {
			shapes++
		}
	}
	if shapes < 2 {
		return d, false // a sentence with a GPU's name in it
	}
	// A number such as 12.0 may be watts: it counts only with a name that says the same.
	if rules, err := chip.Load(); err == nil {
		named, _ := rules.GPU(d.Name, false)
		if byCap, _ := rules.SM(d.ComputeCap); byCap.SoC != named.SoC {
			d.ComputeCap = ""
		}
	}
	return d, d.Name != "" || d.UUID != ""
}

// shapedValue takes in one value by its shape.
func shapedValue(d *Device, r *Reading, i int, v string) bool {
	switch {
	case strings.HasPrefix(v, "GPU-"):
		d.UUID = v
	case busPattern.MatchString(v) && !strings.Contains(v, " "):
		d.Bus = strings.ToLower(v)
	case i == 0 && isNumber(v):
		d.ID = v
	case mibValue.MatchString(v) && d.MemoryMiB == 0:
		d.MemoryMiB = number(v)
	case capValue.MatchString(v) && d.ComputeCap == "":
		d.ComputeCap = v
	case d.Name == "" && isGPUName(v):
		d.Name = v
	case r.Driver == "" && strings.Count(v, ".") == 2 && releaseText(v) != "":
		r.Driver = v
	default:
		return false
	}
	return true
}
