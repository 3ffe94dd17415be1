"""Settings that are proposed hold what was seen, fit the machine, and make a run."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers", reason="transformers is not installed")

from codea1_agents.cli.train import TrainOptions, _changes
from codea1_agents.models.model_facts import ModelFacts
from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.settings.run_parts import ROLES, models_of
from codea1_agents.train.sizing import devices, fitting
from codea1_agents.train.sizing.devices import Devices, parse_devices, processor_has_bfloat16
from codea1_agents.train.sizing.fitting import Proposal, SeenLengths, propose

MODEL = "Qwen/Qwen2.5-Coder-0.5B-Instruct"
FACTS = ModelFacts("Qwen2ForCausalLM", 494_000_000, "bfloat16", 32768, True, "<end>", ("<end>",), "<end>")
MACHINE = Devices(0, None, 24.0)
SEEN = {
    "coder": SeenLengths(prompts=(300, 633), replies=(100, 201, 130, 90), n_cut=1),
    "tester": SeenLengths(prompts=(700, 801), replies=(90, 60), n_cut=2),
}


def proposed(
    on: Devices | None = MACHINE,
    facts: ModelFacts = FACTS,
    seen: Any = None,
    model: str = MODEL,
) -> Proposal:
    return propose(model, facts, seen or SEEN, on, limit=512, prompts="default")


def config_of(proposal: Proposal, model: str = MODEL) -> Any:
    """Return what the command's words set."""
    command, train, preset, *words = shlex.split(proposal.command(model, "humaneval"))
    assert (command, train, preset) == ("codea1", "train", proposal.preset)
    named = {"--base": "base", "--coder": "coder", "--tester": "tester", "--problems": "problems"}
    pairs = list(zip(words[::2], words[1::2], strict=True))
    options = {named[word]: value for word, value in pairs if word in named}
    changes = [value for word, value in pairs if word == "--set"]
    assert len(options) + len(changes) == len(pairs)
    return load_training(preset, _changes(TrainOptions(**options, changes=changes)))


def test_limits_hold_what_was_seen_and_say_what_they_cut() -> None:
    coder, tester = (proposed().lengths[role] for role in ROLES)
    assert (coder.prompt, coder.reply, coder.n_prompts_cut, coder.n_replies_cut) == (640, 256, 0, 1)
    # Half of the tester's replies were cut, so nobody knows how long they would be; its prompt has room for a program.
    assert (tester.prompt, tester.reply, tester.n_prompts_cut, tester.n_replies_cut) == (1152, 512, 0, 2)
    short = proposed(facts=replace(FACTS, context=700)).lengths["coder"]
    assert (short.prompt, short.n_prompts_cut) == (444, 1)
    config = config_of(proposed())
    assert (config.agents.coder.max_tokens, config.agents.tester.max_prompt_tokens) == (256, 1152)
    assert config.game.problems == "humaneval"


@given(
    prompts=st.lists(st.integers(1, 9000), max_size=5),
    replies=st.lists(st.integers(1, 512), max_size=5),
    n_cut=st.integers(0, 5),
    context=st.none() | st.integers(600, 9000),
)
def test_limits_are_within_the_context_and_count_what_they_cut(
    prompts: list[int], replies: list[int], n_cut: int, context: int | None
) -> None:
    seen = dict.fromkeys(ROLES, SeenLengths(tuple(prompts), tuple(replies), n_cut))
    for limits in proposed(facts=replace(FACTS, context=context), seen=seen).lengths.values():
        assert 1 <= limits.reply <= 512
        assert limits.prompt >= 1
        assert context is None or limits.prompt + limits.reply <= context
        assert limits.n_prompts_cut == sum(each > limits.prompt for each in prompts)
        assert limits.n_replies_cut == n_cut + sum(each > limits.reply for each in replies)
        assert context or not limits.n_prompts_cut


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_two_adapters_share_one_base_and_bfloat16_is_for_processors_that_have_it(
    has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "processor_has_bfloat16", lambda: has_bfloat16)
    proposal = proposed()
    config = config_of(proposal)
    assert (proposal.preset, config.training.packing, config.agents.base) == ("laptop", True, MODEL)
    for model in models_of(config).values():
        assert model.shares_base
        assert model.lora
        assert not model.gradient_checkpointing  # a third faster, where memory is enough
        assert (model.autocast == model.sampling_dtype == model.base_dtype == "bfloat16") is has_bfloat16
    assert proposal.size is not None
    (learner,) = [each for each in proposal.size.placement.processes if each.kind == "learner"]
    weights = next(part.n_bytes for part in learner.parts if part.name == "weights")
    assert 1 < weights / ((2 if has_bfloat16 else 4) * 494_000_000) < 1.2


def test_less_memory_has_smaller_batches_and_the_smallest_that_does_not_fit_says_why() -> None:
    roomy = proposed()
    assert roomy.size is not None
    needed_gb = roomy.size.placement.host_bytes / 1e9
    sizes = [roomy, proposed(Devices(0, None, needed_gb + 2.5)), proposed(Devices(0, None, 4.0))]
    rows = [config_of(each).rollout.sampling_batch_size for each in sizes]
    assert rows == [64, 32, 8]
    assert [bool(each.size and each.size.faults) for each in sizes] == [False, False, True]


def test_a_gpu_has_a_preset_of_its_own_and_a_tiny_model_trains_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "find_spec", lambda package: None if package == "vllm" else package)
    card = proposed(parse_devices("1 x H100"))
    assert (card.preset, "[vllm]" in card.needs, card.size.faults) == ("one-gpu-lora", True, ())
    config = config_of(card)
    rows = {each.prompt + each.reply for each in card.lengths.values()}
    assert {each.engine_options["max_model_len"] for each in models_of(config).values()} == {max(rows)}
    assert proposed(parse_devices("8 x H100")).preset == "node-lora"
    tiny = proposed(facts=replace(FACTS, n_parameters=600_000))
    assert (tiny.preset, tiny.needs, config_of(tiny).agents.coder.model) == ("code-a1", "", MODEL)


def test_an_unknown_shape_or_machine_has_a_command_all_the_same() -> None:
    for proposal in (proposed(None), proposed(model="someone/unknown")):
        assert proposal.size is None
        assert config_of(proposal, "my model").agents.base == "my model"


def test_instructions_for_bfloat16_are_read_from_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for flags, expected in (("fpu avx512_bf16 sse", True), ("fpu avx512f", False), ("asimd bf16", True)):
        (tmp_path / "cpuinfo").write_text(f"flags\t: {flags}\n")
        monkeypatch.setattr(devices, "Path", lambda _: tmp_path / "cpuinfo")
        assert processor_has_bfloat16() is expected
