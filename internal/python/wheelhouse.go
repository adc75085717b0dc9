package python

import (
	"os"
	"strings"
)

// A Wheelhouse is a folder that packages are installed from.
type Wheelhouse struct {
	Dir    string `json:"dir"`
	Wheels int    `json:"wheels"`
	Torch  bool   `json:"torch"`            // a wheel of torch is among them
	Reason string `json:"reason,omitempty"` // why it cannot be used
}

// OpenWheelhouse looks into dir, which may be missing.
func OpenWheelhouse(dir string) Wheelhouse {
	w := Wheelhouse{Dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.Reason = err.Error()
		return w
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".whl") {
			w.Wheels++
			w.Torch = w.Torch || strings.HasPrefix(e.Name(), "torch-")
		}
	}
	return w
}
