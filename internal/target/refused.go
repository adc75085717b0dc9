package target

import (
	"regexp"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/targets"
)

type refusedFile struct {
	Chips []Chip `yaml:"chips"`
}

// Refused lists the chips that invar knows and does not build for, with the reason.
func Refused() ([]Chip, error) {
	const file = "refused.yaml"
	b, err := targets.FS.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var f refusedFile
	if err := data.Decode("targets/"+file, b, &f); err != nil {
		return nil, err
	}
	return f.Chips, nil
}

// RefusedName finds the refused chip that name (a chip name, SKU or target) means.
func RefusedName(name string) (Chip, bool) {
	chips, err := Refused()
	if err != nil {
		return Chip{}, false
	}
	for _, c := range chips {
		if re, err := regexp.Compile(c.Pattern); err == nil && re.MatchString(name) {
			return c, true
		}
	}
	return Chip{}, false
}
