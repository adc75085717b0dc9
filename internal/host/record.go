package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/host/chip"
)

// RecordVersion counts incompatible changes of a recorded folder.
const RecordVersion = 1

const recordFile = "machine.json"

// A recording is machine.json: what was asked, with the answers in files of
// their own so that a person can read and compare them.
type recording struct {
	Schema   string  `json:"schema"`
	Version  int     `json:"version"`
	Recorded []entry `json:"recorded"`
}

type entry struct {
	Source   string        `json:"source"`
	Asked    string        `json:"asked"`
	File     string        `json:"file,omitempty"` // in the same folder; none for an empty answer
	Absent   bool          `json:"absent,omitempty"`
	ExitCode int           `json:"exit_code,omitempty"`
	Elapsed  time.Duration `json:"elapsed_ns,omitempty"`
	Reason   string        `json:"reason,omitempty"` // why there is no answer
}

const recordSchema = "invar.machine"

// Record saves what every source said into dir, which it makes, with serial
// numbers, UUIDs, MAC and IP addresses, home folders and this machine's name
// masked. It refuses to write a recording that would be judged differently.
func Record(dir string, f Facts) error {
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	return record(dir, f, name)
}

func record(dir string, f Facts, hostName string) error {
	if f.Pasted {
		return errors.New("a pasted text is not a machine; there is nothing to record")
	}
	if found, err := os.ReadDir(dir); err == nil && len(found) > 0 {
		return fmt.Errorf("%s is not empty; want a new folder", dir)
	}
	rules, err := chip.Load()
	if err != nil {
		return err
	}
	masked := mask(f.Evidence, newMasker(hostName))
	if a, b := outcome(Judge(f)), outcome(Judge(understand(rules, masked))); !reflect.DeepEqual(a, b) {
		return fmt.Errorf("masking would change the verdict from %v to %v", a, b)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	rec := recording{Schema: recordSchema, Version: RecordVersion}
	for i, e := range masked {
		x := entry{Source: e.Source, Asked: e.Asked, Absent: e.Absent, ExitCode: e.ExitCode, Elapsed: e.Elapsed, Reason: e.Reason}
		if e.Answer != "" {
			x.File = fmt.Sprintf("%02d-%s.txt", i+1, slug(e.Asked))
			if err := os.WriteFile(filepath.Join(dir, x.File), []byte(e.Answer), 0o644); err != nil {
				return err
			}
		}
		rec.Recorded = append(rec.Recorded, x)
	}
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordFile), append(b, '\n'), 0o644)
}

// outcome is what must be the same before and after masking.
func outcome(v Verdict) []any {
	return []any{v.State, v.SoC, v.Family, v.Target, v.Rule, v.ChipRule, v.Count, v.Driver, v.Health.InUse, v.Health.Faulty}
}

// mask copies evidence with masked texts, as it was before it was understood:
// a later reader may understand more.
func mask(evidence []Evidence, m *masker) []Evidence {
	out := make([]Evidence, len(evidence))
	for i, e := range evidence {
		out[i] = Evidence{
			Source: e.Source, Asked: m.text(e.Asked), Answer: m.text(e.Answer), Absent: e.Absent,
			ExitCode: e.ExitCode, Elapsed: e.Elapsed, Reason: m.text(e.asked),
		}
	}
	return out
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

func slug(s string) string {
	s = strings.Trim(notSlug.ReplaceAllString(strings.ToLower(s), "-"), "-")
	if len(s) > 40 {
		s = strings.Trim(s[:40], "-")
	}
	return s
}

// Replay reads a folder that Record wrote. The answers are understood anew, so
// an old recording profits from new rules.
func Replay(dir string) (Facts, error) {
	rules, err := chip.Load()
	if err != nil {
		return Facts{}, err
	}
	b, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return Facts{}, fmt.Errorf("not a recorded machine: %w", err)
	}
	rec, err := decodeRecording(b)
	if err != nil {
		return Facts{}, fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	var evidence []Evidence
	for _, x := range rec.Recorded {
		e := Evidence{Source: x.Source, Asked: x.Asked, Absent: x.Absent, ExitCode: x.ExitCode, Elapsed: x.Elapsed, Reason: x.Reason}
		if x.File != "" {
			if x.File != filepath.Base(x.File) {
				return Facts{}, fmt.Errorf("%s: file %q is not a plain name", recordFile, x.File)
			}
			text, err := os.ReadFile(filepath.Join(dir, x.File))
			if err != nil {
				return Facts{}, err
			}
			e.Answer = string(text)
		}
		evidence = append(evidence, e)
	}
	return understand(rules, evidence), nil
}

func decodeRecording(b []byte) (recording, error) {
	var rec recording
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(&rec); err != nil {
		return rec, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return rec, errors.New("text after the object")
	}
	if rec.Schema != recordSchema || rec.Version != RecordVersion {
		return rec, fmt.Errorf("schema %q version %d; want %q version %d", rec.Schema, rec.Version, recordSchema, RecordVersion)
	}
	return rec, nil
}
