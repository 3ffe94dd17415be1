"""The memory of vLLM's engines, and which options a user may set; `test_vllm_engine.py` uses them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="torch is not installed")

from codea1_agents.train.grpo.settings import ModelSettings, engine_share, memory_options
from codea1_agents.train.grpo.vllm_engine import engine_arguments, free_share, require_engine_options, wait_for_share
from codea1_env.errors import UserError


def settings(**options: Any) -> ModelSettings:
    return ModelSettings("somewhere", rollout_engine="vllm", engine_options=options, sampling_dtype="bfloat16")


@pytest.mark.parametrize(
    ("gpus", "n_engines", "share"), [(1.0, 1, 0.9), (1.0, 2, 0.45), (0.5, 2, 0.225), (2.0, 2, 0.45), (0.0, 1, 0.9)]
)
def test_engines_divide_what_the_runner_has_of_a_gpu(gpus: float, n_engines: int, share: float) -> None:
    assert engine_share(gpus, n_engines) == pytest.approx(share)


@given(gpus=st.floats(0.01, 8.0), n_engines=st.integers(1, 8), n_runners=st.integers(1, 8))
def test_all_engines_of_a_gpu_together_leave_a_tenth_of_it(gpus: float, n_engines: int, n_runners: int) -> None:
    share = engine_share(gpus, n_engines)
    assert 0 < share <= 0.9
    if n_runners * gpus <= 1:
        assert n_runners * n_engines * share <= 0.9 + 1e-9


def test_the_users_options_have_precedence() -> None:
    assert memory_options(0.0, 2, is_cpu=True) == {"kv_cache_memory_bytes": 2**31}
    memory = memory_options(1.0, 2, is_cpu=False)
    assert memory == {"gpu_memory_utilization": 0.45}
    found = engine_arguments(settings(), memory)
    assert (found["gpu_memory_utilization"], found["enable_prefix_caching"]) == (0.45, True)
    assert (found["dtype"], found["model"]) == ("bfloat16", "somewhere")
    found = engine_arguments(settings(gpu_memory_utilization=0.3, enable_prefix_caching=False, max_num_seqs=8), memory)
    assert (found["gpu_memory_utilization"], found["enable_prefix_caching"], found["max_num_seqs"]) == (0.3, False, 8)
    assert "gpu_memory_utilization" not in engine_arguments(settings(kv_cache_memory_bytes=2**30), memory)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("dtype", "; set sampling_dtype instead$"), ("model", "; set path instead$"), ("worker_extension_cls", "on it$")],
)
def test_options_of_the_hand_over_are_refused(name: str, hint: str) -> None:
    with pytest.raises(UserError, match=rf"^engine_options: '{name}' cannot be set, .*{hint}"):
        require_engine_options(settings(**{name: "x"}))


@pytest.mark.skipif(
    find_spec("vllm") is not None, reason="vllm is installed; test_vllm_engine.py checks names against it"
)
def test_without_vllm_the_runner_checks_the_names() -> None:
    require_engine_options(settings(max_num_seq=8))


def test_a_runner_that_restarts_waits_until_the_learner_leaves_its_share() -> None:
    left = iter([0.1, 0.2, 0.3])
    assert wait_for_share(0.27, most_s=60.0, every_s=0.0, free=lambda: next(left))
    assert list(left) == []
    assert not wait_for_share(0.27, most_s=0.0, every_s=0.0, free=lambda: 0.2)  # vLLM says what is missing
    assert wait_for_share(0.27, most_s=0.0, free=lambda: 0.27)


@pytest.mark.parametrize(("said", "share"), [("24000, 80000\n8000, 80000", 0.1), ("[N/A], [N/A]", 1.0), ("", 1.0)])
def test_the_fullest_gpu_decides(said: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text(f"#!/bin/sh\necho '{said}'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert free_share() == pytest.approx(share)
