package build

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/proof"
)

// prove looks into the machine code and writes what it found.
func (b *Builder) prove(ctx context.Context, s plan.Step) error {
	spec, ok := s.Spec.(proof.Spec)
	if !ok {
		return errSpec
	}
	p, err := proof.Make(ctx, b.work, spec, proof.Tools{Runner: b.runner, Env: b.env})
	if err != nil {
		return err
	}
	return WriteProof(filepath.Join(b.work, s.Outputs[0]), p)
}

// WriteProof writes p as the JSON that the manifest of a run package holds.
func WriteProof(file string, p proof.Proof) error {
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
