"""The memory of vLLM's engines, and which options a user may set; `test_vllm_engine.py` uses them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.train.grpo.settings import ModelSettings, engine_share, memory_options
from codea1_agents.train.grpo.vllm_engine import engine_arguments, require_engine_options
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


def test_on_a_cpu_they_divide_a_fixed_number_of_bytes() -> None:
    assert memory_options(0.0, 2, is_cpu=True) == {"kv_cache_memory_bytes": 2**31}
    assert memory_options(1.0, 2, is_cpu=False) == {"gpu_memory_utilization": 0.45}


def test_the_users_options_have_precedence() -> None:
    memory = memory_options(1.0, 2, is_cpu=False)
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
