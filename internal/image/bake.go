package image

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// WriteBake writes rows as a file for docker buildx bake. Its context is a
// folder that holds the Dockerfiles, install-packages and the invar binary.
func WriteBake(w io.Writer, rows []Row) error {
	var b strings.Builder
	b.WriteString("# Written by `invar image plan --bake`; the matrix is docker/images.yaml.\n" +
		"# The context needs the invar binary beside the Dockerfiles: mage dist, then\n" +
		"# cp dist/invar_*_linux_amd64 docker/invar\n\n")
	var names []string
	for _, r := range rows {
		names = append(names, strconv.Quote(bakeName(r)))
	}
	fmt.Fprintf(&b, "group \"default\" {\n  targets = [%s]\n}\n", strings.Join(names, ", "))
	for _, r := range rows {
		fmt.Fprintf(&b, "\ntarget %q {\n  dockerfile = %q\n  platforms = [%s]\n  args = {\n", bakeName(r), r.Dockerfile, quoted(r.Platforms))
		args := maps.Clone(r.Args)
		args["BASE"], args["TARGET"] = r.Base, r.Target
		for _, k := range slices.Sorted(maps.Keys(args)) {
			fmt.Fprintf(&b, "    %s = %q\n", k, args[k])
		}
		fmt.Fprintf(&b, "  }\n  tags = [%s]\n}\n", quoted(r.Tags))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// bakeName is the row's name in the letters that bake allows.
func bakeName(r Row) string { return strings.ReplaceAll(r.Name, ".", "_") }

func quoted(words []string) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = strconv.Quote(w)
	}
	return strings.Join(q, ", ")
}
