package deployment

import "testing"

// TestFactsOfImage: tags of every kind that upstream publishes, behind mirrors and with digests.
func TestFactsOfImage(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]ImageFacts{
		"vllm/vllm-openai:v0.26.0":                              {"vllm", "0.26.0", "cuda", ""},
		"docker.io/vllm/vllm-openai:v0.11.1rc2-x86_64":          {"vllm", "0.11.1rc2", "cuda", ""},
		"localhost:5000/mirror/vllm/vllm-openai@sha256:00":      {"vllm", "", "cuda", ""},
		"vllm/vllm-openai:nightly-0123456789abcdef":             {"vllm", "", "cuda", ""},
		"vllm/vllm-openai:latest":                               {"vllm", "", "cuda", ""},
		"vllm/vllm-openai-rocm:v0.14.0":                         {"vllm", "0.14.0", "rocm", ""},
		"public.ecr.aws/x/vllm-cpu-release-repo:v0.23.0":        {"vllm", "0.23.0", "cpu", ""},
		"quay.io/ascend/vllm-ascend:v0.11.0rc1-a3-openeuler":    {"vllm", "0.11.0rc1", "ascend", ""},
		"m.daocloud.io/quay.io/ascend/vllm-ascend:v0.18.0-310p": {"vllm", "0.18.0", "ascend", "ascend310p"},
		"quay.io/ascend/vllm-ascend:main-a5":                    {"vllm", "", "ascend", ""},
		"lmsysorg/sglang:v0.5.4.post1-cu129":                    {"sglang", "0.5.4.post1", "cuda", ""},
		"lmsysorg/sglang:v0.5.4-cann8.3.rc1-910b":               {"sglang", "0.5.4", "ascend", ""},
		"lmsysorg/sglang:v0.5.3rc0-rocm630-mi30x":               {"sglang", "0.5.3rc0", "rocm", ""},
		"nvcr.io/nvidia/vllm:25.09-py3":                         {"vllm", "", "cuda", ""},
	} {
		if got, ok := FactsOfImage(reference); !ok || got != want {
			t.Errorf("%s: %+v (%v), want %+v", reference, got, ok, want)
		}
	}
	for _, reference := range []string{"", "ubuntu:24.04", "my/vllm-openai-fork:v1", "vllm-openai", "vllm"} {
		if got, ok := FactsOfImage(reference); ok {
			t.Errorf("%s: %+v, want nothing", reference, got)
		}
	}
}

// TestContainers: where a command stands in what starts containers, and what the container is given.
func TestContainers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ device, image, last string }{
		"services: {a: {image: vllm/vllm-openai:v1.0, command: --model m}}":                                                             {"", "vllm/vllm-openai:v1.0", "m"},
		"services: {a: {image: 'x:${T:-1}', gpus: all, command: vllm serve m}}":                                                         {"cuda", "x:1", "m"},
		"services: {a: {image: x, devices: ['/dev/davinci3:/dev/davinci3'], command: [vllm, serve, m]}}":                                {"ascend", "x", "m"},
		"services: {a: {image: x, runtime: nvidia, command: [vllm, serve, m]}}":                                                         {"cuda", "x", "m"},
		"services: {a: {deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}, command: vllm serve m}}":               {"cuda", "", "m"},
		"apiVersion: v1\nspec: {containers: [{image: x, resources: {limits: {huawei.com/Ascend910: 8}}, args: [vllm, serve, m]}]}":      {"ascend", "x", "m"},
		"apiVersion: v1\nspec: {containers: [{image: x, resources: {requests: {nvidia.com/gpu: 1}}, command: [sh, -c, vllm serve m]}]}": {"cuda", "x", "m"},
	} {
		found, err := Read("test.yaml", []byte(text))
		found = Servers(found)
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %d servers (%v), want 1", text, len(found), err)
			continue
		}
		d := found[0]
		if d.Device != want.device || d.Image != want.image || d.Argv[len(d.Argv)-1] != want.last {
			t.Errorf("%s: %+v, want %+v", text, d, want)
		}
	}
}
