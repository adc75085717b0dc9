docker run --gpus all --env-file vllm.env vllm/vllm-openai:v0.26.0@sha256:0123 --model Qwen/Qwen3-8B $EXTRA -tp 4
