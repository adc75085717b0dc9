package host

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/host/chip"
	"golang.org/x/sync/errgroup"
)

// toolSources start the vendors' tools.
var toolSources = []source{askNPU, askGPU}

// Where the tools lie when PATH does not name their folder.
var (
	npuDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/local/Ascend/driver/tools"}
	gpuDirs = []string{"/usr/bin", "/usr/lib/wsl/lib"}
)

// boardsAtOnce bounds how many boards are asked at the same time: npu-smi
// takes a driver lock, so more of them only wait.
const boardsAtOnce = 4

// locate is the tool, or the evidence why it is not started.
func (a *asker) locate(source, name string, dirs []string) (tool, *Evidence) {
	t := a.find(name, dirs)
	switch {
	case t.path == "" && t.reason == "":
		return t, &Evidence{Source: source, Asked: name, Absent: true, Reason: "not installed"}
	case t.path == "":
		return t, &Evidence{Source: source, Asked: name, Reason: t.reason}
	case a.runner == nil:
		return t, &Evidence{Source: source, Asked: t.path, Reason: "not started: it belongs to another root"}
	}
	return t, nil
}

// askNPU asks npu-smi for its lists at once, then for each board that they name.
func askNPU(ctx context.Context, a *asker) []Evidence {
	t, no := a.locate("npu-smi info", "npu-smi", npuDirs)
	if no != nil {
		return one(*no)
	}
	out := make([]Evidence, 3)
	var wg sync.WaitGroup
	for i, args := range [][]string{{"info"}, {"info", "-l"}, {"info", "-m"}} {
		wg.Go(func() { out[i] = a.ask(ctx, "npu-smi "+strings.Join(args, " "), t, args...) })
	}
	wg.Wait()
	ids := npuIDs(out)
	boards := make([][]Evidence, len(ids))
	var g errgroup.Group
	g.SetLimit(boardsAtOnce)
	for i, id := range ids {
		g.Go(func() error { boards[i] = a.board(ctx, t, id); return nil })
	}
	_ = g.Wait() // no board returns an error: its evidence holds it
	for _, b := range boards {
		out = append(out, b...)
	}
	return out
}

// npuIDs are the NPU ids that the lists name, in order of appearance: they may
// begin at 4 or be 32800.
func npuIDs(lists []Evidence) []string {
	rules, err := chip.Load()
	if err != nil {
		return nil
	}
	var ids []string
	seen := map[string]bool{}
	for _, e := range lists {
		for _, r := range readNPU(rules, clean(e.Answer)) {
			for _, d := range r.Devices {
				if d.ID != "" && !seen[d.ID] {
					seen[d.ID] = true
					ids = append(ids, d.ID)
				}
			}
		}
	}
	return ids
}

// board asks for one NPU: the 950 answers with the chip's name at once and
// knows no -c; older ones name it only with -c.
func (a *asker) board(ctx context.Context, t tool, id string) []Evidence {
	const source = "npu-smi info -t board"
	whole := a.ask(ctx, source, t, "info", "-t", "board", "-i", id)
	rules, err := chip.Load()
	if err != nil {
		return one(whole)
	}
	_, board, _ := parseNPUBlocks(rules, clean(whole.Answer))
	for _, d := range board.Devices {
		if d.Name != "" {
			return one(whole)
		}
	}
	return []Evidence{whole, a.ask(ctx, source, t, "info", "-t", "board", "-i", id, "-c", "0")}
}

// queryGPU are the fields asked for; old tools refuse some, which are then left out.
var queryGPU = []string{"index", "name", "uuid", "pci.bus_id", "compute_cap", "driver_version", "memory.total", "memory.used", "mig.mode.current"}

var badField = regexp.MustCompile(`Field "([^"]+)" is not a valid field`)

// askGPU asks two questions at once, and three more, at once too, when these
// leave something open or everything is wanted: each start of nvidia-smi loads
// the driver's library and waits for its lock, and -q asks every sensor.
func askGPU(ctx context.Context, a *asker) []Evidence {
	t, no := a.locate("nvidia-smi", "nvidia-smi", gpuDirs)
	if no != nil {
		return one(*no)
	}
	out := a.gpu(ctx, t, []string{"--version"})
	if a.whole || !gpusTold(out) {
		more := a.atOnce(ctx, t, []string{"-L"}, []string{"-q"}, nil)
		// -L stands before --version: of two that say the same the first is named.
		last := len(out) - 1
		out = append(append(slices.Clone(out[:last]), more[0], out[last]), more[1:]...)
	}
	return out
}

// gpu is the query, with what came before it was understood, and the answers
// to others beside it.
func (a *asker) gpu(ctx context.Context, t tool, others ...[]string) []Evidence {
	var query, out []Evidence
	var wg sync.WaitGroup
	wg.Go(func() { query = a.query(ctx, t) })
	wg.Go(func() { out = a.atOnce(ctx, t, others...) })
	wg.Wait()
	return append(query, out...)
}

func (a *asker) atOnce(ctx context.Context, t tool, questions ...[]string) []Evidence {
	out := make([]Evidence, len(questions))
	var wg sync.WaitGroup
	for i, args := range questions {
		wg.Go(func() { out[i] = a.ask(ctx, strings.TrimSpace("nvidia-smi "+strings.Join(args, " ")), t, args...) })
	}
	wg.Wait()
	return out
}

// gpusTold reports whether the query and --version, in this order, told of
// every GPU all that decides, and nothing out of the ordinary: no field was
// refused or empty ("[GPU requires reset]" is no number), no GPU is split.
func gpusTold(answers []Evidence) bool {
	rules, err := chip.Load()
	if err != nil || len(answers) != 2 {
		return false
	}
	for _, e := range answers {
		if e.ExitCode != 0 || e.Reason != "" || len(faultsIn(rules, chip.NVIDIA, clean(e.Answer))) > 0 {
			return false
		}
	}
	r, ok := parseGPUQuery(clean(answers[0].Answer), queryGPU)
	v, known := parseGPUKeys(clean(answers[1].Answer))
	return ok && known && v.CUDA != "" && r.Driver != "" && !slices.ContainsFunc(r.Devices, func(d Device) bool {
		_, named := rules.GPU(d.Name, true)
		return !named || d.ID == "" || d.UUID == "" || d.Bus == "" || d.ComputeCap == "" || d.MemoryMiB == 0 || d.MIGMode || len(d.MIG) > 0
	})
}

// query asks again without each field that the tool refuses.
func (a *asker) query(ctx context.Context, t tool) []Evidence {
	fields := queryGPU
	var out []Evidence
	for len(fields) > 0 {
		e := a.ask(ctx, "nvidia-smi --query-gpu", t, "--query-gpu="+strings.Join(fields, ","), "--format=csv")
		out = append(out, e)
		m := badField.FindStringSubmatch(e.Answer)
		if m == nil {
			break
		}
		var left []string
		for _, f := range fields {
			if f != m[1] {
				left = append(left, f)
			}
		}
		if len(left) == len(fields) {
			break
		}
		fields = left
	}
	return out
}
