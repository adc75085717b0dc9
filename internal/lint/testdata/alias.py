import os
from vllm import LLM as Engine, SamplingParams

ARGS = dict(model="Qwen/Qwen3-8B", enable_prefix_caching=True, block_size=64)


def main():
    os.environ.update({"VLLM_BATCH_INVARIANT": "1"}, HCCL_DETERMINISTIC="true")
    llm = Engine(**ARGS, tensor_parallel_size=2)
