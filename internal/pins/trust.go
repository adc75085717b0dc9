package pins

import (
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// ParseDigest reads "sha256:<hex>" as the user types it.
func ParseDigest(text string) (string, error) {
	hex, ok := strings.CutPrefix(strings.TrimSpace(text), "sha256:")
	hex = strings.ToLower(hex)
	if !ok || !digestRE.MatchString(hex) {
		return "", report.Usagef("--accept-digest %q is no digest", text).
			WithWant("sha256: and 64 hex digits", text).WithHint("sha256sum FILE prints the digits")
	}
	return hex, nil
}

// A Trust says which content may be used.
type Trust struct {
	Sources  Sources
	Lock     Lock
	Accepted []string // hex, of --accept-digest
}

// Pins are the contents that will do for the file called name, best first: what
// is accepted now, else what the lock says, else what is published as known.
func (t Trust) Pins(name string) []string {
	locked := t.Lock.Digests(name)
	if len(locked) == 0 {
		for _, c := range t.Sources.Contents {
			if c.Name == name {
				locked = append(locked, c.SHA256)
			}
		}
	}
	if len(locked) == 0 && len(t.Accepted) != 1 {
		return nil // any content is looked at, and judged by Check
	}
	out := slices.Clone(t.Accepted)
	for _, sum := range locked {
		if !slices.Contains(out, sum) {
			out = append(out, sum)
		}
	}
	return out
}

// Size is what is known of the size of the only content that will do.
func (t Trust) Size(name string, pins []string) int64 {
	if len(pins) != 1 {
		return 0
	}
	for _, f := range t.Lock.Files {
		if f.SHA256 == pins[0] {
			return f.Size
		}
	}
	for _, c := range t.Sources.Contents {
		if c.SHA256 == pins[0] {
			return c.Size
		}
	}
	return 0
}

// Check refuses content that nobody has accepted. It reports whether the
// content is trusted only because it is accepted now, and so belongs into the lock.
func (t Trust) Check(name, sum, from string) (fresh bool, err error) {
	if t.Lock.Has(sum) {
		return false, nil
	}
	if slices.ContainsFunc(t.Sources.Contents, func(c Content) bool { return c.SHA256 == sum }) {
		return false, nil
	}
	if slices.Contains(t.Accepted, sum) {
		return true, nil
	}
	p := report.Problemf(report.Unmet, "nobody has accepted the content of %s", name).
		WithWant("a digest that invar, a lock file or you have accepted", "sha256:"+sum+" from "+from)
	p.State = "nothing was changed; the file is in the cache"
	return false, p.WithHint("compare the digest with that of the publisher, then pass --accept-digest sha256:%s; %s remembers it", sum, LockName)
}
