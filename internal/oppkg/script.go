package oppkg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A Script is one run of a package's own install script.
type Script struct {
	Runner  run.Runner
	Name    string // as the header says: "./install.sh"
	To      string // folder that it installs to; its final one, since it writes absolute paths
	Scratch string // HOME and TMPDIR of the script, empty before
	Log     string
	Watch   []string // folders that must not change: CANN's own operators
}

// A Ran says how the script ran.
type Ran struct {
	Confined run.Confined `json:"confined"`
	Script   string       `json:"script"`
}

// Install runs the package's own script. It sees no variable of CANN, gets a
// home of its own, can write below To and Scratch only and reaches no network,
// as far as the kernel can say so; what it wrote elsewhere fails the build.
func (p Package) Install(ctx context.Context, s Script) (Ran, error) {
	ran := Ran{Script: s.Name}
	home, tmp := filepath.Join(s.Scratch, "home"), filepath.Join(s.Scratch, "tmp")
	for _, d := range []string{home, tmp, s.To} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return ran, err
		}
	}
	watched := append([]string{filepath.Dir(s.To), home}, s.Watch...)
	before := states(s.To, watched)
	res, err := s.Runner.Run(ctx, run.Cmd{
		Argv: []string{"bash", s.Name, "--quiet", "--install-path=" + s.To}, Dir: p.Dir, Log: s.Log,
		Env:     []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "TMPDIR=" + tmp, "LC_ALL=C"},
		Confine: &run.Confine{Write: []string{p.Dir, s.Scratch, filepath.Dir(s.To)}},
	})
	ran.Confined = res.Confined
	if ctx.Err() != nil {
		return ran, context.Cause(ctx)
	}
	if outside := escaped(before, states(s.To, watched)); len(outside) > 0 {
		return ran, s.problem(res, "the install script of vendor "+p.Vendor+" writes outside its folder", strings.Join(outside, ", "))
	}
	if refused := refusals(res); res.Confined.Files && len(refused) > 0 {
		return ran, s.problem(res, "the install script of vendor "+p.Vendor+" tried to write outside its folder", strings.Join(refused, "; "))
	}
	if err != nil {
		pr := report.Problemf(report.BuildFailed, "the install script of vendor %s failed: %w", p.Vendor, err)
		pr.Log, pr.Tail = s.Log, run.LastLines(string(res.Stdout)+string(res.Stderr), 12)
		return ran, pr
	}
	if err := Whole(s.To, p.Vendor); err != nil {
		return ran, err
	}
	return ran, nil
}

func (s Script) problem(res run.Result, what, got string) error {
	p := report.Problemf(report.BuildFailed, "%s", what).WithWant("changes below "+s.To+" only", got).
		WithHint("do not trust this package; if you do: --installer copy installs its files without running the script")
	p.Log, p.Tail = s.Log, run.LastLines(string(res.Stdout)+string(res.Stderr), 6)
	return p
}

// refusals are the lines by which a shell and its tools say that they could
// not write. LC_ALL=C makes them read so.
func refusals(res run.Result) []string {
	var out []string
	for line := range strings.Lines(string(res.Stderr) + string(res.Stdout)) {
		for _, m := range []string{": Permission denied", ": Read-only file system", ": Operation not permitted"} {
			if strings.Contains(line, m) {
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	if len(out) > 4 {
		out = append(out[:4], fmt.Sprintf("and %d more", len(out)-4))
	}
	return out
}

// states lists what is in the folders with size and time, but for what is below except.
func states(except string, dirs []string) map[string]string {
	out := map[string]string{}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil //nolint:nilerr // what cannot be read cannot be compared
			case p == except:
				return fs.SkipDir
			case p == dir:
				return nil
			}
			if st, err := d.Info(); err == nil {
				out[p] = fmt.Sprint(st.Mode(), " ", st.ModTime().UnixNano())
				if !d.IsDir() {
					out[p] += fmt.Sprint(" ", st.Size())
				}
			}
			return nil
		})
	}
	return out
}

func escaped(before, after map[string]string) []string {
	var out []string
	for p, s := range after {
		if before[p] != s {
			out = append(out, p)
		}
	}
	for p := range before {
		if _, ok := after[p]; !ok {
			out = append(out, p+" (removed)")
		}
	}
	slices.Sort(out)
	return out
}

// Whole checks that the vendor's operators lie below to, and that nothing
// there leads out of it.
func Whole(to, vendor string) error {
	lib := filepath.Join(to, "vendors", vendor, Library)
	if _, err := os.Stat(lib); err != nil {
		return report.Problemf(report.BuildFailed, "the package of vendor %s installed no %s: %w", vendor, Library, err).
			WithHint("see the log of the install script")
	}
	real, err := filepath.EvalSymlinks(to)
	if err != nil {
		return err
	}
	return filepath.WalkDir(to, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		end, err := filepath.EvalSymlinks(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a link of CANN's layout for a part that is not there
		}
		if err != nil || !strings.HasPrefix(end, real+"/") {
			return report.Problemf(report.BuildFailed, "the package of vendor %s installed a link that leads out of it", vendor).
				WithWant("links below "+to, p+" -> "+end)
		}
		return nil
	})
}
