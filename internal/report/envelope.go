package report

import (
	"encoding/json"
	"errors"
	"io"
)

// SchemaVersion counts incompatible changes of the JSON output; each command's
// schema is docs/schema/<command>.schema.json.
const SchemaVersion = 1

// An Envelope is the one object that a command prints with --json.
type Envelope struct {
	Schema  string     `json:"schema"` // "invar.<command>"
	Version int        `json:"version"`
	OK      bool       `json:"ok"`
	Code    int        `json:"code"` // the exit code of the process
	Result  any        `json:"result,omitempty"`
	Error   *ErrorJSON `json:"error,omitempty"`
}

// ErrorJSON is an error in an Envelope.
type ErrorJSON struct {
	Message      string        `json:"message"`
	Want         string        `json:"want,omitempty"`
	Got          string        `json:"got,omitempty"`
	Cause        string        `json:"cause,omitempty"`
	Rule         string        `json:"rule,omitempty"`
	Hint         string        `json:"hint,omitempty"`
	Log          string        `json:"log,omitempty"`
	Tail         string        `json:"tail,omitempty"`
	State        string        `json:"state,omitempty"`
	Requirements []Requirement `json:"requirements,omitempty"`
}

// WriteJSON writes the envelope of command with its result and its error.
// Both may be set: a failed probe has checks and an error.
func WriteJSON(w io.Writer, command string, result any, err error) error {
	e := Envelope{
		Schema: "invar." + command, Version: SchemaVersion,
		OK: err == nil, Code: ExitCode(err), Result: result, Error: errorJSON(err),
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(e)
}

func errorJSON(err error) *ErrorJSON {
	if err == nil {
		return nil
	}
	if u, ok := errors.AsType[*UnmetError](err); ok {
		return &ErrorJSON{Message: u.Error(), Requirements: u.All}
	}
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return &ErrorJSON{Message: err.Error()}
	}
	// The outermost text holds the context that was added on the way up; want
	// and got are in it too, for readers of the message alone.
	return &ErrorJSON{
		Message: err.Error(), Want: p.Want, Got: p.Got, Cause: p.Cause,
		Rule: p.Rule, Hint: p.Hint, Log: p.Log, Tail: p.Tail, State: p.State,
	}
}
