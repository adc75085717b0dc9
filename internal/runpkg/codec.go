package runpkg

import (
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/invar-ops/invar/internal/report"
)

// A Codec names how the tar in a package is compressed.
type Codec string

// The codecs that Write offers. Gzip is the default: any machine can unpack
// it. The reader knows more of them, and Other names those it refuses.
const (
	Gzip  Codec = "gzip"
	Zstd  Codec = "zstd"
	None  Codec = "none"
	Xz    Codec = "xz"
	Bzip2 Codec = "bzip2"
	Lz4   Codec = "lz4"
)

// zstdWindow bounds the memory of both sides; larger gains little on code.
const zstdWindow = 4 << 20

func (c Codec) writer(w io.Writer) (io.WriteCloser, error) {
	switch c {
	case Gzip, "":
		return newGzipWriter(w), nil
	case Zstd:
		return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault),
			zstd.WithWindowSize(zstdWindow), zstd.WithEncoderConcurrency(2), zstd.WithLowerEncoderMem(true))
	case None:
		return nopCloser{w}, nil
	}
	return nil, report.Usagef("codec %q cannot be written", string(c)).WithWant("gzip, zstd or none", string(c))
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
