package wheel

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestReadProjectRefuses(t *testing.T) {
	t.Parallel()
	const head = "[project]\nname = \"x\"\nversion = \"1\"\n"
	for _, tc := range []struct{ name, text, want string }{
		{"good", head, ""},
		{"tool tables are not ours", head + "[tool.ruff]\nline-length = 1\n[build-system]\nrequires = []\n", ""},
		{"no table", "[tool.x]\n", "no [project] table"},
		{"broken", "[project\n", "line 2"},
		{"unknown key", head + "licence = \"MIT\"\n", "project.licence"},
		{"unknown key in an author", head + "authors = [{nmae = \"x\"}]\n", "nmae"},
		{"wrong type", "[project]\nname = 3\n", "name"},
		{"dynamic", head + "dynamic = [\"version\"]\n", "every value has to stand in the file"},
		{"no version", "[project]\nname = \"x\"\n", "version \"\""},
		{"version not normal", "[project]\nname = \"x\"\nversion = \"1.0-RC1\"\n", "normal form"},
		{"leading zero", "[project]\nname = \"x\"\nversion = \"1.01\"\n", "normal form"},
		{"bad name", "[project]\nname = \"x y\"\nversion = \"1\"\n", "letters"},
		{"line break", head + "description = \"a\\nRequires-Dist: evil\"\n", "one line"},
		{"line break in a script", head + "[project.scripts]\nx = \"a:b\\n[other]\"\n", "one line"},
		{"readme is not there", head + "readme = \"README.md\"\n", "README.md"},
		{"readme of an unknown kind", head + "readme = \"README\"\n", "content-type"},
		{"readme table without a type", head + "readme = {text = \"x\"}\n", "content-type"},
		{"readme twice", head + "readme = {text = \"x\", file = \"y\", content-type = \"text/plain\"}\n", "exactly one"},
		{"license file is not there", head + "license-files = [\"LICENSE\"]\n", "no file matches"},
		{"license table", head + "license = {text = \"MIT\", x = 1}\n", "project.license.x"},
		{"scripts as entry points", head + "[project.entry-points.console_scripts]\na = \"b:c\"\n", "project.scripts"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadProject(fstest.MapFS{"pyproject.toml": {Data: []byte(tc.text)}}, "pyproject.toml")
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want it to hold %q", err, tc.want)
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	p := Project{Name: "x", Version: "1"}
	any := Tag{"py3", "none", "any"}
	src := fstest.MapFS{"a.py": {Data: []byte("a")}, "b/a.py": {Data: []byte("b")}}
	for _, tc := range []struct {
		name   string
		layers []Layer
		tag    Tag
		want   string
	}{
		{"nothing", nil, any, "no files"},
		{"two files of one name", []Layer{{src, "a.py", "x.py"}, {src, "b/a.py", "x.py"}}, any, "two files"},
		{"not there", []Layer{{src, "c.py", "c.py"}}, any, "c.py"},
		{"outside", []Layer{{src, "a.py", "../a.py"}}, any, "leaves the folder"},
		{"metadata", []Layer{{src, "a.py", "x-1.dist-info/RECORD"}}, any, "written by invar"},
		{"tag", []Layer{{src, "a.py", "a.py"}}, Tag{"py3", "none", "Linux-x86"}, "no wheel tag"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := Write(t.Context(), t.TempDir(), p, tc.layers, tc.tag)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to hold %q", err, tc.want)
			}
		})
	}
}
