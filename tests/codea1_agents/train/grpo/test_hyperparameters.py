"""A setting is declared once: Python, settings files, `--set` and the loss read the same dataclasses."""

import inspect
import json
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

pytest.importorskip("ray", reason="Ray is not installed")

from ray import tune

from codea1_agents.train.declared import settings_in, values_of
from codea1_agents.train.grpo import GRPOConfig
from codea1_agents.train.grpo.hyperparameters import (
    LearnerSettings,
    LengthSettings,
    LossSettings,
    RateSettings,
    RolloutSettings,
    UpdateSettings,
)
from codea1_agents.train.grpo.settings import ModelOptions, ModelSettings
from codea1_agents.train.loop import load_training
from codea1_agents.train.loop.building import grpo_config
from codea1_env.errors import UserError

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own

GROUPS = (RolloutSettings, UpdateSettings, LengthSettings, RateSettings)
TABLES = {"rollout": RolloutSettings, "training": UpdateSettings, "cluster": LearnerSettings}
SETTINGS = [(table, each.name) for table, kind in TABLES.items() for each in fields(kind)]
METHODS = {"rollout": "training", "training": "training", "cluster": "learners"}


def test_the_groups_share_no_name_and_every_field_has_a_default() -> None:
    declared = [each for group in GROUPS for each in fields(group)]
    assert len({each.name for each in declared}) == len(declared)
    for each in declared:
        assert each.default is not MISSING or each.default_factory is not MISSING, each.name


def test_python_starts_from_the_defaults_and_help_shows_them() -> None:
    config = GRPOConfig()
    for method, groups in (("training", GROUPS), ("learners", (LearnerSettings,))):
        defaults = {name: value for group in groups for name, value in values_of(group()).items()}
        assert {name: getattr(config, name) for name in defaults} == defaults
        shown = inspect.signature(getattr(config, method)).parameters
        assert {name: shown[name].default for name in defaults} == defaults


def test_settings_files_have_every_name_and_the_same_defaults() -> None:
    config = load_training()
    for table, kind in TABLES.items():
        assert values_of(getattr(config, table), kind) == values_of(kind())
    assert load_training({table: values_of(kind()) for table, kind in TABLES.items()}) == config


def valid(table: str, name: str) -> st.SearchStrategy[Any]:
    """Values in the range that the declaration states."""
    schema = TypeAdapter(TABLES[table]).json_schema()["properties"][name]
    kinds = schema.get("anyOf", [schema])
    return st.one_of([_of(kind) for kind in kinds])


