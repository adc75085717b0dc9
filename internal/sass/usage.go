package sass

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// A Usage is what one kernel takes of a multiprocessor.
type Usage struct {
	Registers int `json:"registers"` // of a thread
	Stack     int `json:"stack"`     // bytes of a thread, spills among them
	Shared    int `json:"shared"`    // bytes of a block, without what the launch adds
}

var (
	functionRE = regexp.MustCompile(`^\s*Function\s+(\S+?):?\s*$`)
	usageRE    = regexp.MustCompile(`\b(REG|STACK|SHARED):(\d+)\b`)
)

// ParseUsage reads the output of cuobjdump --dump-resource-usage by kernel.
func ParseUsage(r io.Reader) (map[string]Usage, error) {
	out := map[string]Usage{}
	name := ""
	for s := bufio.NewScanner(r); s.Scan(); {
		l := s.Text()
		if m := functionRE.FindStringSubmatch(l); m != nil {
			name = m[1]
			continue
		}
		values := usageRE.FindAllStringSubmatch(l, -1)
		if name == "" || len(values) == 0 {
			continue
		}
		var u Usage
		for _, v := range values {
			n, err := strconv.Atoi(v[2])
			if err != nil {
				return nil, fmt.Errorf("resource usage of %s: %w", name, err)
			}
			switch v[1] {
			case "REG":
				u.Registers = n
			case "STACK":
				u.Stack = n
			case "SHARED":
				u.Shared = n
			}
		}
		if !strings.Contains(l, "REG:") {
			return nil, fmt.Errorf("resource usage of %s without registers: %.80q", name, l)
		}
		out[name], name = u, ""
	}
	return out, nil
}
