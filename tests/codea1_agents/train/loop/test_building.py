from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import fields, is_dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.models.shapes import UnknownShape, shape_of
from codea1_agents.train.grpo import LoraSettings, ModelSettings
from codea1_agents.train.loop import load_training
from codea1_agents.train.loop.building import grpo_config, require_loadable, rules_of
from codea1_agents.train.settings.run_parts import models_of, require_game
from codea1_env.errors import UserError
from codea1_env.rules.ruleset import BookUpdate, Validation, preset
from tests.support.language_models import CHAT_TEMPLATE, chat_folder

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own

TWO = {
    "agents": {"coder": {"model": "some/coder"}, "tester": {"model": "some/tester"}},
    "game": {"problems": "starter"},
}


def test_parts_of_the_rules_are_replaced_and_the_rest_is_the_presets() -> None:
    told = ["game.reward.alpha=0.25", "game.book.update=off", "game.validation=call_only", "game.tests_per_suite=3"]
    rules = rules_of(load_training("", told).game)
    assert (rules.reward.alpha, rules.book.update, rules.validation) == (0.25, BookUpdate.OFF, Validation.CALL_ONLY)
    assert (rules.tests_per_suite, rules.comparison) == (3, preset("fixed").comparison)
    assert rules_of(load_training("", ["game.rules=release"]).game) == preset("release")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("game.rules=fixd", "unknown rules 'fixd': did you mean 'fixed'"),
        ("game.reward.alhpa=0.3", "did you mean 'game.reward.alpha'"),
        ("game.reward.alpha=2", "reward.alpha must be a finite number from 0 to 1"),
        ("game.book.update=never", "rules: book.update must be one of off, release"),
        ("game.limits.cpu=1", "unknown setting 'game.limits.cpu'"),
        ("agents.coder.frozen=true agents.tester.frozen=true", "nothing learns"),
        ("game.limits.cpu_s=-1", "limits: cpu_s must be a finite number of at least 0.001"),
        ("agents.coder.model=''", "nobody plays the coder: set agents.coder.model"),
        ("game.problems=''", "game.problems: name the problems"),
        ("rollout.suites_per=problem", "tester_view"),
        ("rollout.prompts=defualt", "defualt"),
        ("rollout.n_suites=0", "n_suites"),
        ("agents.coder.model=/nowhere/at/all", "agents.coder.model: the folder '/nowhere/at/all' does not exist"),
        ("agents.coder.model=models/tiny-of-nobody", "how to make one with codea1 pretrain"),
        ("agents.coder.model=models/tiny", "make it with: codea1 pretrain -o models/tiny"),
    ],
)
def test_settings_that_make_no_run_are_one_sentence(override, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_training(TWO, override.split())
    with pytest.raises(UserError) as caught:
        grpo_config(config)
    assert said in str(caught.value)


def test_problems_whose_inputs_cannot_be_drawn_are_named(tmp_path: Path) -> None:
    row = {"id": "echo", "kind": "stdin", "statement": "Echo.", "solution": "print(input())"}
    known = row | {"id": "known", "examples": ["assert run('a') == 'a'"]}
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(row)}\n{json.dumps(known)}\n")
    told = {"agents": {"coder": {"model": "a"}, "tester": {"agent": "fuzz"}}, "game": {"problems": str(path)}}
    with pytest.raises(UserError, match=r"fuzz draws inputs .* which 1 of 2 problems lack, e\.g\. echo"):
        require_game(load_training(told))
    require_game(load_training(told, ["agents.tester.agent=invalid"]))


def test_each_setting_arrives() -> None:
    told = ["agents.coder.lr=5e-6", "agents.tester.frozen=true", "agents.tester.max_tokens=7", "rollout.n_kept=3"]
    told += ["agents.coder.lora.rank=4", "training.lr_schedule=cosine", "run.steps=20", "game.limits.cpu_s=1.5"]
    told += ["cluster.env_runners=2", "run.seed=9", "training.kl_coeff=0.5", "agents.coder.autocast=bfloat16"]
    made = grpo_config(load_training(TWO, told))
    assert made.get_config_for_module("coder").lr == 5e-6
    assert made.get_config_for_module("tester").lr == made.lr == 1e-6
    assert (made.total_steps, made.n_kept, made.seed, made.kl_coeff, made.num_env_runners) == (20, 3, 9, 0.5, 2)
    assert made.max_tokens == {"coder": 4096, "tester": 7}
    assert made.max_prompt_tokens == {"coder": 4096, "tester": 8192}
    assert made.trained_modules == {"coder"}
    assert (made.models["coder"].lora.rank, made.models["coder"].autocast) == (4, "bfloat16")
    assert made.limits.cpu_s == 1.5
    assert grpo_config(load_training(TWO)).total_steps is None


