package journal

import (
	"fmt"
	"time"

	"github.com/invar-ops/invar/internal/verify/answer"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// NoRank is the rank of a run that leaves the choice to the server.
const NoRank = -1

// A Key names a run. Runs with the same key are one run.
type Key struct {
	Role     string `json:"role"` // Subject or Control
	Lifetime int    `json:"lifetime"`
	Workload string `json:"workload"`
	Rank     int    `json:"rank"`
	Run      string `json:"run"` // name of the arrangement
	Repeat   int    `json:"repeat"`
	Attempt  int    `json:"attempt,omitempty"` // above 0 after attempts that were interrupted
}

// The roles of a server.
const (
	Subject = "subject"
	Control = "control"
)

func (k Key) String() string {
	s := fmt.Sprintf("%s/%d/%s/%s/%d", k.Role, k.Lifetime, k.Workload, k.Run, k.Repeat)
	if k.Rank != NoRank {
		s += fmt.Sprintf("/rank%d", k.Rank)
	}
	return s
}

// A Ref is one answer of a run: its digest, and where in the journal it is.
type Ref struct {
	Digest answer.Digest
	Offset int64 // 0: there is no answer
}

// Has reports whether there is an answer.
func (r Ref) Has() bool { return r.Offset > 0 }

// Observed is what the server's metrics said of a run, and what was counted here.
type Observed struct {
	Metrics     bool               `json:"metrics"` // the server offers them
	HasSteps    bool               `json:"has_steps"`
	Steps       float64            `json:"steps"`
	StepTokens  float64            `json:"step_tokens"`
	Over256     float64            `json:"over_256"` // steps with more tokens
	Over512     float64            `json:"over_512"`
	Generated   float64            `json:"generated"`
	Prompted    float64            `json:"prompted"`
	Finished    float64            `json:"finished"`
	Preemptions float64            `json:"preemptions"`
	Hits        float64            `json:"cache_hits"`
	Engines     map[string]float64 `json:"engines,omitempty"` // finished requests by engine
	Port        string             `json:"port,omitempty"`    // URL of the rank that was asked, where ranks have their own
	Ports       map[string]float64 `json:"ports,omitempty"`   // finished requests by URL of a rank
	MaxRunning  float64            `json:"max_running"`
	Sent        int                `json:"sent"`       // prompts, fillers included
	Completion  int                `json:"completion"` // tokens that the answers hold
	Prompt      int                `json:"prompt"`     // tokens of the prompts, as the server counted them
	Waits       int64              `json:"waits"`      // 429 and 503
}

// A Run is the prompts of a workload sent in one arrangement once.
type Run struct {
	Key
	Arrangement workload.Arrangement `json:"arrangement"`
	Observed    Observed             `json:"observed"`
	Elapsed     time.Duration        `json:"elapsed_ns"`
	Failures    []string             `json:"failures,omitempty"` // requests without an answer, each with its reason
	Failed      int                  `json:"failed"`             // how many; Failures keeps the first ones
	Complete    bool                 `json:"complete"`
	Room        answer.Room          `json:"room"`
	NaN         int                  `json:"nan"`    // answers that hold a NaN
	NoIDs       int                  `json:"no_ids"` // answers without token ids
	Refs        []Ref                `json:"-"`      // by subject
	Done        time.Time            `json:"done,omitzero"`
}

// Answers is how many subjects were answered.
func (r *Run) Answers() int {
	n := 0
	for _, ref := range r.Refs {
		if ref.Has() {
			n++
		}
	}
	return n
}

// maxFailures bounds what is kept of reasons.
const maxFailures = 8

// Fail notes a request without an answer.
func (r *Run) Fail(text string) {
	r.Failed++
	if len(r.Failures) < maxFailures {
		r.Failures = append(r.Failures, text)
	}
}

// Note counts what an answer tells beside its content.
func (r *Run) Note(a answer.Answer) {
	r.Room = r.Room.Add(a.Room())
	if a.NaN() {
		r.NaN++
	}
	if !a.HasIDs {
		r.NoIDs++
	}
}
