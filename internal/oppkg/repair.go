package oppkg

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/pins"
)

// A Repaired is one known defect, and whether it was put right.
type Repaired struct {
	Link string `json:"link"` // below the folder of the installation
	To   string `json:"to"`
	Why  string `json:"why"`
	Done bool   `json:"done"`
}

// Repair looks for the known defects in what was installed to the folder to;
// with do it puts them right by links. A defect that is not there is not listed.
func Repair(to, vendor, opp string, known []pins.Repair, do bool) ([]Repaired, error) {
	var out []Repaired
	for _, k := range known {
		put := strings.NewReplacer("{vendor}", vendor, "{opp}", opp)
		r := Repaired{Link: put.Replace(k.Link), To: put.Replace(k.To), Why: k.Why}
		at := filepath.Join(to, r.Link)
		end := r.To
		if !filepath.IsAbs(end) {
			end = filepath.Join(filepath.Dir(at), end)
		}
		if _, err := os.Stat(end); err != nil {
			continue // nothing to link to: another layout
		}
		if _, err := os.Lstat(at); err == nil {
			continue
		}
		if do {
			if err := os.Symlink(r.To, at); err != nil {
				return out, err
			}
			r.Done = true
		}
		out = append(out, r)
	}
	return out, nil
}
