package report

import "time"

// A Requirement is one thing that a target needs of the host.
type Requirement struct {
	Name   string `json:"name"`             // "CANN", "C++ compiler"
	Want   string `json:"want"`             // ">= 9.1.0"
	Got    string `json:"got"`              // "8.5.1 in /usr/local/Ascend/..."
	Hint   string `json:"hint,omitempty"`   // what to do when it does not hold
	Source string `json:"source,omitempty"` // where the wish comes from
	OK     bool   `json:"ok"`
}

// Status is the outcome of one check.
type Status string

// A skipped check never counts as passed; an inconclusive one ran but could
// not have failed, so it proves nothing.
const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Skip    Status = "skip"
	Unclear Status = "inconclusive"
)

// A Check is one question that a probe asked and the answer.
type Check struct {
	Level   int           `json:"level"`
	Name    string        `json:"name"`
	Status  Status        `json:"status"`
	Want    string        `json:"want,omitempty"`
	Got     string        `json:"got,omitempty"`
	Hint    string        `json:"hint,omitempty"`
	Reason  string        `json:"reason,omitempty"` // why it was skipped or is inconclusive
	Elapsed time.Duration `json:"elapsed_ns,omitempty"`
}
