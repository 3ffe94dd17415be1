from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.train.loop import load_training, preset_names
from codea1_env.errors import UserError
from codea1_env.runs.config import to_toml


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("game.alhpa=1", "unknown setting 'game.alhpa'"),
        ("rolout.n_kept=1", "did you mean 'rollout'"),
        *((f"{table}.learning_rates=1", f"{table}.learning_rates") for table in ("rollout", "training")),
        ("lr=1", "unknown setting 'lr': did you mean 'training.lr'?"),
        ("problems=starter", "did you mean 'game.problems' or 'evaluation.problems'?"),
        ("rollout.n_kept=many", "rollout.n_kept should be a valid integer, got 'many'"),
        ("rollout.n_kept=1.5", "rollout.n_kept should be a valid integer, got 1.5"),
        *(
            (f"{name}={value}", f"settings: {name} should be ")
            for name in ("rollout.n_candidates", "training.epochs_per_step")
            for value in ("0", "true", "'8'", "1.5")
        ),
        ("run.seed=-1", "run.seed should be greater than or equal to 0, got -1"),
        ("training.lr=nan", "training.lr should be a finite number"),
        ("agents.coder.frozen=1", "agents.coder.frozen should be a valid boolean, got 1"),
        ("training.entropy_coeff=nan", "training.entropy_coeff should be a finite number"),
        ("agents.coder.lora.rnak=4", "did you mean 'agents.coder.lora.rank'"),
        ("game=3", "game should be a valid dictionary, got 3"),
        ("training=3", "training should be a dictionary, got 3"),
        ("agents.coder.rollout_engine=sglang", "agents.coder.rollout_engine should be 'transformers' or 'vllm'"),
        ("run.seed", "--set run.seed: expected section.key=value"),
        ("=3", "expected section.key=value"),
    ],
)
def test_a_slip_is_one_sentence_with_the_path_of_its_key(override: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load_training("", [override])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_of_overrides_are_toml_and_text_needs_no_quotes() -> None:
    told = ["run.seed=7", "training.lr=1e-3", "game.problems=starter", 'run.name="7"', "agents.coder.frozen=true"]
    told += ['evaluation.opponents=["mutant", "current"]', "game.reward.alpha=0.25"]
    config = load_training("", told)
    assert (config.run.seed, config.training.lr, config.game.problems, config.run.name) == (7, 1e-3, "starter", "7")
    assert config.agents.coder.frozen
    assert config.evaluation.opponents == ["mutant", "current"]
    assert config.game.reward == {"alpha": 0.25}
    assert load_training("", {"run.seed": 7}).run.seed == 7
    defaults = load_training()  # the paper's
    assert (defaults.training.lr, defaults.rollout.problems_per_step, defaults.run.steps) == (1e-6, 256, 111)


def test_a_file_replaces_only_the_settings_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('about = "base"\n[run]\nseed = 1\nsteps = 5\n[training]\nlr = 0.5\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.toml").write_text('extends = "../base.toml"\n[run]\nseed = 2\n')
    config = load_training(tmp_path / "sub" / "mine.toml", ["run.steps=6"])
    assert (config.run.seed, config.run.steps, config.training.lr, config.about) == (2, 6, 0.5, "")


def test_extending_itself_ends_and_so_does_no_such_file_or_preset(tmp_path: Path) -> None:
    for name, said in (("nowhere.toml", "no such file"), ("paper-7B", "did you mean 'paper-7b'")):
        with pytest.raises(UserError, match=said):
            load_training(name)
    (tmp_path / "a.toml").write_text('extends = "b.toml"\n')
    (tmp_path / "b.toml").write_text('extends = "a.toml"\n')
    with pytest.raises(UserError, match="extends itself"):
        load_training(tmp_path / "a.toml")


@pytest.mark.parametrize("content", ["[run", "\xff\xfe", 'run = "x'])
def test_what_is_no_toml_is_said_to_be_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match="not TOML"):
        load_training(path)


def test_who_takes_a_seat_takes_it_from_others() -> None:
    two = {"agents": {"coder": {"model": "a", "max_tokens": 5}, "tester": {"model": "b"}}}
    config = load_training(two, ["agents.tester.agent=fuzz"])
    assert (config.agents.tester.model, config.agents.tester.agent) == ("", "fuzz")
    assert config.agents.coder.model == "a"
    config = load_training(two, ["agents.shared.model=c"])
    assert (config.agents.coder.model, config.agents.tester.model, config.agents.shared.model) == ("", "", "c")
    assert config.agents.coder.max_tokens == 5
    again = load_training({"agents": {"shared": {"model": "c"}}}, ["agents.coder.model=d"])
    assert (again.agents.shared.model, again.agents.coder.model) == ("", "d")


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_says_what_it_is_and_survives_being_written(name: str, tmp_path: Path) -> None:
    config = load_training(name)
    assert config.about
    (tmp_path / "copy.toml").write_text(to_toml(config))
    assert load_training(tmp_path / "copy.toml") == config


@given(name=st.text(), opponents=st.lists(st.text()), lr=st.floats(1e-12, 1.0), alpha=st.floats(0, 1))
def test_settings_survive_being_written(name: str, opponents: list[str], lr: float, alpha: float) -> None:
    import tomllib

    config = load_training(
        {
            "run": {"name": name},
            "evaluation": {"opponents": opponents},
            "training": {"lr": lr},
            "game": {"reward": {"alpha": alpha}},
            "agents": {"coder": {"lora": {"rank": 4, "target_modules": ["q_proj"]}}},
        }
    )
    assert load_training(tomllib.loads(to_toml(config))) == config
