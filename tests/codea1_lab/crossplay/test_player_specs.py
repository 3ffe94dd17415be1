from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import UserError
from codea1_lab.crossplay.player_specs import PlayerSpec, read_players


def roles(players: tuple[PlayerSpec, ...]) -> list[tuple[str, str]]:
    return [(player.name, player.role) for player in players]


def test_an_agent_plays_what_it_can_once_under_any_name(tmp_path: Path) -> None:
    found = read_players(["mutant,strength=1", "fuzz", "human"], tmp_path)
    named = [("mutant,strength=1", "coder"), ("fuzz", "tester"), ("human", "coder"), ("human", "tester")]
    assert roles(found) == named
    assert found[0].spec == "mutant,strength=1"
    assert roles(read_players(["human"], tmp_path, role="tester")) == [("human", "tester")]
    (found,) = read_players(["subtle=mutant,strength=0.1"], tmp_path)
    assert (found.name, found.spec, found.argument) == ("subtle", "mutant,strength=0.1", "mutant,strength=0.1")
    assert roles(read_players(["fuzz", "fuzz"], tmp_path)) == [("fuzz", "tester")]
    two = read_players(["a=mutant,strength=1", "a=mutant,strength=0"], tmp_path)
    assert [player.name for player in two] == ["a", "a#2"]


def test_an_agent_comes_before_a_folder_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fuzz").mkdir()
    assert roles(read_players(["fuzz", "mine=fuzz"], tmp_path)) == [("fuzz", "tester"), ("mine", "tester")]
    with pytest.raises(UserError, match=r"fuzz: neither a training run nor a model in one"):
        read_players(["./fuzz"], tmp_path)


@pytest.mark.parametrize(
    ("text", "role", "said"),
    [
        ("nobody", None, "nobody"),
        ("fuzz", "coder", "fuzz does not play the coder"),
        ("runs/none@3", None, "runs/none@3"),
        ("FOLDER/model", None, r"transformers,model=.*model,prompts="),  # a folder that is no run
    ],
)
def test_what_is_not_there_is_one_sentence(tmp_path: Path, text: str, role: Any, said: str) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(UserError, match=said):
        read_players([text.replace("FOLDER", str(tmp_path))], tmp_path, role=role)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder as training leaves it, with models that nobody loads."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    from codea1_agents.train.settings.options import TrainingConfig
    from codea1_env.runs.config import to_toml

    base, folder = tmp_path / "base", tmp_path / "first"
    for place in (base, folder / "models" / "coder", folder / "models" / "tester"):
        place.mkdir(parents=True)
        (place / "config.json").write_text("{}")
        for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            (place / name).touch()
    (folder / "checkpoints" / "step-0040").mkdir(parents=True)
    config = TrainingConfig.model_validate(
        {
            "game": {"problems": "starter", "tester_view": "black_box"},
            "agents": {"coder": {"model": str(base), "max_tokens": 7}, "tester": {"model": str(base)}},
            "rollout": {"prompts": "simple", "temperature": 0.5},
        }
    )
    (folder / "config.toml").write_text(to_toml(config))
    (folder / "run.json").write_text(json.dumps({}))
    return folder


def test_a_run_stands_for_its_exported_models_or_those_it_began_with(run: Path, tmp_path: Path) -> None:
    coder, tester = read_players([str(run)], tmp_path)
    assert (coder.name, tester.name) == ("first", "first")
    assert f"model={run / 'models' / 'coder'}" in coder.spec
    assert all(part in coder.spec for part in ("prompts=simple", "temperature=0.5", "max_tokens=7"))
    assert "max_tokens" not in tester.spec
    assert tester.view == "black_box"
    (only,) = read_players([str(run / "models" / "tester")], tmp_path)
    assert (only.role, only.spec) == ("tester", tester.spec)
    base = read_players([f"{run}@base"], tmp_path)
    assert [each.name for each in base] == ["first@base", "first@base"]
    assert f"model={tmp_path / 'base'}," in base[0].spec
    for step, said in (("7", "no checkpoint of step 7; there are: 40"), ("last", "or base")):
        with pytest.raises(UserError, match=said):
            read_players([f"{run}@{step}"], tmp_path)
