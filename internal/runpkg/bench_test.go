package runpkg_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/runpkg"
)

// corpus links shared libraries of this system into a folder until they
// exceed size: what a run package holds, and not chosen for how it compresses.
func corpus(t testing.TB, size int64) string {
	t.Helper()
	var files []string
	seen := map[uint64]bool{}
	for _, root := range []string{"/usr/lib", "/lib", "/usr/local/lib", "/opt"} {
		_ = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || !strings.Contains(d.Name(), ".so") {
				return nil
			}
			info, err := d.Info()
			if err != nil || info.Size() < 64<<10 {
				return nil
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && !seen[st.Ino] {
				seen[st.Ino] = true
				files = append(files, p)
			}
			return nil
		})
	}
	slices.Sort(files)
	dir, total := t.TempDir(), int64(0)
	for round := 0; total < size; round++ {
		for i, p := range files {
			if total >= size {
				break
			}
			data := read(t, p)
			data = data[:min(int64(len(data)), size-total)]
			total += int64(len(data))
			name := filepath.Join(dir, fmt.Sprintf("%d/%03d", round, i/20), fmt.Sprintf("%04d-%s", i, filepath.Base(p)))
			must(t, os.MkdirAll(filepath.Dir(name), 0o755))
			must(t, os.WriteFile(name, data, 0o644))
		}
		if len(files) == 0 {
			t.Skip("no shared libraries here")
		}
	}
	must(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "bin/tool"), []byte("#!/bin/sh\n"), 0o755))
	return dir
}

const benchSize = 500 << 20

// asVLLM are the flags of vllm-ascend's makeself_custom.cmake.
var asVLLM = []string{"--gzip", "--complevel", "4", "--nomd5", "--sha256", "--tar-format", "posix"}

// duel runs both sides in turns and reports times and their ratio (theirs
// over ours: above 1 we are faster).
func duel(b *testing.B, ours, theirs func()) {
	b.Helper()
	var a, z []time.Duration
	for b.Loop() {
		for range 3 {
			start := time.Now()
			theirs()
			z = append(z, time.Since(start))
			start = time.Now()
			ours()
			a = append(a, time.Since(start))
		}
	}
	slices.Sort(a)
	slices.Sort(z)
	mine, other := a[len(a)/2], z[len(z)/2]
	b.ReportMetric(mine.Seconds(), "ours-s")
	b.ReportMetric(other.Seconds(), "theirs-s")
	b.ReportMetric(other.Seconds()/mine.Seconds(), "speedup")
}

