package python

import (
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

// tally is a step that only counts.
type tally struct {
	report.Step
	got, want int64
}

func (t *tally) Add(n int64)    { t.got += n }
func (t *tally) Expect(n int64) { t.want += n }

// What uv 0.13 and pip 23 and 25 print while they install.
const (
	saidByUV = `Using Python 3.11.7 environment at: e
Resolved 30 packages in 320ms
Downloading numpy (15.9MiB)
Downloading torch (506.1MiB)
 Downloaded numpy
 Downloaded torch
Prepared 2 packages in 9.1s
Installed 29 packages in 268ms
 + numpy==2.4.6
`
	saidByPip23 = `Collecting torch==2.15.0
  Downloading torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl (506.1 MB)
     ---------------------------------------- 506.1/506.1 MB 2.3 MB/s eta 0:00:00
Collecting filelock
  Using cached filelock-4.3.1-py3-none-any.whl (16 kB)
Collecting numpy
  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.7 MB)
Installing collected packages: numpy, torch
`
	saidByPip25 = `Downloading torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl (506.1 MB)
Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.7 MB)
Installing collected packages: numpy, torch
`
)

func TestDownloadsCountWhatInstallersSay(t *testing.T) {
	t.Parallel()
	const torch, numpy = 530_684_313, 16_672_358 // 506.1 and 15.9 MiB
	const uvTotal = torch + numpy
	for _, tc := range []struct {
		name, said string
		got, want  int64
		text       string
	}{
		{"uv", saidByUV, uvTotal, uvTotal, ", 547 MB downloaded"},
		{"uv, both under way", strings.Join(strings.SplitAfter(saidByUV, "\n")[:4], ""), 0, uvTotal, ", 547 MB downloaded"},
		{"uv, one here", strings.Join(strings.SplitAfter(saidByUV, "\n")[:5], ""), numpy, uvTotal, ", 547 MB downloaded"},
		{"uv, in colours", "\x1b[1m\x1b[36mDownloading\x1b[39m\x1b[0m torch \x1b[2m(506.1MiB)\x1b[0m\n", 0, torch, ", 531 MB downloaded"},
		{"uv, all cached", "Resolved 30 packages in 320ms\nInstalled 29 packages in 268ms\n", 0, 0, ""},
		{"pip 23", saidByPip23, 522_800_000, 522_800_000, ", 523 MB downloaded"},
		{"pip 23, the second under way", strings.Split(saidByPip23, "Installing")[0], 506_100_000, 522_800_000, ", 523 MB downloaded"},
		{"pip 25", saidByPip25, 522_800_000, 522_800_000, ", 523 MB downloaded"},
		{"a line that is not ended", "Downloading torch (506.1MiB)", 0, 0, ""},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			var step tally
			d := newDownloads(&step)
			for rest := tc.said; rest != ""; {
				n := min(piece, len(rest))
				if _, err := d.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if step.got != tc.got || step.want != tc.want || d.text() != tc.text {
				t.Errorf("%s, %d bytes at a time: %d of %d and %q; want %d of %d and %q", tc.name, piece, step.got, step.want, d.text(), tc.got, tc.want, tc.text)
			}
		}
	}
}

func FuzzDownloads(f *testing.F) {
	for _, said := range []string{saidByUV, saidByPip23, saidByPip25, "Downloading x (9999999999999999.9GiB)\nDownloading x (1.2.3MB)\n Downloaded x\n Downloaded x\n"} {
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said string) {
		var step tally
		d := newDownloads(&step)
		if n, err := d.Write([]byte(said)); n != len(said) || err != nil {
			t.Fatal(n, err)
		}
		if step.got < 0 || step.got > step.want || step.want != d.total {
			t.Errorf("%d of %d bytes, total %d", step.got, step.want, d.total)
		}
	})
}
