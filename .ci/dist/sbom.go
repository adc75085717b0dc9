package main

import (
	"debug/buildinfo"
	"io"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM lists what is linked into bin, as the binary itself says. There is
// no serial number and no time, so that equal binaries have equal lists.
func writeSBOM(bin, version, path string) error {
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return err
	}
	main := cdx.Component{
		BOMRef: "pkg:golang/" + info.Main.Path + "@" + version, Type: cdx.ComponentTypeApplication,
		Name: "invar", Version: version, PackageURL: "pkg:golang/" + info.Main.Path + "@" + version,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}
	components := []cdx.Component{{
		BOMRef: "pkg:golang/std@" + goVersion(info.GoVersion), Type: cdx.ComponentTypeLibrary,
		Name: "std", Version: goVersion(info.GoVersion), PackageURL: "pkg:golang/std@" + goVersion(info.GoVersion),
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		components = append(components, cdx.Component{
			BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl,
		})
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return writeFile(path, func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	})
}

// goVersion is "go1.26.8 X:experiments" as a module version, "1.26.8".
func goVersion(s string) string {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "go"), " ")
	return s
}
