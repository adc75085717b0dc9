package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/data"
)

// An answer is what must be concluded from one collected output. nil is not
// checked; "-" is a value that must stay unknown.
type answer struct {
	File     string   `yaml:"file"`
	Text     string   `yaml:"text"` // instead of a file
	Name     string   `yaml:"name"`
	Exit     int      `yaml:"exit"`
	State    string   `yaml:"state"`
	Family   *string  `yaml:"family"`
	Target   *string  `yaml:"target"`
	SoC      *string  `yaml:"soc"`
	SoCs     []string `yaml:"socs"`
	Rule     *string  `yaml:"rule"`
	Count    *int     `yaml:"count"`
	Chips    *int     `yaml:"chips"`
	AtLeast  *bool    `yaml:"at_least"`
	IDs      []string `yaml:"ids"`
	Phys     []string `yaml:"phys"`
	Driver   *string  `yaml:"driver"`
	Firmware *string  `yaml:"firmware"`
	CUDA     *string  `yaml:"cuda"`
	Memory   *int64   `yaml:"memory"`
	PCI      *string  `yaml:"pci"`
	MIG      []int64  `yaml:"mig"`
	InUse    *int     `yaml:"in_use"`
	Faulty   *int     `yaml:"faulty"`
	Usable   *bool    `yaml:"usable"`
	Fault    *string  `yaml:"fault"`
	Assumed  *string  `yaml:"assumed"`
	Tool     *string  `yaml:"tool"`
	CANN     *string  `yaml:"cann"`
	CANNs    []string `yaml:"canns"`
	CANNArch *string  `yaml:"cann_arch"`
	Pre      *bool    `yaml:"pre_release"`
	Has      []string `yaml:"has"`
	Hasnt    []string `yaml:"hasnt"`
}

func readAnswers(t *testing.T, file string) []answer {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Answers []answer `yaml:"answers"`
	}
	if err := data.Decode(file, b, &f); err != nil {
		t.Fatal(err)
	}
	return f.Answers
}

// judged is the verdict on a pasted text.
func judged(t *testing.T, text string) (Facts, Verdict) {
	t.Helper()
	f, err := From(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f, Judge(f)
}

func TestCollectedOutputs(t *testing.T) {
	t.Parallel()
	answers := readAnswers(t, "answers.yaml")
	var files []string
	right := 0
	for _, a := range answers {
		files = append(files, a.File)
		b, err := os.ReadFile(filepath.Join("testdata", a.File))
		if err != nil {
			t.Fatal(err)
		}
		wrong := a.check(judged(t, string(b)))
		if len(wrong) == 0 {
			right++
		}
		for _, w := range wrong {
			t.Errorf("%s: %s", a.File, w)
		}
	}
	t.Logf("score: %d of %d collected outputs judged right", right, len(answers))
	for _, dir := range []string{"detect", "versions"} {
		found, err := filepath.Glob(filepath.Join("testdata", dir, "*.txt"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no files in testdata/%s: %v", dir, err)
		}
		for _, f := range found {
			if rel := strings.TrimPrefix(f, "testdata/"); !slices.Contains(files, rel) {
				t.Errorf("%s has no answer in answers.yaml", rel)
			}
		}
	}
}

// check lists what is wrong with a verdict.
func (a answer) check(f Facts, v Verdict) []string {
	var wrong []string
	differ := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s: got %v, want %v", what, got, want))
		}
	}
	text := func(what, got string, want *string) {
		if want != nil {
			differ(what, got, strings.TrimPrefix(*want, "-"))
		}
	}
	differ("exit", v.ExitCode(), a.Exit)
	differ("state", v.State, a.State)
	text("family", v.Family, a.Family)
	text("target", v.Target, a.Target)
	text("soc", v.SoC, a.SoC)
	text("rule", v.ChipRule, a.Rule)
	text("driver", v.Driver, a.Driver)
	text("firmware", v.Firmware, a.Firmware)
	text("cuda", v.CUDA, a.CUDA)
	text("assumed", v.Assumed, a.Assumed)
	if a.SoCs != nil {
		differ("socs", v.SoCs, a.SoCs)
	}
	number := func(what string, got int, want *int) {
		if want != nil {
			differ(what, got, *want)
		}
	}
	number("count", v.Count, a.Count)
	number("chips", v.Chips, a.Chips)
	number("in use", v.Health.InUse, a.InUse)
	number("faulty", v.Health.Faulty, a.Faulty)
	yes := func(what string, got bool, want *bool) {
		if want != nil {
			differ(what, got, *want)
		}
	}
	yes("at least", v.AtLeast, a.AtLeast)
	yes("usable", v.Health.Usable, a.Usable)
	wrong = append(wrong, a.checkDevices(v)...)
	wrong = append(wrong, a.checkFacts(f, v)...)
	return append(wrong, a.checkWords(v)...)
}

