"""The vLLM plugin without vLLM: what is read, refused and turned into rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

SOURCE = Path(__file__).resolve().parents[1]
sys.path.append(str(SOURCE))

from invar_vllm import _audit, _hooks, _patches  # noqa: E402
from invar_vllm._refusal import RefusedError  # noqa: E402

FILE = _hooks.FOLDER / "0.32.0-cpu.json"


def test_the_entry_module_imports_nothing_that_can_fail() -> None:
    # No torch, no vllm, no operators: in an empty interpreter the import and a
    # call without INVAR_BATCH_INVARIANT both work, and one with it raises.
    code = "import sys; import invar_vllm; invar_vllm.register(); print('torch' in sys.modules)"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)}
    argv = [sys.executable, "-S", "-c", code]
    plain = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    assert plain.stdout.strip() == "False"
    asked = subprocess.run(
        argv, env=env | {"INVAR_BATCH_INVARIANT": "1"}, capture_output=True, text=True, check=False
    )
    assert asked.returncode != 0


def test_known_hooks_are_read() -> None:
    hooks = _hooks.find("0.32.0+cpu", "cpu")
    assert {h.name for h in hooks.hooks} == set(_patches.PATCHES)
    assert all(len(h.sha256) == 64 for h in hooks.hooks)


@pytest.mark.parametrize("release", ["0.31.0", "0.33.0", "0.32.1", "", "0.32.0.dev1"])
def test_other_releases_are_refused(release: str) -> None:
    with pytest.raises(RefusedError, match=r"is not known; want one of 0\.32\.0-cpu"):
        _hooks.find(release, "cpu")


@pytest.mark.parametrize("platform", ["cuda", "rocm", "zen"])
def test_other_platforms_are_refused(platform: str) -> None:
    with pytest.raises(RefusedError, match="is not known"):
        _hooks.find("0.32.0", platform)


def _changed(change: str) -> str:
    value = json.loads(FILE.read_text(encoding="utf-8"))
    exec(change, {"v": value})
    return json.dumps(value)


@pytest.mark.parametrize(
    "change",
    [
        "v['extra'] = 1",
        "del v['norm']",
        "v['schema'] = 2",
        "v['schema'] = '1'",
        "v['hooks'][0]['extra'] = 1",
        "del v['hooks'][0]['sha256']",
        "v['hooks'][0]['module'] = 3",
        "v['config'][0]['allowed'] = 1",
        "v['modules'][0]['kind'] = 'other'",
        "v['modules'] = {}",
    ],
)
def test_hooks_are_read_strictly(change: str) -> None:
    with pytest.raises(ValueError, match=r"x\.json"):
        _hooks.parse(_changed(change), "x.json")


def test_a_key_that_stands_twice_is_an_error() -> None:
    text = FILE.read_text(encoding="utf-8").replace('"schema": 1,', '"schema": 1, "schema": 1,')
    with pytest.raises(ValueError, match="stands twice"):
        _hooks.parse(text, "x.json")


def _implementation(**changes: Any) -> Any:
    class CPUAttentionBackendImpl(SimpleNamespace):
        pass

    usual = {
        "attn_type": "decoder",
        "alibi_slopes": None,
        "sliding_window": -1,
        "logits_soft_cap": 0,
        "sinks": None,
        "kv_sharing_target_layer_name": None,
    }
    return CPUAttentionBackendImpl(**(usual | changes))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"alibi_slopes": torch.ones(2)}, "ALiBi"),
        ({"sinks": torch.ones(2)}, "sinks"),
        ({"sliding_window": 512}, "sliding window"),
        ({"logits_soft_cap": 30.0}, "soft cap"),
        ({"attn_type": "encoder_only"}, "causal attention of a decoder"),
        ({"kv_sharing_target_layer_name": "layers.0"}, "share"),
    ],
)
def test_attention_that_is_not_shown_is_refused(changes: dict[str, Any], why: str) -> None:
    def check() -> None:
        for limit in _hooks.find("0.32.0", "cpu").attention:
            limit.check(_implementation(**changes), "attention")

    if not why:
        check()
        return
    with pytest.raises(RefusedError, match=why):
        check()


def test_unknown_modules_are_refused() -> None:
    classes: list[tuple[type, str]] = [(torch.nn.Linear, "linear")]
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LayerNorm(2))
    assert [n for n, _, _ in _audit._walk(model[:1], "", classes)] == ["0"]
    with pytest.raises(RefusedError, match=r"the module 1 of class torch\S+LayerNorm"):
        list(_audit._walk(model, "", classes))


@dataclass
class Common:
    """The fields of vLLM's CommonAttentionMetadata that the rows come from."""

    num_reqs: int
    query_start_loc: torch.Tensor
    query_start_loc_cpu: torch.Tensor
    seq_lens: torch.Tensor
    max_query_len: int
    block_table_tensor: torch.Tensor


def _common(lengths: list[int], seq_lens: list[int]) -> Common:
    starts = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32)
    table = torch.arange(len(lengths) * 3, dtype=torch.int32).reshape(-1, 3)
    lens = torch.tensor(seq_lens, dtype=torch.int32)
    return Common(len(lengths), starts, starts, lens, max(lengths), table)


def test_decodes_stay_as_they_are() -> None:
    common = _common([1, 1], [5, 9])
    assert _patches.as_rows(common) is common


def test_each_query_token_becomes_a_request() -> None:
    # A decode at 7 tokens, a chunk of 3 that ends at 10, a whole prompt of 2.
    rows = _patches.as_rows(_common([1, 3, 2], [7, 10, 2]))
    assert rows.num_reqs == 6
    assert rows.max_query_len == 1
    assert rows.query_start_loc.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert rows.seq_lens.tolist() == [7, 8, 9, 10, 1, 2]
    assert rows.seq_lens.dtype == torch.int32
    assert rows.block_table_tensor[:, 0].tolist() == [0, 3, 3, 3, 6, 6]
