package templates

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"testing"
)

// version is the release that the program says it is.
func version(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^const release = "(.*)"$`).FindStringSubmatch(read(t, filepath.Join(root, "cmd/invar/version.go")))
	if m == nil {
		t.Fatal("cmd/invar/version.go names no release")
	}
	return m[1]
}

// binary is invar, built once for all tests.
var binary = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "invar-templates-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "invar"), "./cmd/invar")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "invar"))
})

func invar(t *testing.T) []byte {
	t.Helper()
	b, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A release is a folder with files as mage dist names them, on loopback.
type release struct {
	url    string
	name   string            // of the binary
	digest string            // of the binary
	files  map[string][]byte // what is served; a test changes it before it asks
}

func serve(t *testing.T) *release {
	t.Helper()
	content := invar(t)
	r := &release{
		name:   fmt.Sprintf("invar_%s+g0123456789ab_linux_%s", version(t), runtime.GOARCH),
		digest: fmt.Sprintf("%x", sha256.Sum256(content)), files: map[string][]byte{},
	}
	r.files[r.name] = content
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	r.files["SHA256SUMS"] = fmt.Appendf(nil, "%s  %s\n%064d  %s.cdx.json\n%064d  invar_%s+g0123456789ab_linux_%s\n",
		r.digest, r.name, 1, r.name, 2, version(t), other)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, ok := r.files[q.URL.Path[1:]]
		if !ok {
			http.NotFound(w, q)
			return
		}
		_, _ = w.Write(b)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}
