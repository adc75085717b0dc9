package runpkg

import (
	"fmt"

	"github.com/invar-ops/invar/internal/report"
)

// Limits bound what unpacking may use, since an archive of some kilobytes can
// unpack to terabytes. A zero field means its default.
type Limits struct {
	Files int     // entries
	Bytes int64   // unpacked bytes
	Ratio float64 // unpacked bytes per byte of the payload
}

// The defaults. The largest CANN packages hold about ten thousand files and
// some gigabytes; libraries and kernels compress 2 to 20 times. Deflate cannot
// go beyond 1032:1 and reaches that on zeros only, so 250 is reached by sparse
// data and bombs alone. Below ratioFloor the ratio proves nothing: a page of
// zeros is no bomb.
const (
	defaultFiles = 200_000
	defaultBytes = 64 << 30
	defaultRatio = 250
	ratioFloor   = 64 << 20
)

func (l Limits) withDefaults() Limits {
	if l.Files == 0 {
		l.Files = defaultFiles
	}
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Ratio == 0 {
		l.Ratio = defaultRatio
	}
	return l
}

// budget counts what an archive has used. declared are the sizes in its
// entries (a sparse file can declare more than it holds), streamed the bytes
// that really came out of the decoder.
type budget struct {
	Limits
	packed             int64
	files              int
	declared, streamed int64
}

func (b *budget) entry(size int64) error {
	b.files++
	if b.files > b.Files {
		return bomb("more than %d files", b.Files)
	}
	if size < 0 || size > b.Bytes-b.declared {
		return bomb("more than %d bytes", b.Bytes)
	}
	b.declared += size
	return b.ratio(b.declared)
}

func (b *budget) read(n int) error {
	b.streamed += int64(n)
	// Headers and padding: at most 1.5 KiB an entry, and the end of the archive.
	if b.streamed-int64(b.files)*2048-(1<<20) > b.Bytes {
		return bomb("more than %d bytes", b.Bytes)
	}
	return b.ratio(b.streamed)
}

func (b *budget) ratio(unpacked int64) error {
	if unpacked > ratioFloor && float64(unpacked) > b.Ratio*float64(b.packed) {
		return bomb("more than %.0f times the %d bytes of its payload", b.Ratio, b.packed)
	}
	return nil
}

func bomb(format string, args ...any) error {
	return report.Problemf(report.CheckFailed, "the package unpacks to "+format, args...).
		WithWant("what a package of operators needs", fmt.Sprintf(format, args...)).
		WithHint("if you know what is inside, raise the limit")
}
