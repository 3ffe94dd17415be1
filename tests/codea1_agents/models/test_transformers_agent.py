from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from codea1_agents.models.transformers_agent import TransformersAgent
from codea1_env.agent import AgentContext, load_agent
from codea1_env.errors import AgentUnavailable, BrokenInput, UserError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


def agent(folder: Path, **options) -> TransformersAgent:
    return TransformersAgent(**{"model": str(folder), "max_tokens": 16, "device": "cpu", **options})


@pytest.fixture(scope="module")
def drawing(tiny_model):
    """An agent that draws; its tests reset it."""
    return agent(tiny_model, top_p=0.95)


def test_a_greedy_reply_is_what_the_model_itself_generates(tiny_model, observation, infos):
    import transformers

    from codea1_agents.prompts import load_prompts

    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model)
    messages = [each.to_dict() for each in load_prompts().messages(observation, infos[0])]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    out = model.generate(**ids, max_new_tokens=16, do_sample=False)[0, ids["input_ids"].shape[1] :]
    found = agent(tiny_model, temperature=0).complete(observation, infos[0])
    assert found.text == tokenizer.decode(out, skip_special_tokens=True)
    assert found.prompt_tokens == ids["input_ids"].shape[1]


def test_the_same_seed_gives_the_same_replies_and_another_others(drawing, observation, infos):
    drawing.reset(1)
    first = drawing.act_batch([observation] * 4, infos)
    assert len(set(first)) == 4
    drawing.reset(2)
    assert drawing.act(observation, infos[0]) != first[0]
    drawing.reset(1)
    assert drawing.act_batch([observation] * 4, infos) == first


def test_a_reply_depends_on_no_batch_and_touches_nobodys_random_state(drawing, observation, infos, tiny_model):
    observations = [observation | {"problem": "def f(x): ...\n" * length} for length in (1, 30, 7, 2)]
    drawing.reset(1)
    alone = [drawing.act(*each) for each in zip(observations, infos, strict=True)]
    assert drawing.act_batch(observations, infos) == alone
    assert drawing.act_batch(observations[::-1], infos[::-1])[::-1] == alone
    drawing.reset(0)
    assert agent(tiny_model, top_p=0.95, batch_size=3).act_batch([observation] * 4, infos) == drawing.act_batch(
        [observation] * 4, infos
    )
    before = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    drawing.act(observation, infos[0])
    after = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_an_end_token_ends_a_reply_and_the_limit_is_told(tiny_model, observation, infos):
    # With these weights a third of all long replies end by themselves; what is asked is that both kinds are told apart.
    some = agent(tiny_model, temperature=3.0, max_tokens=200)
    infos = [infos[0] | {"episode_id": str(n)} for n in range(8)]
    found = [each.result for each in some.complete_stream([observation] * 8, infos)]
    for each in found:
        assert each.cut == (each.completion_tokens == 200)
    assert {each.cut for each in found} == {True, False}
    assert some.usage.cut == sum(each.cut for each in found)
    assert some.usage.completion_tokens == sum(each.completion_tokens for each in found)


def test_a_prompt_that_does_not_fit_costs_only_its_own_game(drawing, observation, infos):
    huge = observation | {"problem": "x" * 20_000}
    replies = drawing.act_batch([observation, huge, observation], infos[:3])
    assert [isinstance(each, str) for each in replies] == [True, False, True]
    assert isinstance(replies[1], AgentUnavailable)
    assert "do not fit its context of 2048" in str(replies[1])
    with pytest.raises(AgentUnavailable):
        drawing.act(huge, infos[0])
    assert drawing.act_batch([], []) == []


def starve(some, room):
    """Let batches of more rows than there is room for fail; return the rows of all prompts that are tried."""
    sizes = []

    def poor(_, __, given):
        rows, columns = given["input_ids"].shape
        if columns > 1:
            sizes.append(rows)
        if rows > room:
            raise torch.OutOfMemoryError("CUDA out of memory")

    some._model.register_forward_pre_hook(poor, with_kwargs=True)
    return sizes


