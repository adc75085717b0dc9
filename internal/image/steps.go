package image

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// Lines by which builders announce the steps of a Dockerfile. buildah and
// podman: "[1/2] STEP 3/9: RUN make" or "STEP 3/9: RUN make", one after the
// other. BuildKit: "#7 [build 3/9] RUN make", then "#7 DONE 1.2s", "#7 CACHED"
// or "#7 ERROR: ...", several at a time.
var (
	stepLine  = regexp.MustCompile(`^(?:\[(\d+/\d+)\] )?STEP (\d+/\d+): (.*)$`)
	kitStart  = regexp.MustCompile(`^(#\d+) \[((?:\S+ )?\d+/\d+|\S+ \S+ \d+/\d+)\] (.*)$`)
	kitEnd    = regexp.MustCompile(`^(#\d+) (DONE|CACHED|ERROR|CANCELED)\b`)
	kitOutput = regexp.MustCompile(`^(#\d+) \d+\.\d+ (.*)$`)
)

// steps shows the steps of a builder as it prints them, and keeps what each
// printed. It is written to by one process.
type steps struct {
	progress report.Progress
	rest     string                 // of a line that is not complete
	open     map[string]report.Step // by BuildKit's number; "" is buildah's
	said     map[string][]string    // last lines by the same key
	broken   string                 // key of the step that failed
}

// kept is how many lines of a step are kept.
const kept = 200

var errStep = errors.New("this step failed")

func (s *steps) Write(b []byte) (int, error) {
	s.rest += string(b)
	for {
		line, rest, whole := strings.Cut(s.rest, "\n")
		if !whole {
			return len(b), nil
		}
		s.rest = rest
		s.line(strings.TrimRight(line, "\r"))
	}
}

func (s *steps) line(text string) {
	if m := stepLine.FindStringSubmatch(text); m != nil {
		s.finish("", nil)
		delete(s.said, "")
		s.start("", strings.TrimSpace(m[1]+" "+m[2]), m[3])
		return
	}
	if m := kitStart.FindStringSubmatch(text); m != nil {
		s.start(m[1], m[2], m[3])
		return
	}
	if m := kitEnd.FindStringSubmatch(text); m != nil {
		var err error
		if m[2] == "ERROR" || m[2] == "CANCELED" {
			err = errStep
		}
		if m[2] == "ERROR" {
			s.broken = m[1]
		}
		s.finish(m[1], err)
		return
	}
	if m := kitOutput.FindStringSubmatch(text); m != nil {
		s.keep(m[1], m[2])
	} else if !strings.HasPrefix(text, "#") {
		s.keep("", text)
	}
}

func (s *steps) keep(key, text string) {
	if text == "" || s.open[key] == nil {
		return
	}
	s.said[key] = append(s.said[key], text)
	if n := len(s.said[key]); n > 2*kept {
		s.said[key] = s.said[key][n-kept:]
	}
}

// failure is what the step that failed printed.
func (s *steps) failure() []string { return s.said[s.broken] }

// working are the instructions that take time; the others only set something.
var working = []string{"FROM", "COPY", "ADD", "RUN"}

// start shows a step once; BuildKit repeats the line when output goes on.
func (s *steps) start(key, count, what string) {
	if verb, _, _ := strings.Cut(what, " "); !slices.Contains(working, verb) {
		return
	}
	if s.open == nil {
		s.open, s.said = map[string]report.Step{}, map[string][]string{}
	}
	if s.open[key] == nil {
		s.open[key] = s.progress.Start(stage, count+" "+short(what), 0)
	}
}

func (s *steps) finish(key string, err error) {
	step := s.open[key]
	if step == nil {
		return
	}
	delete(s.open, key)
	if err != nil {
		step.Fail(err)
		return
	}
	step.Done("")
}

// end closes what the builder left open when it ended, with its error.
func (s *steps) end(err error) {
	for key := range s.open {
		s.finish(key, err)
	}
}

// short is a step in one line that fits a screen.
func short(what string) string {
	const width = 60
	words := strings.Join(strings.Fields(what), " ")
	if r := []rune(words); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return words
}
