package explain

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

// repeated is a reader of n bytes that repeats text without holding it n times.
type repeated struct {
	text string
	at   int
	left int64
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && r.left > 0 {
		m := copy(p[n:min(int64(len(p)), int64(n)+r.left)], r.text[r.at:])
		r.at = (r.at + m) % len(r.text)
		r.left -= int64(m)
		n += m
	}
	return n, nil
}

// quietBuild is what most of a build log looks like.
func quietBuild() string {
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, "[%d/4000] /usr/local/cuda/bin/nvcc --generate-dependencies-with-compile --dependency-output /tmp/build/temp.linux-x86_64-cpython-311/csrc/flash_attn/src/flash_fwd_hdim%d_bf16_sm80.o.d -I/usr/lib/python3.11/site-packages/torch/include -c /tmp/src/flash_fwd_%d.cu -O3 -std=c++17 -U__CUDA_NO_HALF_OPERATORS__ --expt-relaxed-constexpr -gencode arch=compute_80,code=sm_80\n", i, i%256, i)
		fmt.Fprintf(&b, "ptxas info    : Used %d registers, %d bytes cmem[0]\n", i%255, i%1000)
		fmt.Fprintf(&b, "/src/csrc/ops_%d.cpp:%d:17: warning: unused variable 'x' [-Wunused-variable]\n", i%97, i)
	}
	return b.String()
}

func BenchmarkLog(b *testing.B) {
	build := quietBuild()
	serve := strings.Repeat("(EngineCore_DP0 pid=804) INFO 07-28 06:40:59 [loggers.py:118] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 239.2 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 91.2%, Prefix cache hit rate: 0.0%\n", 5000)
	buildkit := strings.ReplaceAll(build, "\n", "\n#17 1042.7 ")
	colour := strings.ReplaceAll(build, "warning:", "\x1b[35m\x1b[Kwarning:\x1b[m\x1b[K")
	progress := strings.Repeat("\r  10% |#####     | 12.3 MB/s eta 0:00:10", 5000) + "\n"
	for _, c := range []struct{ name, text string }{
		{"build", build},
		{"serve", serve},
		{"buildkit", buildkit},
		{"colour", colour},
		{"redraws", progress},
		{"errors", strings.Repeat("make[1]: *** [Makefile:10: a.o] Error 1\n", 5000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			const size = 32 << 20
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Log(context.Background(), &repeated{text: c.text, left: size}, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
