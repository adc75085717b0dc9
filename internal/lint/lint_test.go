package lint

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/deployment"
	"github.com/invar-ops/invar/internal/run"
)

func read(t *testing.T, name string) []deployment.Deployment {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if deployment.IsPython(name, b) {
		found, err := deployment.PythonFile(t.Context(), run.System{}, os.Environ(), "python3", name, b)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	found, err := deployment.Read(name, b)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCases: users' own files, in every form, with what is right about each.
func TestCases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given    Given
		sure     []string // ids that must be found and sure
		not      []string // ids that must not be found
		values   map[string]string
		problems []string
	}{
		"23-lint-ascend-dspark-full-decode.txt": {
			sure: []string{"bi-off", "ascend-graph", "ascend-speculative", "ascend-prefix", "ascend-flashcomm"}, not: []string{"bi-v0", "vllm-48391"},
			values:   map[string]string{"tp": "4", "dp": "4", "ep": "true", "graph_mode": "FULL_DECODE_ONLY", "device": "ascend"},
			problems: []string{"not quoted", "cut off"},
		},
		"25-lint-ascend-lora-script.txt": {
			sure:   []string{"bi-off", "ascend-lora", "log-stats-off", "ascend-chunked"},
			values: map[string]string{"model": "/data/workspace/modelzoo/Qwen25-72b/Qwen2.5-72B-Instruct", "tp": "8", "device": "ascend"},
		},
		"26-lint-ascend-tp-equals.txt": {
			sure: []string{"bi-off", "bi-v0", "ascend-memory"}, not: []string{"ascend-block"},
			values: map[string]string{"tp": "16", "compilation_config": "1", "block_size": "128", "gpu_memory_utilization": "0.99"},
		},
		"28-lint-ascend-310p-shell-history.txt": {
			given:  Given{Arch: "ascend310p"},
			sure:   []string{"bi-310p", "bi-off"},
			values: map[string]string{"model": "/data/models/Qwen3-8B", "tp": "2", "max_model_len": "32768", "eager": "true"},
		},
		"compose.yaml": {
			given: Given{Version: "0.26.0", Arch: "8.9"},
			sure:  []string{"vllm-48391", "vllm-57016"}, not: []string{"bi-off", "vllm-51290", "model-not-validated"},
			values: map[string]string{"tp": "4", "device": "cuda", "batch_invariant": "1"},
		},
		"kubernetes.yaml": {
			sure: []string{"ascend-block"}, not: []string{"bi-off", "ascend-chunked", "ascend-prefix", "model-not-validated"},
			values: map[string]string{"block_size": "64", "device": "ascend"},
		},
		// Engine, version, device and arch out of the image's name and what the container is given.
		"compose-tag.yml": {
			sure: []string{"ascend-prefix", "ascend-chunked", "ascend-block"}, not: []string{"bi-off", "bi-v0"},
			values: map[string]string{"device": "ascend", "tp": "2", "version": "0.11.0rc1"},
		},
		"leaderworkerset.yaml": {
			sure: []string{"vllm-flashinfer", "vllm-50136"}, not: []string{"bi-off", "cpu-vllm-switch", "ascend-chunked"},
			values: map[string]string{"device": "cuda", "tp": "8", "version": "0.11.0"},
		},
		"docker-run.sh": {
			sure: []string{"bi-310p"}, not: []string{"bi-off", "ascend-block", "ascend-prefix"},
			values: map[string]string{"device": "ascend", "arch": "ascend310p", "version": "0.18.0", "model": "Qwen/Qwen3-8B", "hccl_deterministic": "true"},
		},
		// What may be said elsewhere is not taken for the default.
		"docker-entrypoint.sh": {
			sure: []string{}, not: []string{"bi-off"},
			values:   map[string]string{"device": "cuda", "version": "0.26.0", "tp": "4", "batch_invariant": "", "eager": ""},
			problems: []string{"EXTRA is not set", "--env-file vllm.env was not read"},
		},
		"alias.py": {
			not:    []string{"bi-off"},
			values: map[string]string{"tp": "2", "block_size": "64", "prefix_caching": "true", "hccl_deterministic": "true", "batch_invariant": "1"},
		},
		"launcher.py": {
			not:    []string{"bi-off"},
			values: map[string]string{"tp": "2", "model": "Qwen/Qwen3-8B", "batch_invariant": "1"},
		},
		"vllm.service": {
			sure: []string{"plugins-filter"}, not: []string{"bi-off", "cpu-vllm-switch"},
			values: map[string]string{"device": "cpu", "dtype": "float32", "max_num_seqs": "32", "model": "/models/small"},
		},
		"offline.py": {
			given: Given{Version: "0.29.0", Arch: "9.0"},
			sure:  []string{"vllm-56370", "tp-devices"}, not: []string{"bi-off"},
			values:   map[string]string{"tp": "4", "sp": "true", "device": "cuda", "model": "Qwen/Qwen3-8B"},
			problems: []string{"known when the program runs only"},
		},
	} {
		starts, err := Check(read(t, name), c.given, false)
		if err != nil || len(starts) != 1 {
			t.Errorf("%s: %d starts (%v), want 1", name, len(starts), err)
			continue
		}
		s := starts[0]
		var sure []string
		for _, f := range s.Findings {
			if slices.Contains(c.not, f.ID) {
				t.Errorf("%s: %s is found: %s", name, f.ID, f.Observed)
			}
			if f.Sure {
				sure = append(sure, f.ID)
			}
		}
		for _, id := range c.sure {
			if !slices.Contains(sure, id) {
				t.Errorf("%s: %s is not found; sure are %v", name, id, sure)
			}
		}
		for fact, want := range c.values {
			got := s.Facts.Values[fact]
			if fact == "version" {
				got = s.Facts.Version
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", name, fact, got, want)
			}
		}
		for _, p := range c.problems {
			if !strings.Contains(strings.Join(s.Problems, "\n"), p) {
				t.Errorf("%s: no problem says %q: %q", name, p, s.Problems)
			}
		}
		if len(c.problems) == 0 && len(s.Problems) > 0 {
			t.Errorf("%s: problems %q, want none", name, s.Problems)
		}
	}
}

