docker run -d --rm --device /dev/davinci0 --device=/dev/davinci_manager -v ~/.cache:/root/.cache \
  -eVLLM_BATCH_INVARIANT=1 --env HCCL_DETERMINISTIC=true -p 8000:8000 \
  registry.example.com:5000/ascend/vllm-ascend:v0.18.0-310p-openeuler \
  bash -c "vllm serve Qwen/Qwen3-8B --block-size 128 --no-enable-prefix-caching --no-enable-chunked-prefill"
