package wheel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// metadata renders METADATA (core metadata 2.4).
func (p Project) metadata() []byte {
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, value)
		}
	}
	line("Metadata-Version", "2.4")
	line("Name", p.Name)
	line("Version", p.Version)
	line("Summary", p.Description)
	people(line, "Author", p.Authors)
	people(line, "Maintainer", p.Maintainers)
	line("License-Expression", p.License)
	line("License", foldLines(p.LicenseText))
	for _, f := range slices.Sorted(maps.Keys(p.LicenseFiles)) {
		line("License-File", f)
	}
	line("Keywords", strings.Join(p.Keywords, ","))
	for _, c := range p.Classifiers {
		line("Classifier", c)
	}
	for _, k := range slices.Sorted(maps.Keys(p.URLs)) {
		line("Project-URL", k+", "+p.URLs[k])
	}
	line("Requires-Python", p.RequiresPython)
	for _, d := range p.Dependencies {
		line("Requires-Dist", d)
	}
	for _, extra := range slices.Sorted(maps.Keys(p.Extras)) {
		line("Provides-Extra", extra)
		for _, d := range p.Extras[extra] {
			line("Requires-Dist", withExtra(d, extra))
		}
	}
	line("Description-Content-Type", p.ReadmeType)
	if p.Readme != "" {
		b.WriteString("\n" + p.Readme)
	}
	return []byte(b.String())
}

// people splits persons as PEP 621 says: a name alone is a name; with an
// address both go into the -email field.
func people(line func(key, value string), key string, ps []Person) {
	var names, mails []string
	for _, a := range ps {
		switch {
		case a.Email == "":
			names = append(names, a.Name)
		case a.Name == "":
			mails = append(mails, a.Email)
		default:
			mails = append(mails, quoteName(a.Name)+" <"+a.Email+">")
		}
	}
	line(key, strings.Join(names, ", "))
	line(key+"-email", strings.Join(mails, ", "))
}

// quoteName quotes a display name that RFC 822 would take apart.
func quoteName(s string) string {
	if strings.ContainsAny(s, `()<>[]:;@\,."`) {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	return s
}

// foldLines continues a header value over several lines.
func foldLines(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n        ")
}

// withExtra adds an extra's condition to a requirement that may have a marker.
func withExtra(dep, extra string) string {
	req, marker, ok := strings.Cut(dep, ";")
	cond := fmt.Sprintf("extra == %q", extra)
	if ok {
		cond = "(" + strings.TrimSpace(marker) + ") and " + cond
	}
	return strings.TrimSpace(req) + "; " + cond
}

// wheelFile renders WHEEL. The generator has no version: two releases of invar
// make the same wheel of the same sources.
func wheelFile(t Tag, pure bool) []byte {
	var b strings.Builder
	root := "false"
	if pure {
		root = "true"
	}
	b.WriteString("Wheel-Version: 1.0\nGenerator: invar\nRoot-Is-Purelib: " + root + "\n")
	for _, s := range t.each() {
		b.WriteString("Tag: " + s + "\n")
	}
	return []byte(b.String())
}

// entryPoints renders entry_points.txt, nil when there is none.
func (p Project) entryPoints() []byte {
	var b strings.Builder
	for _, group := range slices.Sorted(maps.Keys(p.EntryPoints)) {
		eps := p.EntryPoints[group]
		if len(eps) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[%s]\n", group)
		for _, name := range slices.Sorted(maps.Keys(eps)) {
			fmt.Fprintf(&b, "%s = %s\n", name, eps[name])
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return []byte(b.String())
}
