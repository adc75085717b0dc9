package matrix

import (
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/image"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/version"
)

func plan(t *testing.T) []Row {
	t.Helper()
	rows, err := Plan(Options{Repository: "registry.example/invar", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestPlan checks what every row promises against the data that it came from.
func TestPlan(t *testing.T) {
	t.Parallel()
	rows := plan(t)
	if len(rows) > 256 {
		t.Errorf("%d rows; GitHub makes 256 jobs of a matrix at most", len(rows))
	}
	names, targets := map[string]bool{}, map[string]int{}
	for _, r := range rows {
		if names[r.Name] {
			t.Errorf("%s twice", r.Name)
		}
		names[r.Name] = true
		targets[r.Target]++
		tg, err := target.Find(r.Target)
		if err != nil {
			t.Fatal(err)
		}
		if !version.Within(version.PEP440, tg.Python.Torch, r.Torch) || !version.Within(version.PEP440, ">="+tg.Python.Minimum, r.Python) {
			t.Errorf("%s: the target wants torch %s and Python %s or newer", r.Name, tg.Python.Torch, tg.Python.Minimum)
		}
		if r.Runner == "" || r.Container == "" || r.Require < 1 || r.Platform != "linux/"+r.Arch || !strings.Contains(r.Requirements, "torch=="+r.Torch) {
			t.Errorf("%s: %+v", r.Name, r)
		}
		if ascend := tg.Flavour == "ascend"; ascend != (r.CANN != "") || ascend != (r.SoC != "") || ascend != strings.Contains(r.Requirements, "torch-npu==") {
			t.Errorf("%s: CANN %q, SoC %q, requirements %q", r.Name, r.CANN, r.SoC, r.Requirements)
		}
		if r.CANN != "" && !strings.Contains(r.Container, ":"+r.CANN+"-") {
			t.Errorf("%s: CANN %s in the container %s", r.Name, r.CANN, r.Container)
		}
	}
	all, err := target.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, tg := range all {
		if targets[tg.Name] == 0 {
			t.Errorf("no row for the target %s", tg.Name)
		}
	}
}

// TestImages: the rows that are images are those of the image matrix, each once
// for each platform, from its base and with its tags.
func TestImages(t *testing.T) {
	t.Parallel()
	images, err := image.Plan(image.Options{Repository: "registry.example/invar", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	images = slices.DeleteFunc(images, func(im image.Row) bool { return im.Target == "" })
	rows := slices.DeleteFunc(plan(t), func(r Row) bool { return !r.Image })
	want := 0
	for _, im := range images {
		for _, p := range im.Platforms {
			want++
			_, arch, _ := strings.Cut(p, "/")
			alone, err := image.Plan(image.Options{Families: []string{im.Family}, OS: im.OS, Repository: "registry.example/invar", Version: "1.0.0-" + arch})
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Family != im.Family || r.OS != im.OS || r.Platform != p })
			if len(got) != 1 {
				t.Errorf("%s for %s: %d rows, want 1", im.Name, p, len(got))
				continue
			}
			r := got[0]
			if r.Container != im.Base || !slices.Equal(r.Tags, im.Tags) || r.Tag != alone[0].Tags[0] || r.Require != im.Require {
				t.Errorf("%s for %s: %+v", im.Name, p, r)
			}
			if req, ok := im.Args[torchArg]; ok && req != r.Requirements {
				t.Errorf("%s installs %q, the row says %q", im.Name, req, r.Requirements)
			}
		}
	}
	if len(rows) != want {
		t.Errorf("%d rows are images, want %d", len(rows), want)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	rows := plan(t)
	for _, tc := range []struct {
		name string
		f    Filter
		rows int // -1: some
		code int
	}{
		{"nothing asked", Filter{}, len(rows), 0},
		{"one row", Filter{Targets: []string{"cpu"}, Arches: []string{"aarch64"}, Systems: []string{"ubuntu24.04"}, Torches: []string{"2.10.0"}}, 1, 0},
		{"alternatives", Filter{Targets: []string{"cpu"}, Arches: []string{"amd64", "arm64"}, Systems: []string{"ubuntu24.04"}, Torches: []string{"2.10", "2.11"}}, 4, 0},
		{"minor version is no prefix of letters", Filter{Torches: []string{"2.1"}}, 0, report.Usage},
		{"unknown target", Filter{Targets: []string{"cpu", "rocm"}}, 0, report.Usage},
		{"refused target", Filter{Targets: []string{"ascend310p"}}, 0, report.Unmet},
		{"a SoC is no target", Filter{Targets: []string{"ascend910b1"}}, 0, report.Usage},
		{"known, and never together", Filter{Targets: []string{"ascend950"}, Systems: []string{"debian12"}}, 0, report.Usage},
		{"case", Filter{Arches: []string{"AMD64"}}, 0, report.Usage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.f.Apply(rows)
			if report.ExitCode(err) != tc.code || len(got) != tc.rows {
				t.Errorf("%d rows (%v), want %d and exit code %d", len(got), err, tc.rows, tc.code)
			}
		})
	}
	if len(rows) != len(plan(t)) {
		t.Error("a filter changed the rows that it was given")
	}
}

func TestContainer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ base, version, image, want string }{
		{"quay.io/ascend/cann:9.1.0-910b-ubuntu22.04-py3.12", "3.10", "", "quay.io/ascend/cann:9.1.0-910b-ubuntu22.04-py3.10"},
		{"quay.io/ascend/cann:9.1.0-py3.12@sha256:00", "3.10", "", "quay.io/ascend/cann:9.1.0-py3.10"},
		{"quay.io/ascend/cann:9.1.0-py3.12@sha256:00", "3.12", "", "quay.io/ascend/cann:9.1.0-py3.12@sha256:00"},
		{"docker.io/library/ubuntu:24.04", "3.12", "", "docker.io/library/ubuntu:24.04"},
		{"docker.io/library/debian:bookworm-slim", "3.10", "python:3.10", "python:3.10"},
	} {
		if got := container(tc.base, basePython{Version: tc.version, Image: tc.image}); got != tc.want {
			t.Errorf("%s with Python %s: %s, want %s", tc.base, tc.version, got, tc.want)
		}
	}
}

// TestBadData: mistakes in matrix.yaml are found when it is read.
func TestBadData(t *testing.T) {
	t.Parallel()
	good := string(embedded)
	for name, change := range map[string][2]string{
		"unknown key":     {"label:", "lable:"},
		"order of torch":  {"version: 2.14.1", "version: 2.16.0"},
		"no version":      {"version: 2.14.1", "version: newest"},
		"no range":        {`python: ">=3.11,<3.16"`, `python: "3.11 or so"`},
		"base twice":      {"docker.io/openeuler/openeuler:24.03-lts", "docker.io/library/ubuntu:24.04"},
		"without sources": {"torch_source:", "#"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Errorf("%s: nothing to change", name)
		}
		if _, err := decode("matrix.yaml", []byte(text)); err == nil {
			t.Errorf("%s: was read without an error", name)
		}
	}
	f, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"docker.io/library/ubuntu:22.04", "quay.io/ascend/cann-other:1", ""} {
		if _, err := f.pythons(ref); err == nil {
			t.Errorf("%q has Pythons", ref)
		}
	}
	for _, ref := range []string{"docker.io/library/ubuntu:24.04@sha256:00", "quay.io/ascend/cann:9.1.0-a3-ubuntu22.04-py3.12"} {
		if _, err := f.pythons(ref); err != nil {
			t.Error(err)
		}
	}
}
