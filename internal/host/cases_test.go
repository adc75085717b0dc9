package host

import (
	"encoding/json"
	"os"
	"testing"
)

func TestDump(t *testing.T) {
	for _, dir := range []string{"testdata/detect/", "testdata/versions/"} {
	ents, _ := os.ReadDir(dir)
	for _, e := range ents {
		fh, _ := os.Open(dir + e.Name())
		f, err := From(fh)
		v := Judge(f)
		v.Weighed = nil
		v.Devices = nil
		b, _ := json.Marshal(v)
		c, _ := json.Marshal(f.Ascend)
		t.Log(e.Name(), err, "\n", string(b), string(c))
	}
	}
}
