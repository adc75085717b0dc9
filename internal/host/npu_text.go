package host

import (
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// parseNPUMap reads `npu-smi info -m`: columns by their names, whatever their
// order and the blanks between them; the name is the one that may hold blanks.
func parseNPUMap(rules *chip.Rules, text string) (Reading, bool) {
	r := Reading{Tool: "npu-smi info -m", Vendor: chip.Huawei}
	var columns []string
	name, seen := -1, false
	for _, line := range lines(text) {
		if cols := rules.Columns(line); isMapHeader(cols) {
			columns, seen = cols, true
			name = slices.Index(cols, "chip_name")
			continue
		}
		if columns == nil || strings.TrimSpace(line) == "" {
			continue
		}
		d, ok := mapRow(columns, name, strings.Fields(line))
		if !ok {
			columns = nil // the table ended; a later header starts another
			continue
		}
		if !rules.NotChip(d.Name) {
			r.Devices = append(r.Devices, d)
		}
	}
	return r, seen
}

func isMapHeader(cols []string) bool {
	return slices.Contains(cols, "chip_name") && slices.Contains(cols, "npu_id") && len(cols) >= 3
}

func mapRow(columns []string, name int, f []string) (Device, bool) {
	if len(f) < len(columns) {
		return Device{}, false
	}
	after := len(columns) - 1 - name
	var d Device
	for i, c := range columns {
		v := ""
		switch {
		case i < name:
			v = f[i]
		case i == name:
			v = strings.Join(f[name:len(f)-after], " ")
		default:
			v = f[len(f)-(len(columns)-i)]
		}
		switch c {
		case "npu_id":
			d.ID = v
		case "chip_id":
			d.Chip = v
		case "logic_id":
			d.Logic = given(v)
		case "phy_id":
			d.Phy = given(v)
		case "chip_name":
			d.Name = v
		}
	}
	return d, isNumber(d.ID)
}

// parseNPUBlocks reads the "key : value" answers of `npu-smi info -l` and
// `-t board`, several in one text too. A block begins at NPU ID.
func parseNPUBlocks(rules *chip.Rules, text string) (list, board Reading, ok bool) {
	list = Reading{Tool: "npu-smi info -l", Vendor: chip.Huawei}
	board = Reading{Tool: "npu-smi info -t board", Vendor: chip.Huawei}
	var block map[string]string
	flush := func() {
		if len(block) > 0 {
			ok = true
			takeBlock(block, &list, &board)
		}
		block = nil
	}
	for _, line := range lines(text) {
		key, value, isPair := keyValue(line)
		field := rules.Field(key)
		switch {
		case !isPair || field == "":
			// "NPU ID" ends nothing: unknown keys stand between known ones.
			if strings.TrimSpace(line) != "" && !isPair {
				flush()
			}
		case field == "total":
			flush()
			list.Total = int(number(value))
			ok = true
		case field == "npu_id":
			flush()
			if isNumber(value) {
				block = map[string]string{"npu_id": value}
			}
		case block == nil && field == "chip_count" && len(list.Devices)+len(board.Devices) == 0:
			list.Total = int(number(value)) // "Card Count" at the head of other versions
			ok = true
		case block != nil && field == "chip_id" && block["chip_id"] != "":
			id := block["npu_id"] // the next chip of the same card
			flush()
			block = map[string]string{"npu_id": id, "chip_id": value}
		case block != nil:
			block[field] = value
		case slices.Contains(headless, field):
			block = map[string]string{field: value}
		}
	}
	flush()
	// Without a total, other answers about one card look the same (-t usages).
	if n := len(list.Devices); list.Total > n || n > 0 && list.Total == 0 {
		list.Cut = true
	}
	return list, board, ok
}

// headless are the fields that begin a board answer whose head is cut off; no
// other tool has keys of these names.
var headless = []string{"npu_name", "chip_name", "chip_type", "software"}

func takeBlock(b map[string]string, list, board *Reading) {
	d := Device{
		ID: b["npu_id"], Chip: b["chip_id"], Name: b["chip_name"], NPUName: given(b["npu_name"]),
		Product: b["product"], Bus: strings.ToLower(busPattern.FindString(b["bus"])),
	}
	d.PCI = pciPair(b["pci_vendor"], b["pci_device"])
	if d.PCI != "" {
		d.Class = "" // the board answer's Class ID is NA on most cards
	}
	isBoard := d.Name != "" || d.NPUName != "" || b["chip_type"] != "" || d.PCI != "" || b["software"] != "" || b["firmware"] != "" || b["board_id"] != "" || b["model"] != "" || b["bus"] != ""
	if !isBoard {
		list.Devices = append(list.Devices, d)
		return
	}
	if v := releaseText(b["software"]); v != "" {
		board.Driver = v
	}
	if v := releaseText(b["firmware"]); v != "" {
		board.Firmware = v
	}
	if c := b["compatibility"]; c != "" && !strings.EqualFold(c, "OK") {
		board.Notes = append(board.Notes, "driver and firmware compatibility: "+c)
		d.Health = "compatibility " + c
	}
	board.Devices = append(board.Devices, d)
}

// pciPair makes "19e5:d806" of "0x19E5" and "0xD806".
func pciPair(vendor, device string) string {
	v := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(vendor)), "0x")
	d := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(device)), "0x")
	if len(v) != 4 || len(d) != 4 {
		return ""
	}
	return v + ":" + d
}
