// Package judge turns the journal of a verification into a verdict that says
// what was covered, with what power, and whether it could have come out
// otherwise.
package judge

import (
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/verify/answer"
)

// Word is a verdict.
type Word string

// The verdicts. Invariant holds for what Coverage lists and for nothing else.
const (
	Variant      Word = "variant"
	Invariant    Word = "invariant"
	Inconclusive Word = "inconclusive"
)

// A Verdict is the answer to "do answers change with the batch".
type Verdict struct {
	Word     Word     `json:"word"`
	Sentence string   `json:"sentence"`          // one sentence for somebody who reads nothing else
	Reasons  []Reason `json:"reasons,omitempty"` // why it is inconclusive
	Notes    []Reason `json:"notes,omitempty"`   // what a reader should know; changes no verdict
	Ended    string   `json:"ended,omitempty"`   // why the verification stopped early: died, slow, interrupted
}

// Code is the exit code of v.
func (v Verdict) Code() int {
	switch {
	case v.Ended == Died || v.Ended == Refused:
		return report.Failed
	case v.Word == Variant:
		return report.CheckFailed
	case v.Word == Invariant:
		return report.Done
	}
	return report.Inconclusive
}

// Why a verification ended early.
const (
	Died    = "server died"
	Slow    = "server too slow"
	Refused = "request refused"
	Stopped = "interrupted"
)

// A Reason has a stable id.
type Reason struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// A Dimension is one thing that may differ between two runs.
type Dimension string

// The dimensions. A pair of runs belongs to the first one that differs, in this
// order. Repeats at once are no exact repeats: who shares a step with whom is a
// matter of timing.
const (
	First   Dimension = "first"          // the first requests after a start and later ones
	Start   Dimension = "start"          // another lifetime of the server
	Rank    Dimension = "rank"           // another data-parallel rank, or one that nobody knows
	Cache   Dimension = "cache"          // another state of the prefix cache
	Batch   Dimension = "batch"          // another arrangement
	Company Dimension = "repeat at once" // the same arrangement of several requests again
	Again   Dimension = "repeat alone"   // the same requests again, one at a time
)

// Dimensions lists them from what explains everything to what explains least.
var Dimensions = []Dimension{Again, Batch, Company, Cache, Rank, Start, First}

// Text is what a reader calls d.
func (d Dimension) Text() string {
	return map[Dimension]string{
		Start: "another start of the server", First: "the first after a start, and later", Rank: "another data-parallel rank", Cache: "another state of the prefix cache",
		Batch: "another arrangement", Company: "the same at once again", Again: "the same alone again",
	}[d]
}

// A Count is pairs of answers to one request, and how many of them differ.
type Count struct {
	Dimension Dimension `json:"dimension"`
	Pairs     int       `json:"pairs"`
	Differ    int       `json:"differ"`
}

// A Run is one line of the expert's table.
type Run struct {
	Label        string  `json:"label"`
	Lifetime     int     `json:"lifetime"`
	Rank         int     `json:"rank"` // -1: the server chose
	Requests     int     `json:"requests"`
	Answers      int     `json:"answers"`
	Complete     bool    `json:"complete"`
	Steps        float64 `json:"steps"`
	PerStep      float64 `json:"generated_per_step"` // 0: unknown
	Over256      float64 `json:"steps_over_256"`
	Over512      float64 `json:"steps_over_512"`
	Preemptions  float64 `json:"preemptions"`
	CacheHits    float64 `json:"cache_hits"`
	Waits        int64   `json:"waits"`
	Milliseconds float64 `json:"ms"`
}

// A Request is one request whose answers differ.
type Request struct {
	Index    int               `json:"request"`
	Distinct int               `json:"distinct"` // different answers
	RunA     int               `json:"run_a"`    // places in Workload.Runs
	RunB     int               `json:"run_b"`
	First    answer.Divergence `json:"first"`
}

// A Workload is what one workload showed.
type Workload struct {
	Name     string              `json:"name"`
	About    string              `json:"about"`
	Requests int                 `json:"requests"`
	Runs     []Run               `json:"runs"`
	Pairs    int                 `json:"pairs"`
	Differ   int                 `json:"differ"`
	Unclear  int                 `json:"differ_preempted"` // of Differ: a run of the pair was preempted
	ByDim    []Count             `json:"dimensions"`
	Heat     [][]int             `json:"heat"` // run by run: requests that differ; -1 where nothing is compared
	Changed  int                 `json:"changed_requests"`
	Kinds    map[answer.Kind]int `json:"kinds,omitempty"` // of the changed requests
	Blind    int                 `json:"same_text"`       // changed requests whose text is the same
	MaxDelta float64             `json:"max_delta"`
	Details  []Request           `json:"details,omitempty"` // at most MaxDetails
	Room     answer.Room         `json:"room"`
	Timeline []Lane              `json:"timeline,omitempty"`
}

// MaxDetails bounds the requests that are described one by one.
const MaxDetails = 200

// A Lane is when the tokens of one request came, in ms since the run began.
type Lane struct {
	Request int       `json:"request"`
	At      []float64 `json:"at"`
}

// A Cover is one thing that was to be covered, and whether it was.
type Cover struct {
	Name  string `json:"name"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Shown bool   `json:"shown"`
}

// A Power says how likely a defect would have gone unseen.
type Power struct {
	Defect string  `json:"defect"`
	Tries  int     `json:"tries"`
	Miss   float64 `json:"miss"` // probability
}

// A ControlResult is what the same workloads showed on a server that varies.
type ControlResult struct {
	Server   string        `json:"server"`
	Status   report.Status `json:"status"` // pass: it was found variant, as it must
	Pairs    int           `json:"pairs"`
	Differ   int           `json:"differ"`
	Requests int           `json:"requests"`         // of the workloads that it was sent
	Changed  int           `json:"changed_requests"` // of them
	Subject  int           `json:"subject_changed"`  // of the same requests, on the server that is judged
	Plain    bool          `json:"plain,omitempty"`  // it runs without invar's operators, and the other one with them
}

// A Result is everything.
type Result struct {
	Server    Server         `json:"server"`
	Verdict   Verdict        `json:"verdict"`
	ByDim     []Count        `json:"dimensions"`
	Workloads []Workload     `json:"workloads"`
	Coverage  []Cover        `json:"coverage"`
	Power     []Power        `json:"power"`
	Control   *ControlResult `json:"control,omitempty"`
	Suspects  []Suspect      `json:"suspects,omitempty"` // what the differences have turned out to be before
	Logs      []string       `json:"logs,omitempty"`
}

// A Server is what was verified.
type Server struct {
	URL       string   `json:"url"`
	Command   string   `json:"command,omitempty"`
	Model     string   `json:"model"`
	Engine    string   `json:"engine"` // dialect: vllm, sglang, other
	Version   string   `json:"version,omitempty"`
	Ranks     []string `json:"ranks,omitempty"` // labels of its engines
	Lifetimes int      `json:"lifetimes"`
	CacheOn   string   `json:"prefix_caching,omitempty"` // what the server says: "True", "False"
}