def test_too_little_memory_halves_the_batch(tiny_model, drawing, observation, infos):
    some = agent(tiny_model, top_p=0.95)
    observations = [observation | {"problem": "def f(x): ...\n" * length} for length in (1, 4, 3, 2)]
    sizes = starve(some, 1)
    drawing.reset(0)
    assert some.act_batch(observations, infos) == drawing.act_batch(observations, infos)
    assert sizes == [4, 2, 1, 1, 1, 1]
    starve(some, 0)
    with pytest.raises(AgentUnavailable, match="not enough memory"):
        some.act(observation, infos[0])
    assert all(isinstance(reply, AgentUnavailable) for reply in some.act_batch(observations, infos))


def test_each_reply_is_yielded_when_it_ends_and_makes_room_for_the_next(tiny_model, observation, infos):
    some = agent(tiny_model, temperature=3.0, max_tokens=200, batch_size=2)
    many = [infos[0] | {"episode_id": str(n)} for n in range(8)]
    rows, n_steps = [], []
    some._model.register_forward_pre_hook(lambda _, __, g: rows.append(len(g["input_ids"])), with_kwargs=True)
    ended = []
    for each in some.complete_stream([observation] * 8, many):
        ended.append(each)
        n_steps.append(len(rows))
        assert some.usage.completions == len(ended)
    assert sorted(each.position for each in ended) == list(range(8))
    assert n_steps[0] < n_steps[-1] / 4
    assert max(rows) == 2


def test_a_model_without_a_template_plays_and_shows_no_bars(tiny_base_model, observation, infos, tiny_model, capfd):
    some = agent(tiny_base_model)
    assert len(set(some.act_batch([observation] * 4, infos))) == 4
    agent(tiny_model)
    assert capfd.readouterr() == ("", "")


def test_options_of_a_name_and_no_defaults_of_a_model_count(tiny_model, toys, sandbox, observation, infos, tmp_path):
    spec = f"transformers,model={tiny_model},max_tokens=16,top_p=0.95,device=cpu"
    named = load_agent(spec, AgentContext(toys, sandbox, seed=4))
    same = agent(tiny_model, top_p=0.95, seed=4)
    assert named.act(observation, infos[0]) == same.act(observation, infos[0])
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    own = json.loads((folder / "generation_config.json").read_text())
    own |= {"temperature": 0.01, "top_k": 1, "repetition_penalty": 5.0, "do_sample": True, "max_length": 3}
    (folder / "generation_config.json").write_text(json.dumps(own))
    assert agent(folder).act(observation, infos[0]) == agent(tiny_model).act(observation, infos[0])


@pytest.mark.parametrize(
    ("missing", "broken", "told"),
    [
        ("*", "", "without config.json"),
        ("*.safetensors", "", "without weights"),
        ("tokenizer*", "", "without a tokenizer"),
        ("", "config.json", "cannot be loaded"),
        ("", "model.safetensors", "cannot be loaded"),
        ("", "tokenizer.json", "cannot be loaded"),
    ],
)
def test_a_folder_that_is_no_model_is_told_in_one_sentence(tiny_model, tmp_path, missing, broken, told):
    folder = shutil.copytree(tiny_model, tmp_path / "model", ignore=shutil.ignore_patterns(missing))
    if broken:
        (folder / broken).write_bytes(b"{not this")
    with pytest.raises(BrokenInput, match=told) as caught:
        agent(folder)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model": ""}, "needs model="),
        ({"model": "./not/here"}, "does not exist"),
        ({"model": __file__}, "is a file"),
        ({"dtype": "float8"}, "float32"),
        ({"device": "cuda:99"}, "cannot be used"),
        ({"device": "toaster"}, "cannot be used"),
        ({"batch_size": 0}, "batch_size"),
        ({"top_p": 2}, "top_p"),
    ],
)
def test_bad_options_are_one_sentence(tiny_model, options, told):
    with pytest.raises(UserError, match=told) as caught:
        agent(tiny_model, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("offline", "why"), [(True, "offline mode is enabled"), (False, r"\[Errno 111\] .+")])
def test_an_id_that_is_not_in_the_cache_is_one_sentence_without_a_network(tmp_path, monkeypatch, offline, why):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.utils._http.time", None)  # nothing waits and tries again
    said = rf"model 'nobody/has-this', sought on \S+ as this machine's cache lacks it, cannot be loaded: .*{why}$"
    with pytest.raises(BrokenInput, match=said) as caught:
        agent(Path("nobody/has-this"))
    assert "\n" not in str(caught.value)
