package fetch

import (
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
)

// The size of a released run package.
const released = 105 << 20

// BenchmarkDownload compares with curl on the same link, loopback, where the
// digest costs most. Both write a file; only invar knows what is in it.
func BenchmarkDownload(b *testing.B) {
	body, sum := payload(released)
	s := httptest.NewServer(content(body))
	defer s.Close()
	b.Run("curl", func(b *testing.B) {
		curl, err := exec.LookPath("curl")
		if err != nil {
			b.Skip("needs curl")
		}
		b.SetBytes(released)
		for b.Loop() {
			if out, err := exec.CommandContext(b.Context(), curl, "-sSf", "-o", filepath.Join(b.TempDir(), "x"), s.URL).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
	b.Run("invar", func(b *testing.B) {
		b.SetBytes(released)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Get(b.Context(), Item{Name: "x", URLs: []string{s.URL}, Pins: pins(sum)}, Options{Cache: b.TempDir()}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
