package host

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// parsePCI reads the answer of the sysfs source: "0000:18:00.0 19e5:d802 120000
// driver" a line, already without what is neither display nor accelerator.
func parsePCI(rules *chip.Rules, text string) map[string]*Reading {
	out := map[string]*Reading{}
	for _, line := range lines(text) {
		f := strings.Fields(line)
		if len(f) < 3 || !busPattern.MatchString(f[0]) {
			continue
		}
		d := Device{Bus: f[0], PCI: f[1], Class: f[2]}
		if len(f) > 3 {
			d.Bound = given(f[3])
		}
		takePCI(rules, out, "sysfs pci", d)
	}
	return out
}

// takePCI files d under its vendor when it is an accelerator.
func takePCI(rules *chip.Rules, out map[string]*Reading, tool string, d Device) {
	vendor, device, _ := strings.Cut(d.PCI, ":")
	m, ok := rules.PCI(vendor, device, d.Class)
	if !ok {
		return
	}
	r := out[m.Vendor]
	if r == nil {
		r = &Reading{Tool: tool, Vendor: m.Vendor}
		out[m.Vendor] = r
	}
	r.Devices = append(r.Devices, d)
}

var (
	lspciLine = regexp.MustCompile(`(?i)^\s*((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s+(.+)$`)
	lspciIDs  = regexp.MustCompile(`(?i)\[([0-9a-f]{4}):([0-9a-f]{4})\]`)
	lspciN    = regexp.MustCompile(`(?i)^([0-9a-f]{4}):\s+([0-9a-f]{4}):([0-9a-f]{4})`)
	classCode = regexp.MustCompile(`(?i)\[([0-9a-f]{4})\]\s*$`)
	unnamedID = regexp.MustCompile(`(?i)\bDevice \[?([0-9a-f]{4})\b`)
	quoted    = regexp.MustCompile(`"([^"]*)"`)
)

// classNames are the words of lspci for the classes that matter here.
var classNames = map[string]string{
	"vga compatible controller": "0300", "3d controller": "0302", "display controller": "0380",
	"processing accelerators": "1200", "bridge": "0680",
}

// parseLspci reads lspci with or without -n, -nn, -D, -k, -v and -mm. Notes
// name NVSwitches and kernel drivers that keep the device from its vendor's.
func parseLspci(rules *chip.Rules, text string) map[string]*Reading {
	out := map[string]*Reading{}
	switches := 0
	var current *Device
	flush := func() {
		if current != nil {
			takePCI(rules, out, "lspci", *current)
			current = nil
		}
	}
	for _, line := range lines(text) {
		if m := lspciLine.FindStringSubmatch(line); m != nil {
			flush()
			d, ok := lspciDevice(rules, m[1], m[2])
			if !ok {
				continue
			}
			if d.Class == "0680" && strings.HasPrefix(d.PCI, "10de:") {
				switches++
			}
			current = &d
			continue
		}
		if k, v, ok := keyValue(line); ok && current != nil && strings.HasPrefix(strings.ToLower(k), "kernel driver in use") {
			current.Bound = v
		}
	}
	flush()
	if r := out[chip.NVIDIA]; r != nil && switches > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d NVSwitch bridges, which are no GPUs: the fabric manager must run before CUDA starts", switches))
	}
	return out
}

func lspciDevice(rules *chip.Rules, bus, rest string) (Device, bool) {
	d := Device{Bus: strings.ToLower(bus)}
	if m := lspciN.FindStringSubmatch(rest); m != nil { // -n: "0302: 10de:20b2 (rev a1)"
		d.Class, d.PCI = strings.ToLower(m[1]), strings.ToLower(m[2]+":"+m[3])
		return d, true
	}
	class, desc, ok := strings.Cut(rest, ": ")
	if strings.HasPrefix(rest, `"`) { // -mm: quoted class, vendor, device
		q := quoted.FindAllStringSubmatch(rest, -1)
		if len(q) < 3 {
			return d, false
		}
		class, desc, ok = q[0][1], q[1][1]+" "+q[2][1], true
		if ids := mmIDs(q[1][1], q[2][1]); ids != "" {
			desc += " [" + ids + "]"
		}
	}
	if !ok {
		return d, false
	}
	if m := classCode.FindStringSubmatch(class); m != nil {
		d.Class = strings.ToLower(m[1])
	} else {
		d.Class = classNames[strings.ToLower(strings.TrimSpace(class))]
	}
	if d.Class == "" {
		d.Class = "ffff" // a class that has a name, but none of those that count
	}
	if m := lspciIDs.FindAllStringSubmatch(desc, -1); m != nil {
		last := m[len(m)-1]
		d.PCI = strings.ToLower(last[1] + ":" + last[2])
		d.Name = deviceText(desc)
		return d, true
	}
	vendor := rules.VendorID(desc)
	if vendor == "" {
		return d, false
	}
	d.PCI = vendor + ":"
	if m := unnamedID.FindStringSubmatch(desc); m != nil {
		d.PCI = vendor + ":" + strings.ToLower(m[1])
	}
	d.Name = deviceText(desc)
	return d, true
}

// mmIDs is "10de:20b2" of `lspci -mm -nn`, whose vendor and device end in [10de] and [20b2].
func mmIDs(vendor, device string) string {
	v, d := classCode.FindStringSubmatch(vendor), classCode.FindStringSubmatch(device)
	if v == nil || d == nil {
		return ""
	}
	return v[1] + ":" + d[1]
}

// deviceText is the device part of a description: what follows the vendor, up to the ids and revision.
func deviceText(desc string) string {
	for _, end := range []string{" (rev ", " (prog-if"} {
		desc, _, _ = strings.Cut(desc, end)
	}
	desc = lspciIDs.ReplaceAllString(desc, "")
	for _, sep := range []string{"Corporation ", "Co., Ltd. "} {
		if _, rest, ok := strings.Cut(desc, sep); ok {
			desc = rest
		}
	}
	desc = strings.TrimSpace(desc)
	if strings.HasPrefix(desc, "Device") {
		return ""
	}
	return desc
}
