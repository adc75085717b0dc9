package wheel

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	projectNameRE = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	// normalVersionRE is the normal form of PEP 440: other spellings of the
	// same version would give the file another name than pip expects.
	normalVersionRE = regexp.MustCompile(`^(\d+!)?(0|[1-9]\d*)(\.(0|[1-9]\d*))*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?$`)
)

func (p *Project) check() error {
	if !projectNameRE.MatchString(p.Name) {
		return fmt.Errorf("name %q: want letters, digits, '.', '_' and '-'", p.Name)
	}
	if !normalVersionRE.MatchString(p.Version) {
		return fmt.Errorf("version %q: want the normal form of PEP 440, such as 1.2.0 or 1.2.0rc1.post1+cpu", p.Version)
	}
	return p.checkLines()
}

// checkLines refuses line breaks in what becomes one header line each: a break
// would start a header of its own.
func (p *Project) checkLines() error {
	values := slices.Concat([]string{p.Description, p.RequiresPython, p.License, p.ReadmeType}, p.Keywords, p.Classifiers, p.Dependencies)
	for _, a := range slices.Concat(p.Authors, p.Maintainers) {
		values = append(values, a.Name, a.Email)
	}
	for k, v := range p.URLs {
		values = append(values, k, v)
	}
	for k, deps := range p.Extras {
		values = append(append(values, k), deps...)
	}
	for g, eps := range p.EntryPoints {
		values = append(values, g)
		for k, v := range eps {
			values = append(values, k, v)
		}
	}
	for _, v := range values {
		if strings.ContainsAny(v, "\n\r") {
			return fmt.Errorf("%q: want one line", v)
		}
	}
	return nil
}
