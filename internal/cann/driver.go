package cann

import (
	"path"
	"strings"

	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/version"
)

// A Driver is the NPU driver (or firmware) that is installed below a root.
type Driver struct {
	Dir      string          `json:"dir"`                // /usr/local/Ascend/driver
	Version  version.Version `json:"version"`            // zero when the file does not tell
	Source   string          `json:"source"`             // version.info
	Firmware string          `json:"firmware,omitempty"` // range that it takes: "[7.0.0,8.9.9]"
	Library  string          `json:"library,omitempty"`  // libascend_hal.so, "" when missing
}

// ReadDriver reads the driver below root; ok is false without one.
func ReadDriver(r rootfs.Root) (Driver, bool) { return readComponent(r, "driver") }

// ReadFirmware reads the firmware package below root; ok is false without one.
func ReadFirmware(r rootfs.Root) (Driver, bool) { return readComponent(r, "firmware") }

func readComponent(r rootfs.Root, name string) (Driver, bool) {
	for _, base := range bases(r) {
		d := Driver{Dir: base + "/" + name}
		for _, p := range []string{d.Dir + "/lib64/driver/libascend_hal.so", d.Dir + "/lib64/libascend_hal.so", d.Dir + "/lib64/common/libascend_hal.so"} {
			if r.IsFile(p) {
				d.Library = p
				break
			}
		}
		info, ok := load(r, d.Dir+"/version.info")
		if !ok && d.Library == "" {
			continue
		}
		if ok {
			d.Source, d.Firmware = d.Dir+"/version.info", info["compatible_version_fw"]
			if v, err := version.Parse(version.Driver, info.First("package_version", "version")); err == nil {
				d.Version = v
			}
		}
		return d, true
	}
	return Driver{}, false
}

// bases are where drivers are installed: the installer writes its choice down.
func bases(r rootfs.Root) []string {
	out := []string{"/usr/local/Ascend"}
	info, ok := load(r, "/etc/ascend_install.info")
	if !ok {
		return out
	}
	for _, k := range []string{"driver_install_path_param", "firmware_install_path_param"} {
		if p := info[k]; path.IsAbs(p) && path.Clean(p) != out[0] {
			out = append(out, path.Clean(p))
		}
	}
	return out
}

// ATB is the version of the nnal package in dir (.../nnal/atb/latest), zero
// when no file tells.
func ATB(r rootfs.Root, dir string) version.Version {
	for _, p := range []string{dir + "/version.info", path.Dir(dir) + "/version.info", path.Dir(path.Dir(dir)) + "/version.info"} {
		info, ok := load(r, p)
		if !ok {
			continue
		}
		for k, v := range info {
			if strings.HasPrefix(k, "ascend-cann-") && !strings.HasSuffix(k, "_version") {
				if got, err := version.Parse(version.CANN, v); err == nil {
					return got
				}
			}
		}
	}
	return version.Version{}
}
