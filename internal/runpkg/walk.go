package runpkg

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/invar-ops/invar/internal/report"
)

// Options bound and watch the reading of a package.
type Options struct {
	Limits   Limits
	Progress func(n int64) // called with the bytes of payload just read
}

// A Report says what reading a whole package showed.
type Report struct {
	Checks  []report.Check `json:"checks"`
	Entries []Entry        `json:"entries"` // sorted as in the archive
	Bytes   int64          `json:"bytes"`   // in files, unpacked
}

// A sink takes what walk finds, after it was found harmless. Its functions
// may be nil.
type sink struct {
	begin func(m member) (io.Writer, error) // a nil writer drops the content
	end   func(m member) error
}

// A walker goes through all payloads of a package once.
type walker struct {
	pkg    *Package
	opts   Options
	sink   sink
	tree   *layout
	places map[string]int // path of an entry to its place in report.Entries
	report Report

	files    int   // entries of earlier payloads, repeated ones included
	declared int64 // and their bytes
}

// walk reads everything: digests, codecs, names, links, contents, manifest.
// A refusal stops it at once; damage is reported with the digest that shows
// it, since a broken file can look like anything.
func (p *Package) walk(ctx context.Context, opts Options, s sink) (Report, error) {
	opts.Limits = opts.Limits.withDefaults()
	w := &walker{pkg: p, opts: opts, sink: s, tree: newLayout(), places: map[string]int{}}
	w.pass("size", fmt.Sprintf("%d bytes", p.Size))
	for i := range p.Payloads {
		if err := w.payload(ctx, i); err != nil {
			return w.report, fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	if err := w.tree.checkLinks(); err != nil {
		return w.report, fmt.Errorf("%s: %w", p.Path, w.fail("links", err))
	}
	w.pass("names and links", fmt.Sprintf("%d entries, %d bytes", len(w.report.Entries), w.report.Bytes))
	if p.Manifest != nil {
		if err := compareManifest(p.Manifest, w.report.Entries); err != nil {
			return w.report, fmt.Errorf("%s: %w", p.Path, w.fail("manifest", err))
		}
		w.pass("manifest", fmt.Sprintf("%d entries as written", len(p.Manifest.Files)))
	}
	return w.report, nil
}

func (w *walker) pass(name, got string) {
	w.report.Checks = append(w.report.Checks, report.Check{Name: name, Status: report.Pass, Got: got})
}

func (w *walker) fail(name string, err error) error {
	c := report.Check{Name: name, Status: report.Fail, Got: err.Error()}
	if p, ok := errors.AsType[*report.Problem](err); ok {
		c.Hint = p.Hint
	}
	w.report.Checks = append(w.report.Checks, c)
	return err
}

func (p *Package) what(i int) string {
	if len(p.Payloads) == 1 {
		return "payload"
	}
	return fmt.Sprintf("payload %d of %d", i+1, len(p.Payloads))
}

func (w *walker) payload(ctx context.Context, i int) error {
	pl, what := w.pkg.Payloads[i], w.pkg.what(i)
	s := newStream(ctx, w.pkg.src, pl, w.opts.Progress)
	decoded := w.decode(s, i)
	if ctx.Err() != nil {
		s.abandon()
		return context.Cause(ctx)
	}
	if _, refused := errors.AsType[*report.Problem](decoded); refused {
		s.abandon()
		return w.fail("content of "+what, decoded)
	}
	if err := s.finish(); err != nil {
		return w.fail(what, err)
	}
	checks := s.checks(what)
	w.report.Checks = append(w.report.Checks, checks...)
	if err := firstFailed(checks); err != nil {
		return err
	}
	if decoded != nil {
		return w.fail("content of "+what, report.Problemf(report.CheckFailed, "%s cannot be unpacked: %w", what, decoded).
			WithWant("a "+string(pl.Codec)+" stream with a tar inside", decoded.Error()).
			WithHint("the file is damaged: download it again"))
	}
	return nil
}

// firstFailed turns the first check that failed into an error.
func firstFailed(checks []report.Check) error {
	for _, c := range checks {
		if c.Status == report.Fail {
			return report.Problemf(report.CheckFailed, "the %s does not match", c.Name).
				WithWant(c.Want, c.Got).WithHint("%s", c.Hint)
		}
	}
	return nil
}

// decode unpacks one payload into the sink. A *report.Problem is a refusal;
// any other error means that the stream cannot be read.
func (w *walker) decode(s *stream, round int) error {
	r, done, err := s.payload.Codec.reader(s)
	if err != nil {
		return err
	}
	defer done()
	ahead := newReadAhead(r)
	defer ahead.close()
	use := &budget{Limits: w.opts.Limits, packed: s.payload.Size, files: w.files, declared: w.declared}
	limited := &limitedReader{r: ahead, budget: use}
	t := tar.NewReader(limited)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := w.member(h, t, use, round); err != nil {
			return err
		}
	}
	w.files, w.declared = use.files, use.declared
	// The rest is padding, but its end carries the checksum of the codec.
	_, err = io.Copy(io.Discard, limited)
	return err
}

func (w *walker) member(h *tar.Header, content io.Reader, use *budget, round int) error {
	m, skip, err := readMember(h)
	if err != nil || skip {
		return err
	}
	if err := use.entry(m.Size); err != nil {
		return err
	}
	if m.hardlink != "" {
		if err := w.resolve(&m); err != nil {
			return err
		}
	}
	again, err := w.tree.add(m.Entry, round)
	if err != nil {
		return err
	}
	if again {
		return w.compare(m, content)
	}
	var out io.Writer
	if w.sink.begin != nil {
		if out, err = w.sink.begin(m); err != nil {
			return err
		}
	}
	if m.Type == TypeFile && m.hardlink == "" {
		if m.SHA256, err = w.copy(out, content); err != nil {
			return err
		}
	}
	w.record(m)
	if w.sink.end != nil {
		return w.sink.end(m)
	}
	return nil
}

// resolve makes a hard link the equal of what it names. GNU tar writes one
// also for a file that it meets a second time, even for a symbolic link.
func (w *walker) resolve(m *member) error {
	i, ok := w.places[m.hardlink]
	if !ok || w.report.Entries[i].Type == TypeDir {
		return refuse("%s is a hard link to %s, which is no earlier file of the package", m.Path, m.hardlink)
	}
	name := m.Path
	m.Entry = w.report.Entries[i]
	m.Path = name
	if m.Type == TypeLink {
		m.hardlink = ""
	}
	return nil
}

// compare lets an entry be there twice when both are equal.
func (w *walker) compare(m member, content io.Reader) (err error) {
	if m.Type == TypeFile && m.hardlink == "" {
		if m.SHA256, err = w.copy(nil, content); err != nil {
			return err
		}
	}
	if w.report.Entries[w.places[m.Path]] != m.Entry {
		return different(m.Path)
	}
	return nil
}

// record keeps the last of several entries of the same path: later payloads
// replace files of earlier ones.
func (w *walker) record(m member) {
	w.report.Bytes += m.Size
	if i, ok := w.places[m.Path]; ok {
		w.report.Bytes -= w.report.Entries[i].Size
		w.report.Entries[i] = m.Entry
		return
	}
	w.places[m.Path] = len(w.report.Entries)
	w.report.Entries = append(w.report.Entries, m.Entry)
}

func (w *walker) copy(out io.Writer, content io.Reader) (string, error) {
	sum := sha256.New()
	to := io.Writer(sum)
	if out != nil {
		to = io.MultiWriter(out, sum)
	}
	_, err := io.CopyBuffer(onlyWriter{to}, onlyReader{content}, make([]byte, chunkSize))
	return hexSum(sum), err
}

// These hide ReadFrom and WriteTo, which would bring buffers of their own.
type onlyReader struct{ io.Reader }

type onlyWriter struct{ io.Writer }

type limitedReader struct {
	r      io.Reader
	budget *budget
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if over := l.budget.read(n); over != nil {
		return n, over
	}
	return n, err
}
