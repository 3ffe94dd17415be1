"""Presets train for two steps from their own files, with random models of the same architecture on processors.

Of presets that differ only in rewards, view or a model's name, the first one does: `grpo/test_systems.py` trains with
all of these, and `experiments/test_cell.py` holds the presets to their differences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.grpo import ON_RAY
from tests.support.language_models import chat_phrase_folder, chat_tokenizer

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.loop import TrainingConfig, load_training, preset_names, train
from codea1_agents.train.loop.folder import last_checkpoint, stored_run
from codea1_agents.train.settings.run_parts import rules_of
from codea1_env.problems import ProblemSet, load_problems

pytestmark = [*ON_RAY, pytest.mark.slow]

ROLES = ("coder", "tester", "shared")
ALIKE = r"about|run\..*|logging\..*|game\.(rules|reward\..*|tester_view)"
"""Settings that do not change what a training consists of."""

AT_MOST: dict[str, float] = {
    "run.steps": 2,
    # Time only.
    "rollout.problems_per_step": 2,
    "rollout.n_candidates": 4,
    "rollout.n_suites": 4,
    "evaluation.limit": 2,
    "evaluation.samples": 2,
    r"agents\.\w+\.max_tokens": 2,  # a reply is one phrase, or two
    # Two cores and no GPU.
    "cluster.env_runners": 0,
    "cluster.learners": 0,
    r"cluster.cpus_per_\w+": 0.5,
    r"cluster.gpus_per_\w+": 0,
}
"""Settings, as patterns, that are not the file's own but at most this."""

WITH_PROCESSES = ("paper-1.5b", "node-lora")
"""Presets that have a runner and a learner in processes of their own here, too."""

REPLACED: dict[str, Any] = {
    r"agents\.\w+\.rollout_engine": "transformers",  # vLLM needs a GPU
    r"agents\.\w+\.engine_options": {},  # they are vLLM's
    r"agents\.\w+\.handover_folder": "",
}
"""Settings that have another value. `agents.ROLE.model` or `agents.base` is the folder of a random model; problems that
a preset leaves open are toys."""

MODEL = r"agents\.(\w+\.model|base)"

SMALL_VOCABULARY, REAL_VOCABULARY = 4096, 151_936
"""The second is that of Qwen2.5-Coder up to 3B."""

BODIES = ["return 0", "return []", "return ''", "return args[0]", "raise ValueError", "return ["]


def phrases_for(role: str, problems: ProblemSet) -> list[str]:
    """Programs that define the functions of all problems, and suites with a test for each of four problems."""
    names = sorted({each.entry_point for each in problems if each.entry_point.isidentifier()})
    programs = ["\n".join(f"def {name}(*args):\n    {body}\n" for name in names) for body in BODIES]
    tests = [f"assert {case.expression} == {case.expected}" for each in problems for case in each.golden[:1]]
    suites = ["\n".join(tests[start : start + 4]) for start in range(0, len(tests), 4)]
    said = {"coder": programs, "tester": suites}.get(role, [*programs, *suites])
    return [f"```python\n{code}\n```\n" for code in said]


@pytest.fixture
def stand_in(tmp_path: Path) -> Callable[[str, str, str], str]:
    """Return the folder of a random model for a role, the path or hub id in a preset, and the problems."""

    def folder(role: str, model: str, problems: str) -> str:
        assert model.startswith(("Qwen/Qwen2.5-Coder-", "models/tiny")), f"no random model for {model}: a Qwen2 or not?"
        found = load_problems(problems)
        phrases = phrases_for(role, found)
        return chat_phrase_folder(
            tmp_path / role,
            chat_tokenizer([each.statement for each in found], phrases),
            phrases,
            vocab_size=REAL_VOCABULARY if model == "Qwen/Qwen2.5-Coder-1.5B-Instruct" else SMALL_VOCABULARY,
            tie_word_embeddings="Coder-7B" not in model,
        )

    return folder


def flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the dotted name of each setting, its table and its key."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        yield name, table, key
        if isinstance(value, dict) and value:
            yield from flat(value, f"{name}.")


