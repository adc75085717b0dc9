package host

import (
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/cann"
	"github.com/invar-ops/invar/internal/host/chip"
)

// pairs reads KEY=VALUE lines; quotes around values and blanks around keys go.
func pairs(text string) map[string]string {
	out := map[string]string{}
	for _, line := range lines(text) {
		k, v, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && k != "" && !strings.ContainsAny(k, " \t#") {
			if _, have := out[k]; !have {
				out[k] = strings.Trim(strings.TrimSpace(v), `"'`)
			}
		}
	}
	return out
}

// parseToolkit reads ascend_toolkit_install.info, one or more in a text.
func parseToolkit(text string) []CANN {
	var out []CANN
	for _, block := range splitBefore(text, "package_name=") {
		p := cann.ParseInfo([]byte(block))
		if !strings.HasPrefix(p["package_name"], "Ascend-cann") || p["version"] == "" {
			continue
		}
		out = append(out, CANN{
			Package: p["package_name"], Version: p["version"], Inner: p["innerversion"], Arch: p["arch"], Path: p["path"],
			PreRelease: p["innerversion"] != "" && !strings.Contains(p["innerversion"], "SPC") || preRelease.MatchString(p["version"]),
		})
	}
	return out
}

var preRelease = regexp.MustCompile(`(?i)alpha|beta|\bT[0-9]`)

func splitBefore(text, mark string) []string {
	parts := strings.Split(text, mark)
	for i := 1; i < len(parts); i++ {
		parts[i] = mark + parts[i]
	}
	return parts
}

var runningVersion = regexp.MustCompile(`(?m)^\s*[a-z_]*running_version=\[([^\]:]+):([^\]]+)\]`)

// parseVersionCfg reads the pairs "component:CANN" of version.cfg.
func parseVersionCfg(text string) []CANN {
	var out []CANN
	for _, m := range runningVersion.FindAllStringSubmatch(text, -1) {
		out = append(out, CANN{Package: "component " + m[1], Version: strings.TrimPrefix(m[2], "CANN-")})
	}
	return out
}

// driverVersion reads version.info of the driver: package_version first, as
// ascendhal_version and the others are no driver versions.
func driverVersion(text string) string {
	p := cann.ParseInfo([]byte(text))
	for _, k := range []string{"package_version", "version"} {
		if v := releaseText(p[k]); v != "" {
			return v
		}
	}
	return ""
}

var procVersion = regexp.MustCompile(`(?:Kernel Module(?: for \S+)?|NVIDIA UNIX \S+ (?:Open )?Kernel Module.*?)\s+([0-9]+\.[0-9]+(?:\.[0-9]+)?)`)

// parseProcNVIDIA reads /proc/driver/nvidia: version and gpus/*/information.
func parseProcNVIDIA(text string) (Reading, bool) {
	r := Reading{Tool: "/proc/driver/nvidia", Vendor: chip.NVIDIA}
	if m := procVersion.FindStringSubmatch(text); m != nil {
		r.Driver = m[1]
	}
	var d Device
	for _, line := range lines(text) {
		k, v, ok := keyValue(line)
		if !ok {
			continue
		}
		switch k {
		case "Model":
			if d.Name != "" {
				r.Devices = append(r.Devices, d)
			}
			d = Device{Name: given(v)}
		case "GPU UUID":
			d.UUID = given(v)
		case "Bus Location":
			d.Bus = strings.ToLower(v)
		case "Device Minor":
			d.ID = v
		}
	}
	if d.Name != "" {
		r.Devices = append(r.Devices, d)
	}
	return r, r.Driver != "" || len(r.Devices) > 0
}

// A nodes is what /dev shows of accelerators.
type nodes struct {
	davinci, vdavinci, nvidia []string
	ascendControl             []string // davinci_manager, devmm_svm, hisi_hdc
	nvidiaControl             []string // nvidiactl, nvidia-uvm
	dxg, tegra                bool
	notNodes                  []string // names that should be character devices and are not
}

var numbered = regexp.MustCompile(`^(davinci|vdavinci|nvidia)([0-9]+)$`)

// parseDev reads the answer of the /dev source: "c davinci0" a line.
func parseDev(text string) nodes {
	var n nodes
	for _, line := range lines(text) {
		kind, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		m := numbered.FindStringSubmatch(name)
		if kind != "c" && !strings.HasPrefix(name, "nvidia-caps") {
			if m != nil || name == "davinci_manager" || name == "nvidiactl" {
				n.notNodes = append(n.notNodes, name)
			}
			continue
		}
		switch {
		case m != nil && m[1] == "davinci":
			n.davinci = append(n.davinci, m[2])
		case m != nil && m[1] == "vdavinci":
			n.vdavinci = append(n.vdavinci, m[2])
		case m != nil:
			n.nvidia = append(n.nvidia, m[2])
		case name == "davinci_manager" || name == "devmm_svm" || name == "hisi_hdc":
			n.ascendControl = append(n.ascendControl, name)
		case strings.HasPrefix(name, "nvidia"):
			n.nvidiaControl = append(n.nvidiaControl, name)
		case name == "dxg":
			n.dxg = true
		case strings.HasPrefix(name, "nvhost") || name == "nvmap" || strings.HasPrefix(name, "nvgpu"):
			n.tegra = true
		}
	}
	return n
}