// TestVersions: unknown stays unknown, and a development build may have the fix.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, have string
		truth      truth
	}{
		{">= 0.11.1, < 0.27.0", "0.26.0", yes},
		{">= 0.11.1, < 0.27.0", "0.27.0", no},
		{">= 0.11.1, < 0.27.0", "0.27.1.post1", no},
		{">= 0.11.1, < 0.27.0", "", unknown},
		{">= 0.11.1, < 0.27.0", "unknown", unknown},
		{">= 0.11.1, < 0.27.0", "0.1.dev20944+g58ad1f3b8", unknown},
		{">= 0.11.1, < 0.27.0", "0.26.1rc1.dev403+g123456789", unknown},
		{">= 0.11.1, < 0.27.0", "0.24.1rc1.dev403+g123456789", yes},
		{">= 0.11.1, < 0.27.0", "0.28.1rc1.dev337+g27a94d1ce", no},
		{"< 0.11.0", "0.8.5", yes},
	} {
		if got, err := inVersions(c.want, c.have); got != c.truth || err != nil {
			t.Errorf("%q in %q: %d (%v), want %d", c.have, c.want, got, err, c.truth)
		}
	}
}

// TestEveryRuleCanHold: a rule that no facts can meet, or that all meet, finds nothing.
func TestEveryRuleCanHold(t *testing.T) {
	t.Parallel()
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) < 50 {
		t.Errorf("%d rules", len(rules))
	}
	for _, r := range rules {
		f := Facts{Engine: r.When["engine"], Values: map[string]string{"engine": r.When["engine"]}}
		for fact, want := range r.When {
			first, _, _ := strings.Cut(want, "|")
			op, value := operator(first)
			switch {
			case fact == "version":
				for _, v := range []string{"0.8.5", "0.10.2", "0.11.0", "0.11.2", "0.12.0", "0.16.0", "0.20.0", "0.26.1", "0.27.0", "0.28.0", "0.33.0"} {
					if in, err := inVersions(want, v); in == yes && err == nil {
						f.Version = v
					}
				}
			case fact == "family":
				f.Families = []string{want}
			case want == "without invar":
				f.Values[fact] = "other"
			case want == "> devices":
				f.Values["tp"], f.Values["visible_devices"] = "2", "0"
			case op == "!=":
				f.Values[fact] = value + "x"
			case op == ">" || op == ">=":
				f.Values[fact] = value + "00"
			case op == "<":
				f.Values[fact] = "0"
			default:
				f.Values[fact] = value
			}
		}
		if got, _ := r.apply(f); got != yes {
			t.Errorf("%s: %d with %+v", r.ID, got, f)
		}
		if got, _ := r.apply(Facts{Engine: "other", Values: map[string]string{"engine": "other"}}); got == yes {
			t.Errorf("%s holds for anything", r.ID)
		}
	}
}

// TestSARIF: the report is what the schema of its own version asks for.
func TestSARIF(t *testing.T) {
	t.Parallel()
	starts, err := Check(read(t, "compose.yaml"), Given{Version: "0.26.0"}, true)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteSARIF(&b, starts, "testdata/compose.yaml", "1.0.0"); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Version string
		Runs    []struct {
			Results []struct {
				RuleID, Level string
				Locations     []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Version != "2.1.0" || len(doc.Runs) != 1 || len(doc.Runs[0].Results) != len(starts[0].Findings) {
		t.Errorf("%d findings, SARIF has:\n%s", len(starts[0].Findings), b.String())
	}
	for _, r := range doc.Runs[0].Results {
		if r.Locations[0].PhysicalLocation.ArtifactLocation.URI != "testdata/compose.yaml" {
			t.Errorf("%s is at %q", r.RuleID, r.Locations[0].PhysicalLocation.ArtifactLocation.URI)
		}
	}
}
