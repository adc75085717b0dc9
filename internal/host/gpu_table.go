package host

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/invar-ops/invar/internal/host/chip"
)

// What the last word of the name cell may be: persistence mode, or the driver
// model on Windows.
var (
	persistence  = []string{"On", "Off", "N/A", "Enabled", "Disabled", "Default"}
	driverModels = []string{"WDDM", "TCC", "MCDM"}
)

var (
	gpuMemory = regexp.MustCompile(`([0-9]+)\s*MiB\s*/\s*([0-9]+)\s*MiB`)
	migRow    = regexp.MustCompile(`^[0-9]+\s+[0-9]+\s+[0-9]+\s+[0-9]+$`)
	bannerGap = regexp.MustCompile(`\s{2,}`)
	colonGap  = regexp.MustCompile(`:\s+`)
)

// A gpuTable reads the table of plain nvidia-smi: a banner of keys, three rows
// a GPU, then MIG devices, then processes.
type gpuTable struct {
	r       Reading
	in      bool
	part    string // "", "mig" or "processes"
	open    bool   // the last device's rows are not closed by a rule yet
	wddm    bool
	migRows int
	earlier int // devices of the tables before this one
}

// parseGPUTable reads the table in text; ok is false when there is none.
func parseGPUTable(text string) (r Reading, wddm, ok bool) {
	t := &gpuTable{r: Reading{Tool: "nvidia-smi", Vendor: chip.NVIDIA}}
	for _, line := range lines(text) {
		t.line(line)
	}
	t.r.Cut = t.open || t.in && len(t.r.Devices) == 0
	return t.r, t.wddm, t.in
}

func (t *gpuTable) line(line string) {
	if is, whole := border(line); is {
		if t.open && whole {
			t.open = false
		}
		return
	}
	row, ok := cells(line)
	if !ok {
		return
	}
	switch {
	case strings.HasPrefix(row[0], "NVIDIA-SMI"):
		t.banner(row[0])
	case strings.HasPrefix(row[0], "MIG devices"):
		t.part, t.open, t.in = "mig", false, true
	case strings.HasPrefix(row[0], "Processes"), strings.Contains(row[0], "Process name"):
		t.part, t.open = "processes", false
	case t.part == "processes":
		t.process(row[0])
	case t.part == "mig" || migRow.MatchString(row[0]):
		t.mig(row)
	default:
		t.device(row)
	}
}

// banner reads "NVIDIA-SMI 610.57.04   KMD Version: 610.57.04   CUDA UMD Version: 13.3".
func (t *gpuTable) banner(cell string) {
	t.in, t.part, t.open, t.earlier = true, "", false, len(t.r.Devices)
	values := map[string]string{}
	for _, part := range bannerGap.Split(colonGap.ReplaceAllString(cell, ": "), -1) {
		if k, v, ok := keyValue(part); ok {
			values[strings.ToLower(k)] = v
		} else if v, ok := strings.CutPrefix(part, "NVIDIA-SMI "); ok {
			t.r.Version = releaseText(v)
		}
	}
	t.r.Driver, t.r.CUDA = gpuVersions(values)
}

// gpuVersions picks the driver and the CUDA version out of lower-case keys.
// Driver 610 renamed both; the old keys then hold a sentence.
func gpuVersions(values map[string]string) (driver, cuda string) {
	for _, k := range []string{"kmd version", "driver version", "nvidia driver version"} {
		if driver == "" {
			driver = releaseText(values[k])
		}
	}
	for _, k := range []string{"cuda umd version", "cuda version"} {
		if cuda == "" {
			cuda = releaseText(values[k])
		}
	}
	return driver, cuda
}

func (t *gpuTable) device(row []string) {
	f := strings.Fields(row[0])
	if len(row) >= 2 && len(f) >= 2 && isNumber(f[0]) && t.name(row, f) {
		return
	}
	if len(t.r.Devices) == 0 {
		return
	}
	t.detail(&t.r.Devices[len(t.r.Devices)-1], row)
}

// name reads "0  NVIDIA B200  On | 00000000:00:04.0 Off | 0".
func (t *gpuTable) name(row, f []string) bool {
	last := f[len(f)-1]
	isModel := slices.Contains(driverModels, last)
	bus := busPattern.FindString(row[1])
	if !isModel && !slices.Contains(persistence, last) && bus == "" {
		return false
	}
	if bus == "" && given(strings.Fields(row[1] + " x")[0]) != "" {
		return false
	}
	words := f[1:]
	if isModel || slices.Contains(persistence, last) {
		words = f[1 : len(f)-1]
	}
	if len(words) == 0 {
		return false
	}
	name := strings.Join(words, " ")
	if !strings.ContainsFunc(name, unicode.IsLetter) {
		return false // the second row of an NPU has numbers here
	}
	t.in, t.open, t.wddm = true, true, t.wddm || isModel
	d := Device{ID: f[0], Name: name, NameCut: strings.HasSuffix(name, "..."), Bus: strings.ToLower(bus)}
	if i := sameDevice(t.r.Devices[:t.earlier], d); i >= 0 {
		t.r.Devices = slices.Delete(t.r.Devices, i, i+1) // the later state counts
		t.earlier--
	}
	t.r.Devices = append(t.r.Devices, d)
	return true
}

// detail reads the second and third row of a GPU.
func (t *gpuTable) detail(d *Device, row []string) {
	for _, c := range row {
		if m := gpuMemory.FindStringSubmatch(c); m != nil {
			d.UsedMiB, d.MemoryMiB = number(m[1]), number(m[2])
		}
	}
	last := row[len(row)-1]
	if len(row) >= 3 && strings.Contains(last, "%") {
		d.Busy = strings.Fields(last)[0]
	}
	if last == "Enabled" {
		d.MIGMode = true
	}
	if strings.Contains(row[0], "ERR!") || strings.Contains(last, "ERR!") {
		d.Health = "ERR!"
	}
}

// mig reads "0  2  0  0 | 26MiB / 40448MiB | ..."; further rows of an instance
// hold other memory.
func (t *gpuTable) mig(row []string) {
	if !migRow.MatchString(row[0]) || len(row) < 2 {
		return
	}
	t.in = true
	gpu := strings.Fields(row[0])[0]
	m := MIG{}
	if s := gpuMemory.FindStringSubmatch(row[1]); s != nil {
		m.MemoryMiB = number(s[2])
	}
	for i := range t.r.Devices {
		if t.r.Devices[i].ID == gpu {
			t.r.Devices[i].MIG = append(t.r.Devices[i].MIG, m)
			t.r.Devices[i].MIGMode = true
			return
		}
	}
	t.migRows++
	if t.migRows == 1 {
		t.r.Notes = append(t.r.Notes, "MIG instances of a GPU whose own rows are not in the text")
	}
}

func (t *gpuTable) process(cell string) {
	f := strings.Fields(cell)
	if len(f) < 4 || !isNumber(f[0]) {
		return
	}
	for i := range t.r.Devices {
		if t.r.Devices[i].ID == f[0] {
			t.r.Devices[i].Processes++
		}
	}
}
