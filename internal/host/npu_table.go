package host

import (
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

var (
	npuBanner    = regexp.MustCompile(`npu-smi\s+(\S+)\s+Version:\s*(\S+)`)
	numericCells = regexp.MustCompile(`^[0-9]+(?:\s+[0-9]+)*$`)
)

// A npuTable reads the table of plain `npu-smi info` row by row: two rows a
// device, then the processes. Layouts differ in width, in the number of cells
// and in the columns of the last cell, so headers are read where they are and
// the shape of a row is used where they are cut off.
type npuTable struct {
	rules *chip.Rules
	r     Reading

	usage     []string // columns of the last cell in second rows, by header
	inTable   bool     // a banner, header or row was seen
	processes bool     // the process part began: the devices are complete
	header    bool
	open      *Device // first row seen, second awaited
	earlier   int     // devices of the tables before this one
}

// parseNPUTable reads the table in text; ok is false when there is none.
func parseNPUTable(rules *chip.Rules, text string) (Reading, bool) {
	t := &npuTable{rules: rules, r: Reading{Tool: "npu-smi info", Vendor: chip.Huawei}}
	for _, line := range lines(text) {
		t.line(line)
	}
	t.close(true)
	t.r.Cut = len(t.r.Devices) > 0 && !t.processes || t.inTable && len(t.r.Devices) == 0
	if len(t.r.Devices) > 0 && !t.header {
		t.r.Cut = true
		t.r.Notes = append(t.r.Notes, "the header is cut off; rows were read by their shape")
	}
	return t.r, t.inTable
}

func (t *npuTable) line(line string) {
	if m := npuBanner.FindStringSubmatch(line); m != nil {
		t.close(false)
		t.r.Version, t.r.Driver = m[1], releaseText(m[2])
		t.inTable, t.processes, t.earlier = true, false, len(t.r.Devices)
		return
	}
	row, ok := cells(line)
	if !ok {
		return
	}
	switch {
	case strings.Contains(line, "running processes"):
		t.close(false)
		t.processes = t.processes || t.inTable || strings.Contains(line, "NPU")
	case t.isHeader(row):
	case t.processes:
		t.process(row)
	case t.open != nil:
		t.second(row)
	default:
		t.first(row)
	}
}

// isHeader takes in header rows of both layouts and of the process part.
func (t *npuTable) isHeader(row []string) bool {
	fields := map[string]bool{}
	for _, c := range row {
		for _, f := range t.rules.Columns(c) {
			fields[f] = true
		}
	}
	switch {
	case fields["process"]:
		t.close(false)
		t.processes = t.inTable
		return true
	case fields["health"] && fields["name"], fields["health"] && fields["npu_id"]:
		t.header, t.inTable = true, true
		return true
	case fields["bus"] && (fields["memory"] || fields["hbm"] || fields["util"]):
		t.header, t.inTable = true, true
		t.usage = t.rules.Columns(row[len(row)-1])
		return true
	}
	return false
}

// first reads "id name | health | ..." or "id | name | health | ...".
func (t *npuTable) first(row []string) {
	id, name, rest := "", "", row[1:]
	switch {
	case len(row) >= 3 && isNumber(row[0]) && isWord(row[2]) && !isWord2Row(row):
		id, name, rest = row[0], row[1], row[2:]
	default:
		f := strings.Fields(row[0])
		if len(f) < 2 || !isNumber(f[0]) {
			return
		}
		id, name = f[0], strings.Join(f[1:], " ")
	}
	if len(rest) == 0 || !isWord(rest[0]) || numericCells.MatchString(name) && given(rest[0]) == "" {
		return
	}
	if numericCells.MatchString(name) && !t.knownName(name) {
		return
	}
	t.inTable = true
	t.open = &Device{ID: id, Name: name, Health: rest[0]}
	if n := strings.TrimSpace(name); given(n) == "" || strings.Trim(n, "xX*") == "" {
		t.open.Name = ""
	}
}

func (t *npuTable) knownName(name string) bool { _, ok := t.rules.Name(name, ""); return ok }

// isWord2Row reports whether row is the second row of a device: a bus id in it.
func isWord2Row(row []string) bool { return busPattern.MatchString(strings.Join(row, " ")) }

// isWord accepts health words in any script, and no numbers.
func isWord(s string) bool {
	return s != "" && !strings.ContainsAny(s, "0123456789/:")
}

// second reads "chip phy | bus | util memory hbm", with an empty cell or two first on the 950.
func (t *npuTable) second(row []string) {
	d := t.open
	f := strings.Fields(row[0])
	if len(f) > 0 && isNumber(f[0]) {
		d.Chip = f[0]
	}
	if len(f) > 1 && isNumber(f[1]) {
		d.Phy = f[1]
	}
	for _, c := range row[1:] {
		if b := busPattern.FindString(c); b != "" {
			d.Bus = strings.ToLower(b)
		}
	}
	if len(row) > 2 {
		t.memory(d, row[len(row)-1])
	}
	t.close(false)
}

// memory reads "util  used / total  used / total" by the header's columns;
// without a header the last pair is the HBM, which every chip but 310P has.
func (t *npuTable) memory(d *Device, cell string) {
	values := usageValues(cell)
	d.Busy = given(values[0])
	pairs := map[string]string{}
	columns := t.usage
	if len(columns) != len(values) {
		columns = []string{"util", "memory", "hbm"}
	}
	for i, v := range values {
		if i < len(columns) {
			pairs[columns[i]] = v
		}
		if i < len(columns) && columns[i] == "util" {
			d.Busy = given(v)
		}
	}
	best := pairs["hbm"]
	if best == "" {
		best = pairs["memory"]
	}
	used, total, ok := strings.Cut(best, "/")
	if ok {
		d.UsedMiB, d.MemoryMiB = number(used), number(total)
	}
}

// usageValues splits "0  37623/ 44278" into values, pairs kept together.
func usageValues(cell string) []string {
	spaced := strings.ReplaceAll(cell, "/", " / ")
	var out []string
	f := strings.Fields(spaced)
	for i := 0; i < len(f); i++ {
		switch {
		case f[i] == "/" && len(out) > 0:
			out[len(out)-1] += "/"
			if i+1 < len(f) {
				i++
				out[len(out)-1] += f[i]
			}
		default:
			out = append(out, f[i])
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

// close takes the open device in. A device whose second row is missing is one
// all the same.
func (t *npuTable) close(atEnd bool) {
	if t.open == nil {
		return
	}
	if atEnd {
		t.r.Notes = append(t.r.Notes, "the text ends inside a device")
	}
	defer func() { t.open = nil }()
	if i := sameDevice(t.r.Devices[:t.earlier], *t.open); i >= 0 {
		t.r.Devices[i] = *t.open
		return
	}
	if len(t.r.Devices) <= maxDevices {
		t.r.Devices = append(t.r.Devices, *t.open)
	}
}

// sameDevice is the place of d among devices of earlier tables, or -1: a text
// may show one machine twice, or two machines whose cards have the same ids.
func sameDevice(devices []Device, d Device) int {
	return slices.IndexFunc(devices, func(o Device) bool {
		return o.ID == d.ID && o.Chip == d.Chip && o.Bus == d.Bus && o.Name == d.Name
	})
}

func (t *npuTable) process(row []string) {
	f := strings.Fields(row[0])
	if len(row) < 3 || len(f) == 0 || !isNumber(f[0]) || !isNumber(row[1]) {
		return
	}
	for i := range t.r.Devices {
		d := &t.r.Devices[i]
		if d.ID == f[0] && (len(f) < 2 || d.Chip == "" || d.Chip == f[1]) {
			d.Processes++
			return
		}
	}
}
