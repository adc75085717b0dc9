package deflate_test

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/invar-ops/invar/internal/runpkg/deflate"
)

const blockSize = 512 << 10

func compress(data []byte, size int) []byte {
	var e deflate.Encoder
	var out []byte
	for i := 0; ; i += size {
		end := min(i+size, len(data))
		from := max(0, i-deflate.Window)
		out = e.Block(out, data[from:end], i-from, end == len(data))
		if end == len(data) {
			return out
		}
	}
}

func expect(t testing.TB, data []byte, size int) []byte {
	t.Helper()
	packed := compress(data, size)
	got, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes in blocks of %d: error %v, equal %v", len(data), size, err, bytes.Equal(got, data))
	}
	return packed
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	skewed := make([]byte, 1<<20)
	for i := range skewed { // frequencies like Fibonacci: codes beyond 15 bits
		skewed[i] = byte(min(r.ExpFloat64()*0.7*16, 255))
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty": nil, "one": {7}, "seven": []byte("1234567"), "zeros": make([]byte, 3<<20), "random": random, "skewed": skewed,
		"program": self, "far": append(append(bytes.Clone(random[:5000]), make([]byte, 32<<10-5000)...), random[:5000]...),
	} {
		for _, size := range []int{1, 100, 65_537, blockSize} {
			if size == 1 {
				data = data[:min(len(data), 2000)]
			}
			packed := expect(t, data, size)
			if size == blockSize && len(packed) > len(data)+len(data)/1000+64 {
				t.Errorf("%s: %d bytes became %d", name, len(data), len(packed))
			}
		}
	}
}

// TestSameForEveryEncoder: what an encoder did before does not show.
func TestSameForEveryEncoder(t *testing.T) {
	t.Parallel()
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	var used, fresh deflate.Encoder
	used.Block(nil, self[:blockSize], 1000, false)
	block := self[blockSize : 2*blockSize]
	if !bytes.Equal(used.Block(nil, block, deflate.Window, true), fresh.Block(nil, block, deflate.Window, true)) {
		t.Error("other bytes from an encoder that was used before")
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("abcabcabcabcabcabc"), 3)
	f.Add(bytes.Repeat([]byte{0, 1}, 70_000), 40_000)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if size > 0 && len(data)/size < 1000 {
			expect(t, data, size)
		}
	})
}

func BenchmarkBlock(b *testing.B) {
	name := os.Getenv("DEFLATE_BENCH_FILE")
	if name == "" {
		name = os.Args[0]
	}
	data, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		b.ReportMetric(float64(len(compress(data, blockSize)))/float64(len(data))*100, "%")
	}
}
