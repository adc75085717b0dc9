package invar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/fetch"
	"github.com/invar-ops/invar/internal/pins"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
)

// bring fetches both files, then says of everything that nobody has accepted
// that it is so: whoever has to compare two digests does it once.
func (b *release) bring(ctx context.Context) error {
	b.files = map[string]fetch.File{}
	var unknown []error
	for _, one := range []struct {
		stage string
		from  plan.Origin
	}{{plan.Stage1, b.r.Ops}, {plan.Stage2, b.r.Extension}} {
		if one.from.Tree != "" {
			continue
		}
		f, err := b.fetch(ctx, one.stage, one.from)
		if f.Path == "" && err != nil {
			return alongside(unknown, err)
		}
		b.files[one.from.Name] = f
		if err != nil {
			unknown = append(unknown, err)
		}
	}
	switch len(unknown) {
	case 0:
		return nil
	case 1:
		return unknown[0]
	}
	var got, flags []string
	for _, f := range b.files {
		got, flags = append(got, f.Name+" sha256:"+f.SHA256), append(flags, "--accept-digest sha256:"+f.SHA256)
	}
	slices.Sort(got)
	slices.Sort(flags)
	p := report.Problemf(report.Unmet, "nobody has accepted the content of %d files", len(got)).
		WithWant("digests that invar, a lock file or you have accepted", strings.Join(got, "; "))
	p.State = "nothing was changed; the files are in the cache"
	return p.WithHint("compare the digests with those of the publisher, then pass %s; %s remembers them", strings.Join(flags, " "), pins.LockName)
}

// alongside is the failure of one file, said together with what nobody has
// accepted of those before it: that has to be settled in any case.
func alongside(unknown []error, err error) error {
	if len(unknown) == 0 {
		return err
	}
	if p, ok := errors.AsType[*report.Problem](unknown[0]); ok {
		p.State = strings.TrimPrefix(p.State+"; ", "; ") + "and then: " + err.Error()
		return p
	}
	return errors.Join(unknown[0], err)
}

// fetch brings one released file and checks that its content is accepted. A
// file without a path was not fetched.
func (b *release) fetch(ctx context.Context, stage string, o plan.Origin) (fetch.File, error) {
	f, err := fetch.Get(ctx, fetch.Item{Name: o.Name, URLs: o.URLs, Pins: o.Pins, Size: o.Size}, fetch.Options{
		Cache: b.Cache(), Mirrors: b.o.Release.Mirrors, Offline: b.o.Offline, Env: b.Env,
		CAFiles: b.o.Release.CAFiles, Stage: stage, Progress: b.Progress,
	})
	if err != nil {
		if p, ok := errors.AsType[*report.Problem](err); ok && (p.Code == 0 || p.Code == report.Failed || p.Code == report.CheckFailed) {
			p.Code = report.BuildFailed
		}
		return f, err
	}
	fresh, err := b.trust.Check(o.Name, f.SHA256, f.From)
	if err != nil {
		return f, err
	}
	if fresh {
		b.fresh = append(b.fresh, pins.Locked{Name: o.Name, SHA256: f.SHA256, Size: f.Size, From: origin(f)})
	}
	return f, nil
}

// origin is the address that the content of a file came from, as a lock and a
// receipt remember it; a path of one machine says nothing to others.
func origin(f fetch.File) string {
	switch {
	case strings.Contains(f.From, "://"):
		return f.From
	case f.From == fetch.FromCache:
		return "the cache"
	}
	return "a local file"
}

// remember writes what was accepted now into the lock.
func (b *release) remember() error {
	if len(b.fresh) == 0 {
		return nil
	}
	lock := b.trust.Lock
	for _, f := range b.fresh {
		lock, _ = lock.Add(f)
	}
	b.Progress.Note(fmt.Sprintf("lock      %s remembers %d accepted files", b.r.Lock, len(b.fresh)))
	return lock.Write(b.r.Lock)
}