def test_an_agent_in_a_seat_and_a_shared_model_and_no_seat_is_taken_twice() -> None:
    against = grpo_config(load_training(TWO, ["agents.tester.agent=fuzz"]))
    assert (against.scripted, set(against.models)) == ({"tester": "fuzz"}, {"coder"})
    told = ["agents.shared.model=one", "agents.shared.max_tokens=9", "agents.tester.max_tokens=5"]
    shared = grpo_config(load_training(TWO, told))
    assert shared.module_by_role == {"coder": "shared", "tester": "shared"}
    assert shared.max_tokens == {"coder": 9, "tester": 5}
    for role, other, said in (
        ("coder", {"coder": {"model": "a", "agent": "mutant"}}, "either model or agent"),
        ("tester", {"shared": {"model": "a"}, "tester": {"agent": "fuzz"}}, r"agents\.shared\.model plays both roles"),
    ):
        with pytest.raises(UserError, match=rf"agents\.{role}: {said}"):
            models_of(load_training({"agents": other}))


@pytest.mark.parametrize(
    ("preset", "modules", "is_adapted"),
    [
        ("one-gpu", {"coder", "tester"}, False),
        ("one-gpu-lora", {"coder", "tester"}, True),
        ("node-lora", {"coder", "tester"}, True),
    ],
)
def test_presets_for_some_gpus_make_runs(preset: str, modules: set[str], is_adapted: bool) -> None:
    made = grpo_config(load_training(preset))
    assert set(made.models) == modules
    for settings in made.models.values():
        assert settings.rollout_engine == "vllm"
        assert settings.gradient_checkpointing
        assert (settings.lora is not None) == is_adapted
    longest = max(made.max_tokens[role] + made.max_prompt_tokens[role] for role in ("coder", "tester"))
    assert max(each.engine_options["max_model_len"] for each in made.models.values()) == longest


def parts_of(rules: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all rules but the preset's name."""
    for each in fields(rules):
        value = getattr(rules, each.name)
        if is_dataclass(value):
            yield from parts_of(value, (*path, each.name))
        elif each.name != "name":
            yield (*path, each.name)


@pytest.mark.parametrize("path", [*parts_of(preset("fixed"))], ids=".".join)
def test_a_wrong_rule_is_refused_from_everywhere_with_the_same_sentence(path: tuple[str, ...]) -> None:
    name = path[-1]
    part: Any = reduce(getattr, path[:-1], preset("fixed"))
    value = -1e12 if name == "scheme" or isinstance(getattr(part, name), float) else "nobody"
    with pytest.raises(UserError) as expected:
        replace(part, **{name: value})
    assert str(expected.value).startswith(f"rules: {'.'.join(path)} must be ")
    key = f"game.{'.'.join(path)}"
    for overrides in ([f"{key}={value}"], {key: value}):
        with pytest.raises(UserError, match=f"^{re.escape(str(expected.value))}$"):
            rules_of(load_training("", overrides).game)


def test_layers_of_any_architecture_that_get_no_adapter_are_refused_before_weights_are_read(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="the extra codea1-env[lora] is not installed")
    folder = chat_folder(tmp_path / "gemma", CHAT_TEMPLATE, "Gemma", head_dim=32, tie_word_embeddings=True)
    with pytest.raises(UnknownShape):
        shape_of(str(folder))
    (folder / "model.safetensors").write_bytes(b"none")
    for targets, said in ((("o_proj",), ""), (("o_proj", "qkv"), "no layer is named 'qkv'"), (("lm_head",), "shares")):
        models = [ModelSettings(str(folder), lora=LoraSettings(target_modules=targets))]
        with pytest.raises(UserError, match=said) if said else nullcontext():
            require_loadable(models)