def _of(kind: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "enum" in kind:
        return st.sampled_from(kind["enum"])
    if "$ref" in kind:
        return st.sampled_from(["candidate", "problem"])
    least = kind.get("minimum", kind.get("exclusiveMinimum", -5))
    most = kind.get("maximum", kind.get("exclusiveMaximum", least + 10))
    excludes = {"exclude_min": "exclusiveMinimum" in kind, "exclude_max": "exclusiveMaximum" in kind}
    return {
        "boolean": st.booleans(),
        "null": st.none(),
        "integer": st.integers(least, most),
        "number": st.floats(least, most, **excludes),
    }[kind["type"]]


@given(data=st.data())
def test_a_value_in_range_is_the_same_from_everywhere(data: st.DataObject) -> None:
    table, name = data.draw(st.sampled_from(SETTINGS))
    value = data.draw(valid(table, name))
    if name == "tis_cap" or value is None:
        return  # needs another one; TOML has no null
    from_python = getattr(getattr(GRPOConfig(), METHODS[table])(**{name: value}), name)
    from_file = getattr(getattr(load_training({table: {name: value}}), table), name)
    from_text = getattr(getattr(load_training(overrides=[f"{table}.{name}={json.dumps(value)}"]), table), name)
    assert from_python == from_file == from_text == value


@given(data=st.data())
def test_a_value_out_of_range_is_refused_from_everywhere_with_the_same_sentence(data: st.DataObject) -> None:
    of_models = [("agents.coder", each.name) for each in fields(ModelOptions) if each.name != "lora"]
    table, name = data.draw(st.sampled_from([*SETTINGS, *of_models]))
    value = data.draw(st.sampled_from([-1, 0, 1, 2, -0.5, 0.5, 1.5, True, "8", "nobody", [1]]))
    try:
        TypeAdapter(TABLES.get(table, ModelOptions)).validate_python({name: value})
    except ValueError:
        pass
    else:
        return
    if name == "tis_cap":
        return  # needs another one
    said = set()
    in_python = getattr(GRPOConfig(), METHODS[table]) if table in METHODS else partial(ModelSettings, "a")
    for how in (
        partial(in_python, **{name: value}),
        partial(load_training, {}, {f"{table}.{name}": value}),
        partial(load_training, overrides=[f"{table}.{name}={json.dumps(value)}"]),
    ):
        with pytest.raises(UserError) as caught:
            how()
        said.add(str(caught.value).partition(name)[2])
    assert len(said) == 1
    assert said.pop().startswith((" should be ", "."))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "settings", "said"),
    [
        ("training", {"n_suites": -1}, "training: n_suites should be greater than or equal to 0, got -1"),
        ("training", {"max_tokens": {"codr": 5}}, "training: max_tokens.codr should be 'coder' or 'tester'"),
        ("training", {"max_tokens": {"coder": 0}}, "training: max_tokens.coder should be greater than or equal to 1"),
        ("training", {"lr_by_module": {"coder": -1.0}}, "training: lr_by_module.coder should be greater than 0"),
        ("training", {"lr": "1" * 999}, f"training: lr should be a valid number, got '{'1' * 99}"),
        ("training", {"n_candidate": 3}, "unknown setting 'n_candidate': did you mean 'n_candidates'?"),
        ("training", {"gamma": 0.9}, "training: gamma would change nothing here: a reply is one step"),
        (
            "update_from_dict",
            {"config_dict": {"model": {"fcnet_hiddens": [3]}}},
            "model would change nothing here: llm_agents(",
        ),
        ("learners", {"num_learner": 2}, "unknown setting 'num_learner': did you mean 'num_learners'?"),
        ("environment", {"tester_view": "grey_box"}, "environment: tester_view must be one of white_box, black_box"),
        ("environment", {"rules": "fixd"}, "unknown rules 'fixd': did you mean 'fixed'?"),
        ("environment", {"rules": 3}, "environment: rules must be of type Ruleset"),
        ("environment", {"sandbox": "nope"}, "unknown sandbox 'nope'"),
        ("environment", {"sandbox": 5}, "environment: sandbox must be of type str, got int"),
        ("environment", {"env_config": 5}, "environment: env_config must be of type dict, got int"),
        ("agents", {"tester": 5}, "agent 5: expected a function or an object with act"),
        ("agents", {"tester": "fuz"}, "unknown agent 'fuz': did you mean 'fuzz'"),
        ("llm_agents", {"coder": "a", "prompts": "nope"}, "prompts 'nope': neither a file nor one of"),
        ("llm_agents", {"coder": "a", "frozen": "coder"}, "frozen must be a list of modules, as in ['coder']"),
        ("llm_agents", {"coder": "a", "frozen": ["tester"]}, "'tester' cannot be frozen, modules are coder"),
        ("problems", {"source": "tinny:train"}, "did you mean 'tiny:train'?"),
        ("problems", {"source": "humanevla"}, "did you mean 'humaneval'?"),
        ("problems", {"source": None}, "problems: the source must be of type str"),
    ],
)
def test_python_refuses_where_it_is_set(method: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        getattr(GRPOConfig(), method)(**settings)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_configuration_is_the_same_after_a_dictionary_as_ray_tune_makes_one() -> None:
    config = GRPOConfig().llm_agents(coder="a").agents(tester="fuzz").problems("starter").training(n_suites=3)
    config.validate()
    assert GRPOConfig.from_dict(config.to_dict()).to_dict() == config.to_dict()


def test_numbers_of_numpy_and_search_spaces_are_taken_and_a_role_that_is_left_out_keeps_its_length() -> None:
    config = GRPOConfig().training(n_suites=np.int64(4), lr=np.float64(0.5))
    assert (config.n_suites, type(config.n_suites), config.lr) == (4, int, 0.5)
    space = tune.choice(["white_box", "black_box"])
    assert config.environment(tester_view=space, rules=space).problems(space).tester_view is space
    config.training(max_tokens={"coder": 5}).training(max_tokens={"tester": 7})
    assert config.max_tokens == {"coder": 5, "tester": 7}
    assert config.update_from_dict({"max_tokens": {"tester": 9}}).max_tokens == {"coder": 5, "tester": 9}


def test_validate_refuses_what_others_have_set() -> None:
    config = GRPOConfig().llm_agents(coder="a").agents(tester="fuzz")
    with pytest.raises(UserError, match=r"^problems: name the problems to train on"):
        config.validate()
    config.problems("starter").update_from_dict({"n_suites": -1})
    with pytest.raises(UserError, match="n_suites should be greater than or equal to 0, got -1"):
        config.validate()
    config.update_from_dict({"n_suites": 1, "tis_cap": 2.0})
    with pytest.raises(UserError, match="tis_cap needs old_log_probs = 'learner', got 'sampler'"):
        config.validate()


def test_a_value_in_a_settings_file_reaches_runners_and_loss() -> None:
    agents = {role: {"model": f"some/{role}", "max_tokens": 7} for role in ("coder", "tester")}
    settings = {"agents": agents, "game": {"problems": "starter"}}
    made = grpo_config(load_training(settings, ["training.clip_low=0.1", "rollout.n_kept=3"]))
    assert settings_in(made, LossSettings) == LossSettings(clip_low=0.1)
    assert made.settings().rollout == RolloutSettings(n_kept=3)
    assert made.settings().lengths == LengthSettings(max_tokens={"coder": 7, "tester": 7})
