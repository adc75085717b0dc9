package explain

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed all:signs
var signFiles embed.FS

// phrases turns the localized messages of compilers, shells and the C library
// into the English ones that the rules know.
type phrases struct {
	replacer *strings.Replacer
	literals []string
}

type phraseFile struct {
	About   string `yaml:"about"`
	Locales []struct {
		Locale  string `yaml:"locale"`
		Source  string `yaml:"source"`
		Phrases []struct {
			From string `yaml:"from"`
			To   string `yaml:"to"`
		} `yaml:"phrases"`
	} `yaml:"locales"`
	// Debris are remains of colour codes in pasted logs. They hide a literal
	// from the scan, so that their lines are read again without them.
	Debris []string `yaml:"debris"`
}

func loadPhrases() (*phrases, error) {
	const name = "signs/phrases.yaml"
	var f phraseFile
	if err := decode(signFiles, name, &f); err != nil {
		return nil, err
	}
	p := &phrases{literals: f.Debris}
	var pairs []string
	for _, l := range f.Locales {
		for _, ph := range l.Phrases {
			if len(ph.From) < 3 || ph.To == "" {
				return nil, fmt.Errorf("%s: %s: phrase %q is too short or has no translation", name, l.Locale, ph.From)
			}
			pairs = append(pairs, ph.From, ph.To)
			p.literals = append(p.literals, ph.From)
		}
	}
	p.replacer = strings.NewReplacer(pairs...)
	return p, nil
}
