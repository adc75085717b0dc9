package vllm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/scripts"
)

// weights is the file of a model whose digest is known beforehand.
const weights = "model.safetensors"

func (m Model) dir(p Place) string { return filepath.Join(p.Dir, "models", m.Name) }

// there reports whether the model is made, as the one that m describes.
func (m Model) there(p Place) bool {
	b, err := os.ReadFile(filepath.Join(m.dir(p), ".sha256"))
	return err == nil && string(b) == m.SHA256 && isFile(filepath.Join(m.dir(p), weights))
}

// make makes the model unless it is there; made says whether it had to.
func (m Model) make(ctx context.Context, o Options, p Place) (made bool, err error) {
	dir := m.dir(p)
	if m.there(p) {
		return false, nil
	}
	step := o.Progress.Start(stage, "model "+m.Name+": "+m.Title, -1)
	if err := m.write(ctx, o, p, dir); err != nil {
		step.Fail(err)
		return false, err
	}
	step.Done(dir)
	return true, nil
}

// write makes the model beside dir and renames it there when it is what it should be.
func (m Model) write(ctx context.Context, o Options, p Place, dir string) error {
	tools, err := unpack()
	defer func() { _ = os.RemoveAll(tools) }()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	digest, err := m.ask(ctx, o, p.Python, filepath.Join(tools, scripts.Models), tmp)
	if err != nil {
		return err
	}
	if digest != m.SHA256 {
		return report.Problemf(report.Failed, "model %s came out with other weights", m.Name).WithWant("sha256 "+m.SHA256, digest).
			WithHint("this torch draws other random integers than the pinned one; make the environment again: remove %s", p.Dir)
	}
	return errors.Join(
		os.Chmod(tmp, 0o755), os.Chmod(filepath.Join(tmp, weights), 0o644),
		os.WriteFile(filepath.Join(tmp, ".sha256"), []byte(m.SHA256), 0o644),
		os.RemoveAll(dir), os.Rename(tmp, dir),
	)
}

// ask runs the script that writes the model and returns the digest of its weights.
func (m Model) ask(ctx context.Context, o Options, py, script, dir string) (string, error) {
	request, err := json.Marshal(struct {
		Model
		Dir string `json:"dir"`
	}{m, dir})
	if err != nil {
		return "", err
	}
	res, err := o.Runner.Run(ctx, run.Cmd{
		Argv: []string{py, script}, Env: o.Env, Stdin: bytes.NewReader(request), Timeout: 10 * time.Minute,
	})
	if err != nil {
		p := report.Problemf(report.BuildFailed, "model %s: %w", m.Name, err)
		if re, ok := errors.AsType[*run.Error](err); ok {
			p.Tail = re.Tail(12)
		}
		return "", p
	}
	var answer struct {
		Files map[string]string `json:"files"`
	}
	if err := json.Unmarshal(res.Stdout, &answer); err != nil {
		return "", report.Problemf(report.Failed, "model %s: the script's answer is no JSON: %w", m.Name, err)
	}
	return answer.Files[weights], nil
}
