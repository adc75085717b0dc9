package wheel

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/invar-ops/invar/internal/report"
)

// A Project is the metadata of a wheel: the [project] table of a
// pyproject.toml (PEP 621, PEP 639) with readme and license files read.
type Project struct {
	Name           string
	Version        string
	Description    string
	Readme         string // content
	ReadmeType     string // "text/markdown"
	RequiresPython string
	License        string // SPDX expression
	LicenseText    string // old form license = {text} or {file}
	LicenseFiles   map[string][]byte
	Authors        []Person
	Maintainers    []Person
	Keywords       []string
	Classifiers    []string
	URLs           map[string]string
	Dependencies   []string
	Extras         map[string][]string
	// EntryPoints maps group to name to object, console_scripts included.
	EntryPoints map[string]map[string]string
}

// A Person is an author or a maintainer.
type Person struct {
	Name  string `toml:"name"`
	Email string `toml:"email"`
}

// table is [project] as written. readme and license have two forms each.
type table struct {
	Name           string                       `toml:"name"`
	Version        string                       `toml:"version"`
	Description    string                       `toml:"description"`
	Readme         any                          `toml:"readme"`
	RequiresPython string                       `toml:"requires-python"`
	License        any                          `toml:"license"`
	LicenseFiles   []string                     `toml:"license-files"`
	Authors        []Person                     `toml:"authors"`
	Maintainers    []Person                     `toml:"maintainers"`
	Keywords       []string                     `toml:"keywords"`
	Classifiers    []string                     `toml:"classifiers"`
	URLs           map[string]string            `toml:"urls"`
	Dependencies   []string                     `toml:"dependencies"`
	Extras         map[string][]string          `toml:"optional-dependencies"`
	Scripts        map[string]string            `toml:"scripts"`
	GUIScripts     map[string]string            `toml:"gui-scripts"`
	EntryPoints    map[string]map[string]string `toml:"entry-points"`
	Dynamic        []string                     `toml:"dynamic"`
}

// ReadProject reads the [project] table of file in fsys. Files that it names
// are taken relative to that file. Keys that PEP 621 does not know are errors.
func ReadProject(fsys fs.FS, file string) (Project, error) {
	b, err := fs.ReadFile(fsys, file)
	if err != nil {
		return Project{}, err
	}
	// A pointer tells a missing table from an empty one.
	var doc struct {
		Project *table         `toml:"project"`
		Build   toml.Primitive `toml:"build-system"`
		Tool    toml.Primitive `toml:"tool"`
		Groups  toml.Primitive `toml:"dependency-groups"`
	}
	meta, err := toml.Decode(string(b), &doc)
	if err != nil {
		return Project{}, fmt.Errorf("%s: %w", file, err)
	}
	if doc.Project == nil {
		return Project{}, report.Problemf(report.Failed, "%s has no [project] table", file).
			WithHint("add [project] with name and version (PEP 621)")
	}
	for _, k := range meta.Undecoded() {
		// readme and license have two forms each and look at their own keys.
		if k[0] == "project" && (len(k) < 3 || (k[1] != "readme" && k[1] != "license")) {
			return Project{}, fmt.Errorf("%s: unknown key %q", file, k.String())
		}
	}
	p, err := doc.Project.resolve(fsys, path.Dir(file))
	if err != nil {
		return Project{}, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

func (t table) resolve(fsys fs.FS, dir string) (Project, error) {
	if len(t.Dynamic) > 0 {
		return Project{}, fmt.Errorf("dynamic = %q: every value has to stand in the file", t.Dynamic)
	}
	p := Project{
		Name: t.Name, Version: t.Version, Description: t.Description, RequiresPython: t.RequiresPython,
		Authors: t.Authors, Maintainers: t.Maintainers, Keywords: t.Keywords, Classifiers: t.Classifiers,
		URLs: t.URLs, Dependencies: t.Dependencies, Extras: t.Extras,
		EntryPoints: map[string]map[string]string{},
	}
	for group, eps := range t.EntryPoints {
		if group == "console_scripts" || group == "gui_scripts" {
			return Project{}, fmt.Errorf("entry-points.%s: use [project.scripts] or [project.gui-scripts]", group)
		}
		p.EntryPoints[group] = eps
	}
	if len(t.Scripts) > 0 {
		p.EntryPoints["console_scripts"] = t.Scripts
	}
	if len(t.GUIScripts) > 0 {
		p.EntryPoints["gui_scripts"] = t.GUIScripts
	}
	if err := errors.Join(p.readReadme(fsys, dir, t.Readme), p.readLicense(fsys, dir, t.License, t.LicenseFiles)); err != nil {
		return Project{}, err
	}
	return p, p.check()
}

func (p *Project) readReadme(fsys fs.FS, dir string, v any) error {
	switch r := v.(type) {
	case nil:
		return nil
	case string:
		kind, ok := map[string]string{".md": "text/markdown", ".rst": "text/x-rst", ".txt": "text/plain"}[strings.ToLower(path.Ext(r))]
		if !ok {
			return fmt.Errorf("readme = %q: want .md, .rst or .txt, or a table with content-type", r)
		}
		b, err := fs.ReadFile(fsys, path.Join(dir, r))
		p.Readme, p.ReadmeType = string(b), kind
		return err
	case map[string]any:
		text, err := fileOrText(fsys, dir, "readme", r, "content-type")
		kind, ok := r["content-type"].(string)
		if err == nil && !ok {
			err = errors.New("readme: want content-type beside file or text")
		}
		p.Readme, p.ReadmeType = text, kind
		return err
	}
	return fmt.Errorf("readme: want a file name or a table, got %T", v)
}

func (p *Project) readLicense(fsys fs.FS, dir string, v any, globs []string) error {
	switch l := v.(type) {
	case nil:
	case string:
		p.License = l
	case map[string]any:
		text, err := fileOrText(fsys, dir, "license", l)
		if err != nil {
			return err
		}
		p.LicenseText = text
	default:
		return fmt.Errorf("license: want an SPDX expression or a table, got %T", v)
	}
	p.LicenseFiles = map[string][]byte{}
	for _, g := range globs {
		hits, err := fs.Glob(fsys, path.Join(dir, g))
		if err != nil {
			return fmt.Errorf("license-files %q: %w", g, err)
		}
		if len(hits) == 0 {
			return fmt.Errorf("license-files %q: no file matches", g)
		}
		for _, h := range hits {
			b, err := fs.ReadFile(fsys, h)
			if err != nil {
				return err
			}
			rel := strings.TrimPrefix(strings.TrimPrefix(h, path.Clean(dir)), "/")
			p.LicenseFiles[rel] = b
		}
	}
	return nil
}

// fileOrText reads the table form {file = ...} or {text = ...}.
func fileOrText(fsys fs.FS, dir, key string, t map[string]any, also ...string) (string, error) {
	for k := range t {
		if k != "file" && k != "text" && !slices.Contains(also, k) {
			return "", fmt.Errorf("unknown key %q", "project."+key+"."+k)
		}
	}
	file, hasFile := t["file"].(string)
	text, hasText := t["text"].(string)
	switch {
	case hasFile == hasText:
		return "", fmt.Errorf("%s: want exactly one of file and text", key)
	case hasText:
		return text, nil
	}
	b, err := fs.ReadFile(fsys, path.Join(dir, file))
	return string(b), err
}
