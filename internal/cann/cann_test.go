package cann

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/rootfs"
)

// root builds a tree: a value that starts with "->" is a link, one that starts
// with "@" is a copy of a recorded file.
func root(t *testing.T, files map[string]string) rootfs.Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if to, ok := strings.CutPrefix(text, "->"); ok {
			if err := os.Symlink(to, p); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if from, ok := strings.CutPrefix(text, "@"); ok {
			b, err := os.ReadFile("testdata/versions/" + from)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFindReadsEachLayout(t *testing.T) {
	t.Parallel()
	tk := "usr/local/Ascend/ascend-toolkit/"
	tests := []struct {
		name             string
		files            map[string]string
		version, arch    string
		release          bool
		pkg, dir, source string
	}{
		{
			"8.1.RC1",
			map[string]string{tk + "8.1.RC1/aarch64-linux/ascend_toolkit_install.info": "@01-toolkit-info-8.1.RC1.txt"},
			"8.1.RC1", "aarch64", true, "toolkit", "/usr/local/Ascend/ascend-toolkit/8.1.RC1", "/ascend_toolkit_install.info",
		},
		{
			"8.1.RC1 before its release",
			map[string]string{tk + "8.1.RC1/aarch64-linux/ascend_toolkit_install.info": "@02-toolkit-info-8.1.RC1-prerelease.txt"},
			"8.1.RC1", "", false, "toolkit", "/usr/local/Ascend/ascend-toolkit/8.1.RC1", "install.info",
		},
		{
			"alpha with a service pack number",
			map[string]string{tk + "8.0.RC3.alpha001/aarch64-linux/ascend_toolkit_install.info": "@04-toolkit-info-8.0.RC3.alpha001.txt"},
			"8.0.RC3.alpha001", "aarch64", false, "toolkit", "/usr/local/Ascend/ascend-toolkit/8.0.RC3.alpha001", "install.info",
		},
		{
			"9.1.0, new path",
			map[string]string{"usr/local/Ascend/cann-9.1.0/ascend_toolkit_install.info": "@05-toolkit-info-9.1.0-new-path.txt", "usr/local/Ascend/cann": "->cann-9.1.0"},
			"9.1.0", "x86_64", true, "toolkit", "/usr/local/Ascend/cann-9.1.0", "install.info",
		},
		{
			"pairs of version.cfg",
			map[string]string{tk + "8.0.0/version.cfg": "# version: 1.0\nruntime_running_version=[7.6.0.1.220:8.0.0]\n", tk + "8.0.0/opp/x": ""},
			"8.0.0", "", true, "toolkit", "/usr/local/Ascend/ascend-toolkit/8.0.0", "version.cfg",
		},
		{
			"component file",
			map[string]string{"usr/local/Ascend/cann-x/opp/version.info": "@10-opp-version-info.txt"},
			"8.5.0", "", true, "toolkit", "/usr/local/Ascend/cann-x", "opp/version.info",
		},
		{
			"component file with one number",
			map[string]string{"usr/local/Ascend/cann-x/opp/version.info": "Version=8.5.0.2.220\n"},
			"8.5.0", "", true, "toolkit", "/usr/local/Ascend/cann-x", "opp/version.info",
		},
		{
			"component number that is not CANN's",
			map[string]string{"usr/local/Ascend/cann-x/opp/version.info": "Version=7.6.0.1.220\n"},
			"", "", true, "toolkit", "/usr/local/Ascend/cann-x", "",
		},
		{
			"nnae",
			map[string]string{"usr/local/Ascend/nnae/8.2.RC1.alpha002/compiler/ccec_compiler/bin/bisheng": ""},
			"8.2.RC1.alpha002", "", false, "nnae", "/usr/local/Ascend/nnae/8.2.RC1.alpha002", "8.2.RC1.alpha002",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			all, broken := Find(root(t, tt.files))
			if len(all) != 1 || len(broken) != 0 {
				t.Fatalf("found %+v and broken %v, want one", all, broken)
			}
			in := all[0]
			if in.Version.String() != tt.version || in.Arch != tt.arch || in.Release != tt.release ||
				in.Package != tt.pkg || in.Dir != tt.dir || !strings.HasSuffix(in.Source, tt.source) {
				t.Errorf("got %+v (version %s)", in, in.Version)
			}
		})
	}
}

func TestFindKnowsTheNamesOfOneTree(t *testing.T) {
	t.Parallel()
	tk := "usr/local/Ascend/ascend-toolkit/"
	r := root(t, map[string]string{
		tk + "8.1.RC1/aarch64-linux/ascend_toolkit_install.info": "@01-toolkit-info-8.1.RC1.txt",
		tk + "latest/aarch64-linux":                              "->../8.1.RC1/aarch64-linux",
		tk + "set_env.sh":                                        "export ASCEND_TOOLKIT_HOME=x\n",
		"usr/local/Ascend/cann":                                  "->/usr/local/Ascend/cann-9.1.0",
	})
	all, broken := Find(r, "/usr/local/Ascend/ascend-toolkit/latest/", "relative", "/nowhere")
	if len(all) != 1 || all[0].Dir != "/usr/local/Ascend/ascend-toolkit/8.1.RC1" ||
		len(all[0].Names) != 1 || all[0].SetEnv != "/usr/local/Ascend/ascend-toolkit/set_env.sh" {
		t.Errorf("found %+v, want one tree with the name latest", all)
	}
	if len(broken) != 1 || broken[0].To != "/usr/local/Ascend/cann-9.1.0" {
		t.Errorf("broken = %v", broken)
	}
}

func TestReadDriver(t *testing.T) {
	t.Parallel()
	r := root(t, map[string]string{"usr/local/Ascend/driver/version.info": "@08-driver-version-info-25.3.rc1.txt"})
	d, ok := ReadDriver(r)
	if !ok || d.Version.String() != "25.3.rc1" || d.Firmware != "[7.0.0,8.9.9]" || d.Library != "" {
		t.Errorf("got %+v, %t", d, ok)
	}
	r = root(t, map[string]string{
		"etc/ascend_install.info":                          "UserName=HwHiAiUser\nDriver_Install_Path_Param=/data/Ascend\n",
		"data/Ascend/driver/version.info":                  "Version=25.2.0\n",
		"data/Ascend/driver/lib64/driver/libascend_hal.so": "",
	})
	if d, ok = ReadDriver(r); !ok || d.Version.String() != "25.2.0" || d.Library == "" {
		t.Errorf("another place: %+v, %t", d, ok)
	}
	if d, ok = ReadDriver(root(t, nil)); ok {
		t.Errorf("a driver where none is: %+v", d)
	}
}

func TestATB(t *testing.T) {
	t.Parallel()
	r := root(t, map[string]string{"usr/local/Ascend/nnal/atb/9.1.0/version.info": "@11-nnal-atb-version-info.txt", "usr/local/Ascend/nnal/atb/latest": "->9.1.0"})
	if v := ATB(r, "/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_1"); v.String() != "9.1.0" {
		t.Errorf("ATB = %q", v)
	}
}
