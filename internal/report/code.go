// Package report holds what invar tells people and programs: errors with a
// way out, requirements, checks, progress and the JSON envelope. It prints
// nothing by itself; cmd/invar chooses where things go.
package report

// Exit codes are a contract (README, docs/reference): scripts depend on them.
const (
	Done         = 0   // everything asked for happened
	Failed       = 1   // a failure that none of the others names
	Usage        = 2   // the command line cannot be understood
	Unmet        = 3   // this host does not meet the target
	BuildFailed  = 4   // a build stage failed
	CheckFailed  = 5   // a probe or verification failed
	Inconclusive = 6   // a check could not be made, or could not have failed
	Interrupted  = 130 // SIGINT
	Terminated   = 143 // SIGTERM
)
