package wheel

import (
	_ "embed"
	"sync"

	"github.com/invar-ops/invar/internal/data"
)

//go:embed policy.yaml
var policyYAML []byte

// policy is policy.yaml: for libraries and symbol versions the minor number X
// of the first manylinux_2_X that allows them.
type policy struct {
	Policies struct {
		Manylinux []int  `yaml:"manylinux"`
		Musllinux string `yaml:"musllinux"`
	} `yaml:"policies"`
	Libraries map[string]int                       `yaml:"libraries"`
	Blocked   map[string]map[string]int            `yaml:"blocked"` // library -> symbol -> last policy that forbids it
	Symbols   map[string]map[string]map[string]int `yaml:"symbols"` // arch -> prefix -> version
}

var loadPolicy = sync.OnceValues(func() (policy, error) {
	var p policy
	err := data.Decode("policy.yaml", policyYAML, &p)
	return p, err
})
