package invar

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/extwheel"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/scripts"
)

// installWheel builds the wheel, or takes the one that the store has of the
// same inputs, and unpacks it beside the operators.
func (b *release) installWheel(ctx context.Context, tx *install.Tx, ops operators, ext extension) error {
	step := b.Progress.Start(plan.Stage2, "wheel:", -1)
	obj, path, cached, err := b.wheel(ctx, ext)
	if err == nil {
		err = tx.InstallWheel(ctx, path)
	}
	if err == nil {
		err = b.hook(tx, ops.pkg.Vendor)
	}
	if err != nil {
		step.Fail(err)
		return err
	}
	text := fmt.Sprintf("%s, %s, sha256 %s", obj.Name, kilo(obj.Size), obj.SHA256[:12])
	if cached {
		step.Skip(text + " (unchanged)")
		return nil
	}
	step.Done(text)
	return nil
}

// hook is the module that names this vendor whenever Python starts.
func (b *release) hook(tx *install.Tx, vendor string) error {
	text, err := fs.ReadFile(scripts.FS, scripts.Hook)
	if err != nil {
		return err
	}
	where := "ops/" + b.p.Target + "/vendors/" + vendor
	return tx.PutStartup([]byte(strings.ReplaceAll(string(text), "@VENDOR@", where)))
}

func (b *release) wheel(ctx context.Context, ext extension) (obj store.Object, path string, cached bool, err error) {
	st, err := store.Open(b.Prefix)
	if err != nil {
		return obj, "", false, err
	}
	s, ok := b.p.Step("stage2/wheel")
	if !ok {
		return obj, "", false, fmt.Errorf("the plan has no wheel")
	}
	a, why, err := st.Lookup(ctx, s.Fingerprint)
	if err != nil {
		return obj, "", false, err
	}
	if why == "" {
		for _, obj := range a.Outputs {
			to := filepath.Join(b.work, obj.Name)
			return obj, to, true, copyTo(st.Path(obj.SHA256), to)
		}
	}
	log := b.log("stage2")
	scratch := filepath.Join(b.work, "stage2")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return obj, "", false, err
	}
	env := b.env
	if b.r.SoC != "" {
		env = run.Setenv(env, "SOC_VERSION", b.r.SoC)
	}
	t, err := target.Find(b.p.Target)
	if err != nil {
		return obj, "", false, err
	}
	path, err = extwheel.Build{
		Runner: b.Runner, Python: b.p.Python, Project: ext.project, Scratch: scratch, Env: env, Package: t.Stage2.Package,
		Arch: b.p.Arch, Jobs: b.jobs, Offline: b.o.Offline, Log: log, Note: b.Progress.Note,
	}.Make(ctx)
	if err != nil {
		b.diagnose(err, log)
		return obj, "", false, err
	}
	if obj, err = st.Put(ctx, path); err != nil {
		return obj, "", false, err
	}
	return obj, path, false, st.Record(store.Action{
		Fingerprint: s.Fingerprint, Step: s.ID, Made: time.Now().UTC(), Outputs: map[string]store.Object{"wheel": obj},
	})
}

func copyTo(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}
