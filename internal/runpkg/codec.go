package runpkg

import (
	"bufio"
	"compress/bzip2"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"

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

// reader decodes r. The second result frees what the decoder holds.
func (c Codec) reader(r io.Reader) (io.Reader, func(), error) {
	nothing := func() {}
	switch c {
	case Gzip:
		z, err := gzip.NewReader(bufio.NewReaderSize(r, 64<<10))
		return z, nothing, err
	case Zstd:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(2),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nothing, err
		}
		return z, z.Close, nil
	case Xz:
		// Its memory is the dictionary that the file asks for: 64 MiB at xz -9.
		z, err := xz.NewReader(bufio.NewReaderSize(r, 64<<10))
		return z, nothing, err
	case Bzip2:
		return bzip2.NewReader(bufio.NewReaderSize(r, 64<<10)), nothing, nil
	case Lz4:
		return lz4.NewReader(r), nothing, nil
	case None:
		return r, nothing, nil
	}
	return nil, nothing, report.Problemf(report.Failed, "codec %q cannot be read", string(c))
}

// maxWindow is what zstd --ultra -22 asks for at most without --long.
const maxWindow = 128 << 20

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
