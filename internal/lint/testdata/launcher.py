import os, subprocess
os.environ.update({"VLLM_BATCH_INVARIANT": "1"})
cmd = ["vllm", "serve", "Qwen/Qwen3-8B", "--tensor-parallel-size", "2"]
p = subprocess.Popen(cmd, env=os.environ)
os.system("nvidia-smi -L")
