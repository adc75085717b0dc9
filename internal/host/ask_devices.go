package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/cann"
	"github.com/invar-ops/invar/internal/run"
)

// deviceSources look for accelerators without starting anything.
var deviceSources = []source{askEnv, askDev, askPCI, askProcNVIDIA, askTegra, askAscendFiles, askCANN}

// visibility are the variables by which runtimes hide and pass devices.
var visibility = []string{
	"ASCEND_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_DEVICE_ID", "CUDA_VISIBLE_DEVICES",
	"CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
}

func askEnv(_ context.Context, a *asker) []Evidence {
	soc := Evidence{Source: "SOC_VERSION", Asked: "SOC_VERSION", Answer: run.Getenv(a.env, "SOC_VERSION")}
	if soc.Answer == "" {
		soc.Absent, soc.Reason = true, "unset"
	}
	vis := Evidence{Source: "visibility", Asked: strings.Join(visibility, " ")}
	for _, k := range visibility {
		// A variable that is set and empty hides all devices: it is not the same as unset.
		for _, kv := range a.env {
			if strings.HasPrefix(kv, k+"=") {
				vis.Answer += kv + "\n"
			}
		}
	}
	if vis.Answer == "" {
		vis.Absent, vis.Reason = true, "unset"
	}
	return []Evidence{soc, vis}
}

// devPrefixes are the names in /dev that drivers of both vendors make.
var devPrefixes = []string{
	"davinci", "vdavinci", "devmm_svm", "hisi_hdc", "dvpp_cmdlist", "uburma", "ummu", "nvidia", "dxg", "nvhost", "nvmap", "nvgpu",
}

func askDev(_ context.Context, a *asker) []Evidence {
	e := Evidence{Source: "/dev", Asked: "/dev/davinci*, /dev/nvidia* and their controls"}
	entries, err := a.list("/dev")
	if err != nil {
		e.Reason = reason(err)
		return one(e)
	}
	for _, d := range entries {
		for _, p := range devPrefixes {
			if strings.HasPrefix(d.Name(), p) {
				e.Answer += devKind(d.Type()) + " " + d.Name() + "\n"
				break
			}
		}
	}
	return one(e)
}

func devKind(t fs.FileMode) string {
	switch {
	case t&fs.ModeCharDevice != 0:
		return "c"
	case t.IsDir():
		return "d"
	case t&fs.ModeSymlink != 0:
		return "l"
	}
	return "-"
}

// askPCI lists display and accelerator functions: address, ids, class, kernel
// driver. Vendor libraries for this (nvpci, ghw) know one vendor or read a
// table of 1.3 MB for names; four small files a device are all that is needed.
func askPCI(_ context.Context, a *asker) []Evidence {
	start := time.Now()
	const dir = "/sys/bus/pci/devices"
	e := Evidence{Source: "sysfs pci", Asked: dir + "/*/{vendor,device,class,driver}"}
	entries, err := a.list(dir)
	if err != nil {
		e.Reason = reason(err)
		if errors.Is(err, fs.ErrNotExist) {
			e.Absent = true
			e.Reason = "no PCI bus in sysfs"
			if !a.exists("/sys/devices") {
				e.Reason = "sysfs is not mounted"
			}
		}
		return one(e)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "functions: %d\n", len(entries))
	for _, d := range entries {
		at := dir + "/" + d.Name() + "/"
		class := hex(a.line(at + "class"))
		if !strings.HasPrefix(class, "03") && !strings.HasPrefix(class, "12") {
			continue
		}
		fmt.Fprintf(&b, "%s %s:%s %s %s\n", d.Name(), hex(a.line(at+"vendor")), hex(a.line(at+"device")), class, a.bound(at+"driver"))
	}
	e.Answer, e.Elapsed = b.String(), time.Since(start)
	return one(e)
}

func hex(s string) string { return strings.TrimPrefix(strings.ToLower(s), "0x") }

// askProcNVIDIA joins the driver's version and what it says of each GPU.
func askProcNVIDIA(_ context.Context, a *asker) []Evidence {
	e := a.file("/proc/driver/nvidia", "/proc/driver/nvidia/version")
	e.Asked = "/proc/driver/nvidia/version, gpus/*/information"
	for _, p := range a.glob("/proc/driver/nvidia/gpus/*/information") {
		e.Answer = strings.TrimRight(e.Answer, "\n") + "\n" + a.text(p)
	}
	if e.Absent && e.Answer == "" {
		e.Reason = "the nvidia kernel module is not loaded"
	}
	return one(e)
}

// askTegra reads the signs of a Jetson, whose GPU is on no PCI bus.
func askTegra(_ context.Context, a *asker) []Evidence {
	e := Evidence{Source: "tegra", Asked: "/etc/nv_tegra_release, /sys/firmware/devicetree/base"}
	if l := a.line("/etc/nv_tegra_release"); l != "" {
		e.Answer += "release: " + l + "\n"
	}
	for _, f := range []string{"model", "compatible"} {
		s := strings.ReplaceAll(strings.Trim(a.text("/sys/firmware/devicetree/base/"+f), "\x00\n"), "\x00", " ")
		if strings.Contains(strings.ToLower(s), "nvidia") {
			e.Answer += f + ": " + s + "\n"
		}
	}
	if e.Answer == "" {
		e.Absent, e.Reason = true, "no Jetson"
	}
	return one(e)
}

// askAscendFiles reads the driver's own files, at the path that its
// installation recorded.
func askAscendFiles(_ context.Context, a *asker) []Evidence {
	install := a.file("ascend_install.info", "/etc/ascend_install.info")
	base := cann.ParseInfo([]byte(install.Answer))["driver_install_path_param"]
	if !path.IsAbs(base) {
		base = "/usr/local/Ascend"
	}
	return []Evidence{
		install,
		a.file("ascend driver", base+"/driver/version.info"),
		a.file("ascend firmware", base+"/firmware/version.info"),
	}
}

// toolkitFiles are where CANN says its version, old and new layout.
var toolkitFiles = []string{
	"/usr/local/Ascend/ascend-toolkit/*/*-linux/ascend_toolkit_install.info",
	"/usr/local/Ascend/cann*/ascend_toolkit_install.info",
	"/usr/local/Ascend/cann*/*-linux/ascend_toolkit_install.info",
}

func askCANN(_ context.Context, a *asker) []Evidence {
	patterns := toolkitFiles
	for _, k := range []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"} {
		if home := run.Getenv(a.env, k); path.IsAbs(home) {
			patterns = append(slices.Clip(patterns),
				home+"/ascend_toolkit_install.info", home+"/*-linux/ascend_toolkit_install.info")
		}
	}
	var out []Evidence
	seen := map[string]bool{}
	for _, p := range patterns {
		for _, f := range a.glob(p) {
			e := a.file("cann", f)
			if e.Answer != "" && !seen[e.Answer] { // the same toolkit through a link
				seen[e.Answer] = true
				out = append(out, e)
			}
		}
	}
	if len(out) == 0 {
		out = one(Evidence{Source: "cann", Asked: "/usr/local/Ascend/**/ascend_toolkit_install.info", Absent: true, Reason: "no CANN toolkit found"})
	}
	return out
}
