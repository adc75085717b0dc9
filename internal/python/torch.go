package python

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	torchCUDA  = regexp.MustCompile(`(?m)^cuda\s*(?::[^=]*)?=\s*(?:'([^']*)'|"([^"]*)"|None)`)
	localCUDA  = regexp.MustCompile(`^cu(\d{2,})(\d)$`)
	torchLocal = regexp.MustCompile(`(?m)^__version__\s*=\s*['"]([^'"]+)['"]`)
)

// TorchCUDA is torch.version.cuda, read from torch/version.py without starting
// Python: "13.2", or "" for a build without CUDA or no torch. A local version
// such as +cu132 tells where the file does not.
func (p Python) TorchCUDA() string {
	if !p.HasTorch() {
		return ""
	}
	version := p.Torch.Version
	if b, err := os.ReadFile(filepath.Join(p.TorchDir(), "version.py")); err == nil {
		if m := torchCUDA.FindSubmatch(b); m != nil {
			return string(m[1]) + string(m[2])
		}
		if m := torchLocal.FindSubmatch(b); m != nil {
			version = string(m[1])
		}
	}
	_, local, _ := strings.Cut(version, "+")
	if m := localCUDA.FindStringSubmatch(local); m != nil {
		return m[1] + "." + m[2]
	}
	return ""
}