def found(name: str, table: dict[str, Any]) -> Any:
    return next((value for pattern, value in table.items() if re.fullmatch(pattern, name)), None)


def reduced(config: TrainingConfig, stand_in: Callable[[str, str, str], str], problems: str) -> TrainingConfig:
    """Return the settings of a preset for two steps on this machine."""
    settings = config.model_dump(exclude_none=True)
    settings["game"]["problems"] = settings["game"]["problems"] or problems
    for name, table, key in list(flat(settings)):
        if (most := found(name, AT_MOST)) is not None:
            table[key] = most if name == "evaluation.limit" else min(table[key], most)  # a limit of 0 is none
        elif (other := found(name, REPLACED)) is not None:
            table[key] = other
        elif re.fullmatch(MODEL, name) and table[key]:
            table[key] = stand_in(name.split(".")[1], table[key], settings["game"]["problems"])
    return load_training(settings)


def kind(preset: str) -> str:
    """Return the settings that a preset has in common with those that train alike."""
    settings = flat(load_training(preset).model_dump())
    values = {name: table[key] for name, table, key in settings if not isinstance(table[key], dict)}
    models = {name: bool(value) for name, value in values.items() if re.fullmatch(MODEL, name)}
    return repr({name: value for name, value in (values | models).items() if not re.fullmatch(ALIKE, name)})


def one_of_each_kind() -> list[str]:
    """Return the first preset of each kind; of its own kind code-a1, whose variants most others are."""
    first: dict[str, str] = {}
    for name in sorted(preset_names(), key="code-a1".__ne__):
        first.setdefault(kind(name), name)
    return sorted(first.values())


def has_feedback(name: str) -> bool:
    """Whether a preset's suites can be the feedback of another turn."""
    rollout = load_training(name).rollout
    return bool(rollout.n_suites) and rollout.n_groups > 1


@pytest.mark.parametrize(
    ("name", "turns"),
    [
        pytest.param(
            name, turns, marks=[pytest.mark.long] * (name.endswith("-lora") or (turns > 1 and name != "code-a1"))
        )
        for turns in (1, 2)
        for name in one_of_each_kind()
        if turns == 1 or has_feedback(name)
    ],
)
def test_it_trains_for_two_steps(name, turns, stand_in, increments, tmp_path):
    later = {"rollout.turns": turns, **{f"agents.{role}.max_prompt_tokens": 8192 for role in ROLES[:2]}}
    preset = load_training(name, later if turns > 1 else {})
    if any(getattr(preset.agents, role).lora for role in ROLES):
        pytest.importorskip("peft", reason="peft is not installed")
    config = reduced(preset, stand_in, increments)
    if name in WITH_PROCESSES:
        config = load_training(config.model_dump(exclude_none=True), {"cluster.env_runners": 1, "cluster.learners": 1})
    done = train(config, out=tmp_path / "run")
    assert (done.steps, done.interrupted) == (2, False)
    assert stored_run(done.folder)[0] == config
    assert last_checkpoint(done.folder).name == "step-0002"
    figures = [line["figures"] for line in done.lines if "figures" in line]
    assert len(figures) == 2
    assert all(math.isfinite(value) for each in figures for value in each.values())
    assert all(any(each.get(f"{role}_trained") for each in figures) for role in ROLES if learns(preset, role))
    assert ("evaluation" in done.lines[-1]) == bool(preset.evaluation.every)
    with_models = {role for role in ROLES if preset.agents.model_of(role)}
    assert done.models.keys() == (with_models if preset.checkpoints.export else set())


def learns(config: TrainingConfig, role: str) -> bool:
    player = getattr(config.agents, role)
    return (
        bool(config.agents.model_of(role))
        and not player.frozen
        and (role != "tester" or rules_of(config.game).reward.pays_tester)
    )


def test_each_exception_is_of_a_setting_that_some_preset_has() -> None:
    names = {name for preset in preset_names() for name, _, _ in flat(load_training(preset).model_dump())}
    for pattern in AT_MOST | REPLACED:
        assert any(re.fullmatch(pattern, name) for name in names), pattern
