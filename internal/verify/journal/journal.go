// Package journal keeps every answer of a verification in a file as it comes,
// so that memory does not grow with the number of requests and a verification
// that was interrupted goes on where it stopped.
package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/invar-ops/invar/internal/verify/answer"
)

// Head says what a journal is about. A journal goes on only under the same head.
type Head struct {
	Format    int      `json:"format"`
	Server    string   `json:"server"`
	Model     string   `json:"model"`
	Version   string   `json:"version,omitempty"`
	Workloads []string `json:"workloads"`
	Digest    string   `json:"digest"` // of the workloads themselves
}

// An entry is one line of the file.
type entry struct {
	Head   *Head          `json:"head,omitempty"`
	Run    *Run           `json:"run,omitempty"`    // a run that ended
	Key    *Key           `json:"key,omitempty"`    // with Answer
	I      int            `json:"i,omitempty"`      // which subject
	K      int            `json:"k,omitempty"`      // top logprobs asked for
	Answer *answer.Answer `json:"answer,omitempty"` //
	At     []float64      `json:"at,omitempty"`     // ms since the run began, one a token event
}

// A Journal is open for appending. It is safe for use by many goroutines.
type Journal struct {
	mu   sync.Mutex
	f    *os.File
	size int64
	temp bool
	runs []*Run
	by   map[Key]*Run
}

// Open opens dir/answers.jsonl, or a temporary file where dir is empty.
func Open(dir string, head Head) (*Journal, error) {
	j := &Journal{by: map[Key]*Run{}}
	var err error
	if dir == "" {
		j.temp = true
		j.f, err = os.CreateTemp("", "invar-verify-*.jsonl")
	} else if err = os.MkdirAll(dir, 0o755); err == nil {
		j.f, err = os.OpenFile(filepath.Join(dir, "answers.jsonl"), os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // named by the user
	}
	if err != nil {
		return nil, err
	}
	had, err := j.load()
	switch {
	case err != nil:
	case had == nil:
		_, err = j.append(entry{Head: &head})
	case !had.same(head):
		err = &ForeignError{Dir: dir, Had: *had, Want: head}
	}
	if err != nil {
		_ = j.Close()
		return nil, err
	}
	return j, nil
}

func (h Head) same(o Head) bool {
	return h.Format == o.Format && h.Model == o.Model && h.Version == o.Version && h.Digest == o.Digest
}

// A ForeignError says that a journal is about something else.
type ForeignError struct {
	Dir       string
	Had, Want Head
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s holds another verification: %s %s with %v", e.Dir, e.Had.Model, e.Had.Version, e.Had.Workloads)
}

// load reads what is there. A cut last line is the trace of a kill and goes.
func (j *Journal) load() (*Head, error) {
	r := bufio.NewReaderSize(j.f, 1<<20)
	var head *Head
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		var e entry
		if errors.Is(err, io.EOF) || json.Unmarshal(line, &e) != nil {
			break
		}
		at := j.size
		j.size += int64(len(line))
		switch {
		case e.Head != nil:
			head = e.Head
		case e.Answer != nil && e.Key != nil:
			j.note(*e.Key, e.I, Ref{e.Answer.Digest(e.K), at + 1})
		case e.Run != nil:
			run := j.run(e.Run.Key)
			e.Run.Refs = run.Refs
			*run = *e.Run
		}
	}
	if err := j.f.Truncate(j.size); err != nil {
		return nil, err
	}
	_, err := j.f.Seek(j.size, io.SeekStart)
	return head, err
}

func (j *Journal) run(k Key) *Run {
	if r := j.by[k]; r != nil {
		return r
	}
	r := &Run{Key: k}
	j.by[k] = r
	j.runs = append(j.runs, r)
	return r
}

func (j *Journal) note(k Key, i int, ref Ref) {
	r := j.run(k)
	for len(r.Refs) <= i {
		r.Refs = append(r.Refs, Ref{})
	}
	r.Refs[i] = ref
}

// Start is the run k, empty; done says that the journal holds it complete. One
// that an earlier process left incomplete keeps its answers, which were given
// and still count, but its arrangement is made again as a whole, as another attempt.
func (j *Journal) Start(k Key) (r *Run, done bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.by[k] != nil {
		if j.by[k].Complete {
			return j.by[k], true
		}
		k.Attempt++
	}
	return j.run(k), false
}

// Put keeps the answer of subject i in run k.
func (j *Journal) Put(k Key, i int, a answer.Answer, top int, at []float64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	off, err := j.append(entry{Key: &k, I: i, K: top, Answer: &a, At: at})
	if err == nil {
		j.note(k, i, Ref{a.Digest(top), off + 1})
	}
	return err
}

// End keeps what is known of a run that ended.
func (j *Journal) End(r *Run) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err := j.append(entry{Run: r})
	return err
}

func (j *Journal) append(e entry) (int64, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	at := j.size
	n, err := j.f.Write(append(b, '\n'))
	j.size += int64(n)
	return at, err
}

// Read fetches an answer and the times of its tokens.
func (j *Journal) Read(ref Ref) (answer.Answer, []float64, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(j.f, ref.Offset-1, 1<<62), 64<<10)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return answer.Answer{}, nil, err
	}
	var e entry
	if err := json.Unmarshal(line, &e); err != nil || e.Answer == nil {
		return answer.Answer{}, nil, fmt.Errorf("journal: no answer at byte %d", ref.Offset-1)
	}
	return *e.Answer, e.At, nil
}

// Runs lists the runs in the order in which they began.
func (j *Journal) Runs() []*Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]*Run{}, j.runs...)
}

// Close closes the file, and removes it where it was temporary.
func (j *Journal) Close() error {
	err := j.f.Close()
	if j.temp {
		return errors.Join(err, os.Remove(j.f.Name()))
	}
	return err
}
