package opcheck

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/scripts"
)

// both runs a verification and, in the same process, a plain loop that shares
// only the input data with it: one call for each number of rows, compared with
// the largest.
const both = `
import json, sys
sys.path.insert(0, sys.argv[1])
from invar_probe import cases, verify
from invar_probe.channel import Channel
from invar_probe.locate import Locator
from invar_probe.schedule import DTYPES, parse
import torch
channel = Channel()
request = json.load(sys.stdin)
schedule = parse(request["schedule"])
spec = schedule.operators[0]
found = verify.run(request, channel)["cases"][0]
if "error" in found:
    raise SystemExit(found["error"])
locate = Locator(request["namespace"])
data = cases.make(spec, DTYPES[found["dtype"]], schedule.most_rows(), request["seeds"][0], locate)
rows = schedule.sweeps["sizes"].rows
op, x = locate(spec.operator), data.pool
whole = op(x, *data.fixed)
differing = [m for m in rows if not torch.equal(op(x[:m], *data.fixed).view(torch.uint8), whole[:m].view(torch.uint8))]
channel.answer({"loop": differing, "case": found})
`

// found runs both in exe.
func found(t *testing.T, exe string, o Options) (loop, sweep []int) {
	t.Helper()
	f, err := load()
	if err != nil {
		t.Fatal(err)
	}
	req, _, err := o.request(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := scripts.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: []string{exe, "-c", both, dir}, Env: os.Environ(), Stdin: bytes.NewReader(in)})
	if err != nil {
		t.Fatalf("%v\n%s", err, res.Stderr)
	}
	var got struct {
		Loop []int `json:"loop"`
		Case Case  `json:"case"`
	}
	if err := json.Unmarshal([]byte(run.LastLines(string(res.Stdout), 1)), &got); err != nil {
		t.Fatalf("%v in %s", err, res.Stdout)
	}
	if got.Case.Control.Differ == 0 {
		t.Errorf("the control was not caught in %d pairs", got.Case.Control.Pairs)
	}
	return got.Loop, got.Case.ByRows()
}

var counts = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17, 31, 32, 33, 64, 65, 128, 129, 255, 256, 257}

// What torch does differs from machine to machine and from day to day; that a
// sweep and a plain loop in one process find the same does not.
func TestFindsExactlyWhatAPlainLoopFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts Python with torch")
	}
	t.Parallel()
	py := testkit.Need(t, testkit.Latest)
	for _, o := range []Options{
		{Operators: []string{"torch:mm"}, Size: 1024, Columns: 1024},
		{Operators: []string{"torch:mm"}, Size: 300, Columns: 512},
		{Operators: []string{"torch:nn.functional.linear"}, Size: 4096, Columns: 256},
	} {
		o.Dtypes, o.Rows = []string{"float32"}, counts
		loop, sweep := found(t, py.Exe, o)
		t.Logf("%s %dx%d: m = %v", o.Operators[0], o.Size, o.Columns, loop)
		if !slices.Equal(loop, sweep) {
			t.Errorf("%v %dx%d: the sweep finds m = %v, a plain loop %v", o.Operators, o.Size, o.Columns, sweep, loop)
		}
		if len(loop) == 0 && o.Operators[0] == "torch:mm" && o.Size == 1024 {
			t.Errorf("torch.mm float32 does not depend on the batch here: the comparison shows nothing")
		}
	}
}

func TestFindsWhatVLLMsOneDNNDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts Python with vLLM")
	}
	t.Parallel()
	place := testkit.VLLM(t)
	differ := false
	for _, k := range []int{2816, 4096} {
		o := Options{Operators: []string{"invar_probe.vllm_ops:linear"}, Family: "linear", Size: k, Columns: 1024, Dtypes: []string{"float32"}, Rows: counts}
		loop, sweep := found(t, place.Python, o)
		t.Logf("K = %d: m = %v", k, loop)
		if !slices.Equal(loop, sweep) {
			t.Errorf("K = %d: the sweep finds m = %v, a plain loop %v", k, sweep, loop)
		}
		differ = differ || len(loop) > 0
	}
	if !differ {
		t.Error("oneDNN's float32 linear does not depend on the batch here: the comparison shows nothing")
	}
}

func TestInvarsOperatorsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts Python with torch")
	}
	t.Parallel()
	place := testkit.VLLM(t)
	prefix := filepath.Join(testkit.Cache(), "vllm")
	s := invar.Session{Prefix: prefix, Env: os.Environ(), Runner: run.System{}, Progress: report.Discard, Version: "1.0.0"}
	if _, err := s.Build(t.Context(), invar.Options{Target: "cpu", Python: place.Python}); err != nil {
		t.Fatal(err)
	}
	base := Options{Prefix: prefix, Python: place.Python, Env: os.Environ(), Runner: run.System{}, Progress: report.Discard}
	t.Run("all", func(t *testing.T) {
		res, err := Run(t.Context(), base)
		if err != nil || res.Verdict != report.Pass || len(res.Cases) < 40 || len(res.Settings) < 3 {
			t.Errorf("got %v, %d cases, %d settings: %v", res.Verdict, len(res.Cases), len(res.Settings), err)
		}
		t.Log(res.Sentence)
	})
	t.Run("rmsnorm-48391", func(t *testing.T) {
		o := base
		o.Preset = "rmsnorm-48391"
		res, err := Run(t.Context(), o)
		if err != nil || len(res.Cases) != 4*16 || !slices.Equal(res.Cases[0].Batches, []int{255, 300}) {
			t.Errorf("got %d cases, batches %v: %v; want 64 of 255 and 300 rows", len(res.Cases), res.Cases[0].Batches, err)
		}
	})
}

// The defect of vLLM's kernel, written down in torch: the order of the sum
// changes at 256 rows. The preset has to find it in every seed.
func TestPresetFindsTheDefectThatItIsNamedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts Python with torch")
	}
	t.Parallel()
	py := testkit.Need(t, testkit.Latest)
	dir := t.TempDir()
	file := filepath.Join(dir, "norms.py")
	source := `
import torch


def rms_norm(x, shape, weight, eps):
    block = 1024 if len(x) < 256 else 256
    y = x.float()
    lanes = torch.zeros(len(x), block)
    for at in range(0, y.shape[1], block):
        part = y[:, at : at + block]
        lanes[:, : part.shape[1]] += part * part
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return (y * torch.rsqrt(lanes / y.shape[1] + eps) * weight.float()).to(x.dtype)
`
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), Options{
		Preset: "rmsnorm-48391", Operators: []string{file + ":rms_norm"}, Python: py.Exe, Prefix: t.TempDir(), Out: dir,
		Env: os.Environ(), Runner: run.System{}, Progress: report.Discard,
	})
	if report.ExitCode(err) != report.CheckFailed {
		t.Fatalf("got %v, want exit code %d", err, report.CheckFailed)
	}
	differ := 0
	for _, c := range res.Cases {
		if c.Status == report.Fail {
			differ++
			if !slices.Equal(c.ByRows(), []int{255}) {
				t.Errorf("%s seed %d: differs at %v, want at 255 against 300", c.Label, c.Seed, c.ByRows())
			}
		}
	}
	if differ < 16 {
		t.Errorf("%d of %d cases differ, want at least 16", differ, len(res.Cases))
	}
}

func TestJUnitCountsInconclusiveAsNoPass(t *testing.T) {
	t.Parallel()
	a := answer{Cases: make([]Case, 3)}
	for i := range a.Cases {
		c := &a.Cases[i]
		c.Label, c.Dtype, c.Pairs, c.Control = "mm", "float32", 10, Control{Pairs: 5, Differ: 5}
		c.Rows, c.Inputs, c.Results, c.OrderSensitive, c.Batches = 4, 4, 4, 1, []int{1, 4}
	}
	a.Cases[1].Differ = 2
	a.Cases[2].Control.Differ = 0
	r := judge(a, "", "python")
	var b bytes.Buffer
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`failures="1"`, `errors="1"`, `tests="3"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
	if r.Verdict != report.Fail || report.ExitCode(r.err()) != report.CheckFailed {
		t.Errorf("verdict %s, exit code %d", r.Verdict, report.ExitCode(r.err()))
	}
	if only := judge(answer{Cases: a.Cases[2:]}, "", "python"); report.ExitCode(only.err()) != report.Inconclusive {
		t.Errorf("a control that is not caught: %v", only.err())
	}
}
