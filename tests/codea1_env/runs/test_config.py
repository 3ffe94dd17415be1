from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.errors import BrokenInput
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.rules.ruleset import PRESETS, preset
from codea1_env.runs.config import problems_digest, read_config, to_toml
from tests.support.runs import run_config

VERSIONS = {"python": "3.11.7", "codea1-env": "0.1.0"}
CONFIG = run_config(n_problems=48, coder="mutant,strength=0.3", episodes=10, versions=VERSIONS)
lines = st.text(st.characters(exclude_categories=("Cs",)))


@given(lines, lines, st.dictionaries(lines, lines), st.sampled_from(sorted(PRESETS)), st.floats(0, 1))
def test_toml_gives_back_every_option(coder: str, problems: str, versions: dict, name: str, alpha: float) -> None:
    rules = preset(name)
    rules = replace(rules, reward=replace(rules.reward, alpha=alpha))
    config = CONFIG.model_copy(update={"coder": coder, "problems": problems, "versions": versions, "rules": rules})
    assert read_config(to_toml(config).encode(), "here") == config


def test_the_file_states_every_rule_and_limit_not_only_the_preset() -> None:
    stored = tomllib.loads(to_toml(CONFIG))
    assert stored["rules"]["reward"]["alpha"] == 0.5
    assert stored["rules"]["book"]["max_entries"] == 64
    assert stored["limits"]["cpu_s"] == 2.0
    assert next(iter(stored)) == "schema_version"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema_version = 1", "schema_version = 2", "expected schema version 1, got 2"),
        ("schema_version = 1", "", "expected schema version 1, got None"),
        ('coder = "mutant,strength=0.3"', "", "coder: Field required"),
        ("alpha = 0.5", "alfa = 0.5", "rules.reward.alfa: Unexpected keyword"),
        ("cpu_s = 2.0", "cpu_s = -2.0", "limits: Value error, limits: cpu_s must be a finite number of at least 0.001"),
        ("seed = 0", "seed = zero", "not TOML"),
        ("episodes = 10", "episodes = 0", "episodes: expected greater"),
        ('tester_view = "white_box"', 'tester_view = "grey"', "tester_view: expected 'white_box'"),
        ("[versions]", '[versions]\n"\\ud800" = ""', "not TOML"),
        ("[versions]", "\udcff\0", "not TOML"),  # bytes that are no text
    ],
)
def test_a_broken_config_is_refused_with_its_place(old: str, new: str, said: str) -> None:
    text = to_toml(CONFIG)
    assert old in text
    with pytest.raises(BrokenInput, match=f"^config.toml: {said}"):
        read_config(text.replace(old, new).encode(errors="surrogateescape"), "config.toml")


def test_each_option_that_would_change_the_games_is_named() -> None:
    rules = replace(CONFIG.rules, reward=replace(CONFIG.rules.reward, alpha=0.3))
    asked = CONFIG.model_copy(update={"seed": 1, "rules": rules, "limit": 5, "problems_digest": "xyz", "episodes": 9})
    assert "; ".join(CONFIG.differences(asked)) == (
        "problems_digest was abc, now xyz; seed was 0, now 1; limit was unset, now 5; "
        "rules.reward.alpha was 0.5, now 0.3; episodes was 10, now 9"
    )


def test_more_episodes_other_versions_and_another_place_of_the_same_problems_continue_a_run() -> None:
    others = {"episodes": 20, "versions": {"python": "3.13"}, "git": "f00", "problems": "/elsewhere/starter.jsonl"}
    assert CONFIG.differences(CONFIG.model_copy(update=others)) == ()


def digest(name: str, statement: str) -> str:
    return problems_digest(ProblemSet(name, (Problem("P/1", statement, "f", "def f(): pass", ()),)))


def test_the_digest_tells_problems_apart_by_content_not_by_the_name_of_their_source() -> None:
    assert digest("here", "def f(): ...") == digest("there", "def f(): ...") != digest("here", "def f(): ... # other")
    assert digest("lone", "\ud800")
