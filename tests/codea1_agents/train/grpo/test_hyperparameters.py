"""A hyperparameter is stated once: Python, settings files and the loss read the same dataclasses."""

from dataclasses import MISSING, fields

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo import GRPOConfig
from codea1_agents.train.grpo.config import GRPOSettings
from codea1_agents.train.grpo.hyperparameters import (
    LengthSettings,
    LossSettings,
    RateSettings,
    RolloutSettings,
    UpdateSettings,
    default_hyperparameters,
    settings_in,
    values_of,
)
from codea1_agents.train.loop import load_training
from codea1_agents.train.loop.building import grpo_config
from codea1_env.errors import UserError

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own

GROUPS = (RolloutSettings, UpdateSettings, LengthSettings, RateSettings)


def test_the_groups_share_no_name_and_every_field_has_a_default() -> None:
    names = [each.name for group in GROUPS for each in fields(group)]
    assert sorted(names) == sorted(set(names)) == sorted(default_hyperparameters())
    for each in (each for group in GROUPS for each in fields(group)):
        assert each.default is not MISSING or each.default_factory is not MISSING, each.name


def test_python_accepts_every_name_and_starts_from_the_defaults() -> None:
    defaults = default_hyperparameters()
    config = GRPOSettings(None)
    assert {name: getattr(config, name) for name in defaults} == defaults
    changed = {name: object() for name in defaults}
    config.training(**changed)
    assert {name: getattr(config, name) for name in defaults} == changed


def test_settings_files_have_every_name_and_the_same_defaults() -> None:
    config = load_training()
    for options, group in ((config.rollout, RolloutSettings()), (config.training, UpdateSettings())):
        assert values_of(options, type(group)) == values_of(group)
    assert load_training({"rollout": values_of(RolloutSettings()), "training": values_of(UpdateSettings())}) == config


@pytest.mark.parametrize("table", ["rollout", "training"])
def test_an_unknown_name_and_a_wrong_value_end_with_one_sentence(table: str) -> None:
    with pytest.raises(UserError, match=rf"{table}\.learning_rates"):
        load_training(overrides=[f"{table}.learning_rates=1"])
    name = {"rollout": "n_candidates", "training": "epochs_per_step"}[table]
    for value in ("0", "true", "'8'", "1.5"):
        with pytest.raises(UserError, match=rf"^settings: {table}\.{name} should be .*, not "):
            load_training(overrides=[f"{table}.{name}={value}"])


WRONG = {"n_candidates": 0, "n_suites": -1, "n_kept": 0, "advantages": "none", "valid_from": 0.0, "lr": -1.0}
WRONG |= {"clip_low": 1, "clip_high": 0, "dual_clip": 1, "kl_coeff": -1, "logits_at_once": -5}
WRONG |= {"old_log_probs": "nobody", "importance_cap": 2.0}


@pytest.mark.parametrize("name", WRONG)
def test_python_refuses_a_value_out_of_range_by_its_name(name: str) -> None:
    with pytest.raises(UserError, match=name):
        GRPOConfig().llm_agents(coder="a").agents(tester="fuzz").training(**{name: WRONG[name]}).validate()


def test_a_value_in_a_settings_file_reaches_runners_and_loss() -> None:
    agents = {role: {"model": f"some/{role}", "max_tokens": 7} for role in ("coder", "tester")}
    settings = {"agents": agents, "game": {"problems": "starter"}}
    made = grpo_config(load_training(settings, ["training.clip_low=0.1", "rollout.n_kept=3"]))
    assert settings_in(made, LossSettings) == LossSettings(clip_low=0.1)
    assert made.settings().rollout == RolloutSettings(n_kept=3)
    assert made.settings().lengths == LengthSettings(max_tokens={"coder": 7, "tester": 7})
