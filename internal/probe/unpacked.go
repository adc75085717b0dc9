package probe

import (
	"context"
	"os"

	"github.com/invar-ops/invar/internal/imagefs"
	"github.com/invar-ops/invar/internal/rootfs"
)

// RunImage probes the installation in an image. It is unpacked into a temporary
// folder, which goes whatever happens; nothing of it is started.
func RunImage(ctx context.Context, i imagefs.Options, o Options) (Result, error) {
	img, err := imagefs.Open(ctx, i)
	if err != nil {
		return Result{}, err
	}
	defer img.Close()
	dir, err := os.MkdirTemp(i.Scratch, "invar-image-")
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := img.Unpack(ctx, dir); err != nil {
		return Result{}, err
	}
	if o.Root, err = rootfs.Open(dir); err != nil {
		return Result{}, err
	}
	o.Image, o.Env = img, img.Config.Config.Env
	return Run(ctx, o)
}
