from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

from codea1_agents.checks.model_advice import advice
from codea1_agents.checks.model_check import ModelReport, ModelTask, RoleReport, check_model
from codea1_agents.models.model_facts import ModelFacts, model_facts
from codea1_agents.statistics import Estimate
from codea1_agents.train.grpo.causal_models import load_causal_model
from codea1_agents.train.settings.run_parts import ROLES
from codea1_agents.train.sizing.fitting import Lengths, Proposal, SeenLengths
from codea1_env.errors import UserError
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox
from tests.support.language_models import CHAT_TEMPLATE, chat_folder


@pytest.mark.parametrize("kind", ["Llama", "Qwen2"])
def test_the_facts_of_a_model_are_read_without_its_weights(kind: str, tmp_path: Path) -> None:
    place = chat_folder(tmp_path / kind, CHAT_TEMPLATE, kind, tie_word_embeddings=kind == "Qwen2")
    weights = load_causal_model(str(place))
    (place / "model.safetensors").write_bytes(b"")  # only its name is looked at
    found = model_facts(str(place))
    assert found.architecture == f"{kind}ForCausalLM"
    assert found.n_parameters == sum(each.numel() for each in weights.parameters())
    assert (found.dtype, found.context, found.has_template) == ("float32", 2048, True)
    assert (found.tokenizer_end, found.generation_ends) == ("<|im_end|>", ("<|im_end|>",))
    assert (found.longest_reply(), found.longest_reply(2000), found.longest_reply(9)) == (1024, 1024, 9)


def test_what_a_model_lacks_is_known(tmp_path: Path) -> None:
    place = chat_folder(tmp_path / "model", None, max_position_embeddings=100)
    (place / "generation_config.json").unlink()
    found = model_facts(str(place))
    assert (found.has_template, found.generation_ends, found.longest_reply()) == (False, (), 50)


def test_a_model_that_is_not_there_or_whose_template_fails_is_one_sentence(tmp_path: Path) -> None:
    place = chat_folder(tmp_path / "model", CHAT_TEMPLATE)
    with pytest.raises(UserError, match=r"the folder .* does not exist, .*; did you mean '.*model'\?"):
        model_facts(str(tmp_path / "modle"))
    broken = shutil.copytree(place, tmp_path / "broken")
    (broken / "chat_template.jinja").write_text("{{ raise_exception('I take nobody') }}")
    with pytest.raises(UserError, match="broken: its chat template fails: I take nobody"):
        model_facts(str(broken))
    (place / "config.json").write_text('{"model_type": "unheard_of"}')
    with pytest.raises(UserError, match="cannot be loaded"):
        model_facts(str(place))


def test_a_model_plays_both_roles_and_its_replies_are_shown_as_they_were_read(
    phrase_folders: dict[str, str], increments: str, sandbox: Sandbox
) -> None:
    problems = load_problems(increments)
    found = check_model(phrase_folders["coder"], problems, sandbox, ModelTask(max_tokens=2, tests=2))
    coder, tester = found.roles
    assert set(found.figures) == {"pass@1", "validity", "right_kill_rate", "kill_rate"}
    assert (coder.n_replies, tester.n_replies, coder.n_unavailable) == (3, 3, 0)
    assert coder.problem_id == "toy/0"
    assert coder.reply
    assert coder.readings[-1].startswith("golden tests: ")
    assert tester.readings
    for role in found.roles:
        assert len(role.seen.replies) + role.seen.n_cut == len(role.seen.prompts) == 3
        assert all(0 < each <= 2 for each in role.seen.replies)
    assert min(tester.seen.prompts) > 0
    assert found == check_model(phrase_folders["coder"], problems, sandbox, ModelTask(max_tokens=2, tests=2))


FACTS = ModelFacts("X", 10**9, "bfloat16", 4096, True, "<end>", ("<end>",), "<end>")


def report(
    *, passed: float = 0.3, facts: ModelFacts = FACTS, n_cut: int = 0, n_unreadable: int = 0, n_unavailable: int = 0
) -> ModelReport:
    roles = tuple(
        RoleReport(role, 8, SeenLengths(n_cut=n_cut), n_unavailable, n_unreadable, {})
        for role in ("coder", "tester")  # type: ignore[arg-type]
    )
    figures = {"pass@1": Estimate(passed, 0.0, 1.0, 8, 8, 0)}
    proposal = Proposal("laptop", dict.fromkeys(ROLES, Lengths(640, 0, 256, 2)), {"agents.base": "M"}, None)
    return ModelReport("M", ModelTask(), facts, 1024, proposal, roles, figures)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (report(), "codea1 train laptop --base M --problems P"),
        (report(), "a reply 256, which cuts 2 of 8"),
        (report(passed=0.0), "Warm-start it first (codea1 sft M -p P"),
        (report(passed=1.0), "harder problems"),
        (report(n_unreadable=4), "4 of 8 replies of the tester have no right test"),
        (report(n_cut=2), "2 of 8 replies of the coder were cut at 1024 tokens: raise --max-tokens"),
        (report(n_unavailable=1), "1 prompts of the coder"),
        (report(facts=replace(FACTS, has_template=False)), "no chat template"),
        (report(facts=replace(FACTS, tokenizer_end="", generation_ends=(), turn_end="")), "lacks an end token"),
    ],
)
def test_advice_follows_from_the_report(found: ModelReport, said: str) -> None:
    sentences = advice(found, "P")
    assert any(said in sentence for sentence in sentences)
    plain = advice(report(), "P")
    assert len(plain) == 4
    assert (sentences == plain) is (found == report())
