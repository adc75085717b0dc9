package python

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// Downloads count what an installer says that it downloads: it is written the
// installer's output. uv names a file with its size when it begins and again
// when it has it, several at a time; pip names one after the other. Files that
// are cached or small are not named, and so not counted.
type downloads struct {
	step  report.Step
	line  []byte
	open  map[string]int64 // by name: bytes of files under way
	total int64
}

// longest bounds what is kept of a line that does not end, in bytes.
const longest = 1 << 16

var (
	downloading = regexp.MustCompile(`^\s*Downloading (\S+) \(([0-9.]+)( ?)([kKMG]i?B|bytes|B)\)`)
	downloaded  = regexp.MustCompile(`^\s*Downloaded (\S+)`)
	// installing is what pip says when every file has come, and uv when all are prepared.
	installing = regexp.MustCompile(`^(?:Installing collected packages|Prepared \d+ packages?)\b`)
	colours    = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// Watched is r for installers that run one after the other: step counts what
// they say that they download.
func Watched(r run.Runner, step report.Step) run.Runner { return watched{r, newDownloads(step)} }

type watched struct {
	run.Runner
	d *downloads
}

func (w watched) Run(ctx context.Context, c run.Cmd) (run.Result, error) {
	c.Output = w.d
	return w.Runner.Run(ctx, c)
}

func newDownloads(step report.Step) *downloads {
	return &downloads{step: step, open: map[string]int64{}}
}

// Write takes output as it comes, in pieces of any size.
func (d *downloads) Write(p []byte) (int, error) {
	d.line = append(d.line, p...)
	for {
		end := bytes.IndexAny(d.line, "\r\n")
		if end < 0 {
			if len(d.line) > longest {
				d.line = d.line[:0]
			}
			return len(p), nil
		}
		d.said(string(colours.ReplaceAll(d.line[:end], nil)))
		d.line = d.line[end+1:]
	}
}

func (d *downloads) said(line string) {
	if m := downloading.FindStringSubmatch(line); m != nil {
		if m[3] != "" { // "506.1 MB" is pip's, which takes one after the other; uv writes "506.1MiB"
			d.finish()
		}
		n := bytesOf(m[2], m[4])
		if n == 0 {
			return
		}
		d.open[m[1]] += n
		d.total += n
		d.step.Expect(n)
		return
	}
	if m := downloaded.FindStringSubmatch(line); m != nil {
		d.step.Add(d.open[m[1]])
		delete(d.open, m[1])
		return
	}
	if installing.MatchString(line) {
		d.finish()
	}
}

// finish counts what is under way as done.
func (d *downloads) finish() {
	for name, n := range d.open {
		d.step.Add(n)
		delete(d.open, name)
	}
}

// text says for people how much came, nothing when nothing did.
func (d *downloads) text() string {
	if d.total == 0 {
		return ""
	}
	return fmt.Sprintf(", %.0f MB downloaded", float64(d.total)/1e6)
}

// units are uv's (powers of 1024) and pip's (powers of 1000).
var units = map[string]float64{
	"B": 1, "bytes": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

func bytesOf(number, unit string) int64 {
	v, err := strconv.ParseFloat(number, 64)
	if n := v * units[unit]; err == nil && n < 1<<50 { // no wheel is larger
		return int64(n)
	}
	return 0
}
