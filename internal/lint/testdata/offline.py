import os

os.environ["VLLM_BATCH_INVARIANT"] = "1"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0,1")

from vllm import LLM, SamplingParams

MODEL = "Qwen/Qwen3-8B"
llm = LLM(MODEL, tensor_parallel_size=4, compilation_config={"pass_config": {"enable_sp": True}}, seed=int(os.getenv("SEED")))
llm.generate(["a"], SamplingParams(temperature=0))
