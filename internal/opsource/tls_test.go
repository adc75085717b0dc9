package opsource

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/testkit/cann"
)

func TestChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"            TLS_VERIFY OFF\n":                               "            TLS_VERIFY ON\n",
		"file(DOWNLOAD u f TLS_VERIFY  0 STATUS s)":                  "file(DOWNLOAD u f TLS_VERIFY  ON STATUS s)",
		"grep \"CMAKE_TLS_VERIFY=0\" x; echo \"TLS_VERIFY OFF\"":     "grep \"CMAKE_TLS_VERIFY=1\" x; echo \"TLS_VERIFY ON\"",
		"TLS_VERIFY \"OFF\" )":                                       "TLS_VERIFY ON )",
		"set(CMAKE_TLS_VERIFY FALSE)":                                "set(CMAKE_TLS_VERIFY 1)",
		"cmake -E env CMAKE_TLS_VERIFY=0 cmake .":                    "cmake -E env CMAKE_TLS_VERIFY=1 cmake .",
		"git -c http.sslVerify=false clone u":                        "git -c http.sslVerify=true clone u",
		"git config http.sslverify false":                            "git config http.sslverify true",
		"export GIT_SSL_NO_VERIFY=1":                                 "export GIT_SSL_NO_VERIFY=",
		"wget --no-check-certificate -q u":                           "wget -q u",
		"curl -k -O u":                                               "curl -O u",
		"curl -sS --insecure u | sort -k2":                           "curl -sS u | sort -k2",
		"curl -fsSkLO u":                                             "curl -fsSLO u",
		"curl -kL u":                                                 "curl -L u",
		"curl --max-time 60 -sS -k -O u":                             "curl --max-time 60 -sS -O u",
		"curl -fL u; tar -k x":                                       "curl -fL u; tar -k x",
		"set(TLS_VERIFY_DOC OFF)\nTLS_VERIFY ON\nhttp.sslVerify yes": "set(TLS_VERIFY_DOC OFF)\nTLS_VERIFY ON\nhttp.sslVerify yes",
	} {
		if got := checked(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestVerifyTLS goes over the real scripts of vllm-ascend.
func TestVerifyTLS(t *testing.T) {
	t.Parallel()
	from, dir := filepath.Join(cann.NeedVLLMAscend(t), "csrc", "cmake"), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	changed, err := verifyTLS(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(changed, " ")
	for _, name := range []string{"third_party/json.cmake", "third_party/gtest.cmake", "third_party/makeself-fetch.cmake"} {
		b, _ := os.ReadFile(filepath.Join(dir, name))
		if !strings.Contains(all, name) || strings.Contains(string(b), "TLS_VERIFY OFF") || strings.Contains(string(b), "CMAKE_TLS_VERIFY=0") {
			t.Errorf("%s is not changed; changed are %s\n%s", name, all, b)
		}
	}
	if again, err := verifyTLS(dir); err != nil || len(again) != 0 {
		t.Errorf("changed once more: %v, %v", again, err)
	}
}