func (a answer) checkDevices(v Verdict) []string {
	var wrong, ids, phys []string
	var mig []int64
	for _, d := range v.Devices {
		ids, phys = append(ids, d.ID), append(phys, d.Phy)
		for _, m := range d.MIG {
			mig = append(mig, m.MemoryMiB)
		}
	}
	if a.IDs != nil && !slices.Equal(ids, a.IDs) {
		wrong = append(wrong, fmt.Sprintf("ids: got %v, want %v", ids, a.IDs))
	}
	if a.Phys != nil && !slices.Equal(phys, a.Phys) {
		wrong = append(wrong, fmt.Sprintf("physical ids: got %v, want %v", phys, a.Phys))
	}
	if a.MIG != nil && !slices.Equal(mig, a.MIG) {
		wrong = append(wrong, fmt.Sprintf("MIG memory: got %v, want %v", mig, a.MIG))
	}
	first := Device{}
	if len(v.Devices) > 0 {
		first = v.Devices[0]
	}
	if a.Memory != nil && first.MemoryMiB != *a.Memory {
		wrong = append(wrong, fmt.Sprintf("memory: got %d, want %d", first.MemoryMiB, *a.Memory))
	}
	if a.PCI != nil && first.PCI != *a.PCI {
		wrong = append(wrong, fmt.Sprintf("pci: got %s, want %s", first.PCI, *a.PCI))
	}
	return wrong
}

func (a answer) checkFacts(f Facts, v Verdict) []string {
	var wrong, canns []string
	cann := CANN{}
	for i, c := range f.Ascend.CANN {
		canns = append(canns, c.Version)
		if i == 0 {
			cann = c
		}
	}
	if a.CANN != nil && cann.Version != *a.CANN {
		wrong = append(wrong, fmt.Sprintf("CANN: got %s, want %s", cann.Version, *a.CANN))
	}
	if a.CANNArch != nil && cann.Arch != *a.CANNArch {
		wrong = append(wrong, fmt.Sprintf("CANN arch: got %s, want %s", cann.Arch, *a.CANNArch))
	}
	if a.Pre != nil && cann.PreRelease != *a.Pre {
		wrong = append(wrong, fmt.Sprintf("pre-release: got %v, want %v", cann.PreRelease, *a.Pre))
	}
	if a.CANNs != nil && !slices.Equal(canns, a.CANNs) {
		wrong = append(wrong, fmt.Sprintf("CANN versions: got %v, want %v", canns, a.CANNs))
	}
	if a.Fault != nil && (len(v.Health.Faults) == 0 || v.Health.Faults[0].Rule != *a.Fault) {
		wrong = append(wrong, fmt.Sprintf("fault: got %v, want %s first", v.Health.Faults, *a.Fault))
	}
	if a.Tool != nil && !slices.Contains(v.Recognised, *a.Tool) {
		wrong = append(wrong, fmt.Sprintf("recognised: got %v, want %s", v.Recognised, *a.Tool))
	}
	return wrong
}

// checkWords looks in all that a person is told; the devices' own product
// names are left out.
func (a answer) checkWords(v Verdict) []string {
	v.Devices = nil
	v.Health.Faults = slices.Clone(v.Health.Faults)
	for i := range v.Health.Faults {
		v.Health.Faults[i].Text = ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return []string{err.Error()}
	}
	all := strings.NewReplacer(`\u003e`, ">", `\u003c`, "<", `\u0026`, "&").Replace(string(b))
	var wrong []string
	for _, w := range a.Has {
		if !strings.Contains(all, w) {
			wrong = append(wrong, fmt.Sprintf("%q is not said in %s", w, all))
		}
	}
	for _, w := range a.Hasnt {
		if strings.Contains(strings.ToLower(all), strings.ToLower(w)) {
			wrong = append(wrong, fmt.Sprintf("%q is said in %s", w, all))
		}
	}
	return wrong
}