func BenchmarkPack(b *testing.B) {
	tool(b, "makeself")
	dir := corpus(b, benchSize)
	for _, codec := range []runpkg.Codec{runpkg.Gzip, runpkg.Zstd} {
		b.Run(string(codec)+"-vs-makeself-gzip4", func(b *testing.B) {
			var ours, theirs string
			duel(b, func() { ours = pack(b, dir, codec) }, func() { theirs = makeself(b, dir, asVLLM...) })
			b.ReportMetric(float64(fileSize(b, ours))/float64(fileSize(b, theirs)), "size-ratio")
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	tool(b, "makeself")
	dir := corpus(b, benchSize)
	for name, flags := range map[string][]string{"sha256": asVLLM, "md5": {"--gzip", "--complevel", "4"}} {
		path := makeself(b, dir, flags...)
		b.Run(name, func(b *testing.B) {
			duel(b, func() {
				_, err := open(b, path).CheckDigests(context.Background(), runpkg.Options{})
				must(b, err)
			}, func() { run(b, "sh", path, "--check", "--quiet") })
		})
	}
}

func BenchmarkExtract(b *testing.B) {
	tool(b, "makeself")
	dir := corpus(b, benchSize)
	for name, flags := range map[string][]string{
		"gzip": asVLLM, "zstd": {"--zstd", "--complevel", "3", "--sha256"}, "none": {"--nocomp", "--sha256"},
		"bzip2": {"--bzip2", "--sha256"}, "xz": {"--xz", "--complevel", "2", "--sha256"}, "lz4": {"--lz4", "--complevel", "1", "--sha256"},
	} {
		b.Run(name, func(b *testing.B) {
			path := makeself(b, dir, flags...)
			duel(b, func() {
				out := filepath.Join(b.TempDir(), "out")
				_, err := open(b, path).Extract(context.Background(), out, runpkg.Options{})
				must(b, err)
				must(b, os.RemoveAll(out))
			}, func() {
				out := filepath.Join(b.TempDir(), "out")
				run(b, "sh", path, "--noexec", "--nochown", "--quiet", "--target", out)
				must(b, os.RemoveAll(out))
			})
		})
	}
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}

// TestMain lets the test program be the child whose memory is measured.
func TestMain(m *testing.M) {
	if job := os.Getenv("RUNPKG_TEST_CHILD"); job != "" {
		if err := child(job, os.Getenv("RUNPKG_TEST_FROM"), os.Getenv("RUNPKG_TEST_TO")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(job, from, to string) error {
	ctx := context.Background()
	codec, packing := strings.CutPrefix(job, "pack-")
	if packing {
		if _, err := runpkg.Write(ctx, to, spec(from, runpkg.Codec(codec))); err != nil {
			return err
		}
	} else {
		p, err := runpkg.Open(from)
		if err != nil {
			return err
		}
		if _, err := p.Extract(ctx, to, runpkg.Options{}); err != nil {
			return err
		}
	}
	// VmHWM, not ru_maxrss: the latter starts at what the parent had.
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, f)
	return err
}

// peak runs a job in a child and returns its peak memory in MiB.
func peak(t testing.TB, job, from, to string) float64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RUNPKG_TEST_CHILD="+job, "RUNPKG_TEST_FROM="+from, "RUNPKG_TEST_TO="+to)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", job, err, out)
	}
	_, rest, _ := strings.Cut(string(out), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("no VmHWM in %s", out)
	}
	return kib / 1024
}

func BenchmarkPeakMemory(b *testing.B) {
	dir := corpus(b, benchSize)
	for _, codec := range []runpkg.Codec{runpkg.Gzip, runpkg.Zstd, runpkg.None} {
		b.Run(string(codec), func(b *testing.B) {
			for b.Loop() {
				run := filepath.Join(b.TempDir(), "p.run")
				b.ReportMetric(peak(b, "pack-"+string(codec), dir, run), "pack-MiB")
				b.ReportMetric(peak(b, "extract", run, filepath.Join(b.TempDir(), "out")), "extract-MiB")
			}
		})
	}
}

// TestMemoryIsFlat packs and unpacks two sizes: the larger needs no more.
func TestMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("short: packs and unpacks hundreds of MiB; under the race detector the numbers mean nothing")
	}
	const limit = 64.0
	for _, codec := range []runpkg.Codec{runpkg.Gzip, runpkg.Zstd, runpkg.None} {
		for _, size := range []int64{20 << 20, 150 << 20} {
			dir := t.TempDir()
			blob(t, filepath.Join(dir, "blob"), size)
			path := filepath.Join(t.TempDir(), "p.run")
			if got := peak(t, "pack-"+string(codec), dir, path); got > limit {
				t.Errorf("%s: packing %d MiB took %.1f MiB of memory, want at most %.0f", codec, size>>20, got, limit)
			}
			if got := peak(t, "extract", path, filepath.Join(t.TempDir(), "out")); got > limit {
				t.Errorf("%s: extracting %d MiB took %.1f MiB of memory, want at most %.0f", codec, size>>20, got, limit)
			}
		}
	}
}

// blob writes bytes that compress about twofold.
func blob(t testing.TB, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	buf := make([]byte, 1<<20)
	x := uint32(7)
	for n := int64(0); n < size; n += int64(len(buf)) {
		for i := range buf {
			x = x*1664525 + 1013904223
			buf[i] = byte(x>>28) * 3
		}
		_, err := f.Write(buf)
		must(t, err)
	}
	must(t, f.Close())
}
