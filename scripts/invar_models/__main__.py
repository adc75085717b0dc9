"""Reads one request from stdin, writes a model folder, answers with its digests.

Started as `python FOLDER/invar_models` inside the environment that will serve
the model. The bytes of the weights depend on the request alone: they come from
integers and one IEEE multiplication each.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

EOS = "<eos>"
# Uniform weights between -BOUND and BOUND have the variance of a normal
# distribution of 0.02, the usual one of an untrained Llama.
BOUND = 0.02 * 3**0.5
STEPS = 1 << 15


def main() -> None:
    """Makes one model."""
    request: dict[str, Any] = json.load(sys.stdin)
    folder = Path(request["dir"])
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "config.json", _config(request))
    _write(folder / "generation_config.json", {"eos_token_id": _vocabulary() - 1})
    _tokenizer(folder, request["positions"])
    _weights(folder / "model.safetensors", request)
    json.dump({"files": {p.name: _digest(p) for p in sorted(folder.iterdir())}}, sys.stdout)


def _vocabulary() -> int:
    return 257  # the bytes, and the end of a text


def _config(r: dict[str, Any]) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": r["hidden"],
        "intermediate_size": r["intermediate"],
        "num_hidden_layers": r["layers"],
        "num_attention_heads": r["heads"],
        "num_key_value_heads": r["kv_heads"],
        "head_dim": r["hidden"] // r["heads"],
        "vocab_size": _vocabulary(),
        "max_position_embeddings": r["positions"],
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "eos_token_id": _vocabulary() - 1,
        "dtype": r["dtype"],
        "torch_dtype": r["dtype"],
    }


def _tokenizer(folder: Path, positions: int) -> None:
    """One token a byte, so that every text has a known number of tokens."""
    # Both are in the environment of vLLM, and in no other.
    from tokenizers import (  # type: ignore[import-not-found,unused-ignore]
        AddedToken,
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
    )

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {c: i for i, c in enumerate(alphabet)}
    vocabulary[EOS] = len(alphabet)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(EOS, special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": EOS,
            "model_max_length": positions,
            "clean_up_tokenization_spaces": False,
        },
    )


def _shapes(r: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, inner = r["hidden"], r["intermediate"]
    kv = hidden // r["heads"] * r["kv_heads"]
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (_vocabulary(), hidden)}
    for i in range(r["layers"]):
        at = f"model.layers.{i}."
        shapes |= {
            at + "self_attn.q_proj.weight": (hidden, hidden),
            at + "self_attn.k_proj.weight": (kv, hidden),
            at + "self_attn.v_proj.weight": (kv, hidden),
            at + "self_attn.o_proj.weight": (hidden, hidden),
            at + "mlp.gate_proj.weight": (inner, hidden),
            at + "mlp.up_proj.weight": (inner, hidden),
            at + "mlp.down_proj.weight": (hidden, inner),
            at + "input_layernorm.weight": (hidden,),
            at + "post_attention_layernorm.weight": (hidden,),
        }
    return shapes | {"model.norm.weight": (hidden,), "lm_head.weight": (_vocabulary(), hidden)}


def _weights(path: Path, r: dict[str, Any]) -> None:
    import torch
    from safetensors.torch import save_file  # type: ignore[import-not-found,unused-ignore]

    generator = torch.Generator().manual_seed(r["seed"])
    dtype = getattr(torch, r["dtype"])
    tensors = {}
    for name, shape in _shapes(r).items():
        if len(shape) == 1:
            tensors[name] = torch.ones(shape, dtype=dtype)
            continue
        whole = torch.randint(-STEPS, STEPS, shape, generator=generator, dtype=torch.int32)
        tensors[name] = (whole.float() * (BOUND / STEPS)).to(dtype)
    save_file(tensors, str(path), metadata={"format": "pt"})


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _digest(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


if __name__ == "__main__":
    main()
