package report

// Progress receives what happens while work is under way. cmd/invar draws it
// as bars on a terminal and as one line a finished step elsewhere.
type Progress interface {
	// Start announces a step. total counts units (bytes or items); -1 is unknown, 0 has none.
	Start(stage, name string, total int64) Step
	// Note is one line that belongs to no step.
	Note(text string)
}

// A Step is one piece of work that was announced. Exactly one of Done, Skip
// and Fail ends it. Add is safe for use by several goroutines. Expect is for a
// step whose total was unknown: so many more bytes are to come.
type Step interface {
	Add(n int64)
	Expect(n int64)
	Done(detail string)
	Skip(reason string)
	Fail(err error)
}

// Discard is a Progress that shows nothing.
var Discard Progress = discard{}

type discard struct{}

func (discard) Start(string, string, int64) Step { return discard{} }
func (discard) Note(string)                      {}
func (discard) Add(int64)                        {}
func (discard) Expect(int64)                     {}
func (discard) Done(string)                      {}
func (discard) Skip(string)                      {}
func (discard) Fail(error)                       {}
