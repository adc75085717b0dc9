package lint

import (
	"strings"

	"github.com/invar-ops/invar/internal/deployment"
)

// fromContainer takes what the name of the image says, and what the container
// is given. What the command line says goes before.
func (f *Facts) fromContainer(d deployment.Deployment) {
	set := func(fact, value string) {
		if have := f.Values[fact]; value != "" && (have == "" || have == "auto") {
			f.Values[fact] = value
		}
	}
	if image, ok := deployment.FactsOfImage(d.Image); ok && image.Engine == f.Engine {
		set("device", image.Device)
		set("arch", image.Arch)
		if f.Version == "" {
			f.Version = image.Version
		}
	}
	set("device", d.Device)
}

// guessDevice takes the device from what only one kind of device has.
func (f *Facts) guessDevice(d deployment.Deployment) {
	if f.Values["device"] != "" && f.Values["device"] != "auto" {
		return
	}
	delete(f.Values, "device")
	for name := range d.Env {
		switch {
		case strings.HasPrefix(name, "ASCEND_"), strings.HasPrefix(name, "HCCL_"), strings.HasPrefix(name, "VLLM_ASCEND_"), name == "TASK_QUEUE_ENABLE", name == "PYTORCH_NPU_ALLOC_CONF":
			f.Values["device"] = "ascend"
		case strings.HasPrefix(name, "CUDA_"), strings.HasPrefix(name, "NVIDIA_"), strings.HasPrefix(name, "NCCL_"):
			f.Values["device"] = "cuda"
		case strings.HasPrefix(name, "VLLM_CPU_"), name == "INVAR_BATCH_INVARIANT":
			f.Values["device"] = "cpu"
		}
	}
	for _, file := range d.Sourced {
		if strings.Contains(strings.ToLower(file), "/ascend") {
			f.Values["device"] = "ascend"
		}
	}
	if f.Values["quantization"] == "ascend" || strings.Contains(f.Values["additional_config"], "ascend") {
		f.Values["device"] = "ascend"
	}
}
