"""The commands that a command names at its end: they run, or at least they are read as what they mean."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.cli import evaluate
from codea1_agents.cli.app import all_commands
from codea1_agents.cli.experiment import ExperimentOptions
from codea1_agents.cli.next_commands import next_commands
from codea1_agents.cli.options import Options
from codea1_agents.cli.train import TrainOptions


def read(command: str) -> tuple[str, dict[str, Any]]:
    """The name of the command in a line, and its options that are no defaults."""
    _, *words = shlex.split(command)
    known = all_commands()
    n_names = 1 if words[0] in known else 2
    name = " ".join(words[:n_names])
    context = known[name].make_context(name, words[n_names:])
    defaults = {each.name: each.get_default(context) for each in known[name].params}
    return name, {key: value for key, value in context.params.items() if value not in (defaults[key], None, [], ())}


def test_after_a_game_they_run(codea1: Callable[..., Any], folder: Path) -> None:
    ended = codea1("play", "-p", "starter", "--tester", "boundary", "-n", "2", "-o", "my runs/first")
    assert ended.exit_code == 0
    found = [line.removeprefix("next: codea1 ") for line in ended.stdout.splitlines() if line.startswith("next: ")]
    assert len(found) == 2
    for command in found:
        done = codea1(*shlex.split(command))
        assert (done.exit_code, done.stderr) == (0, "")
    assert (folder / "my runs" / "first.html").is_file()


def test_a_quiet_command_names_none(codea1: Callable[..., Any]) -> None:
    assert "next:" not in codea1("play", "-p", "starter", "--tester", "boundary", "-n", "1", "-q").stdout


def test_a_stored_evaluation_is_compared_with_a_scripted_agent_in_the_same_way() -> None:
    done = evaluate.CoderOptions(
        agent="openai,model=m", problems="starter", samples=4, limit=3, temperature=0.5, out=Path("a")
    )
    again, compared = next_commands(done, Path("a"))
    asked = {"agent": "mutant", "problems": "starter", "samples": 4, "limit": 3, "out": Path("a-mutant")}
    assert read(again) == ("eval coder", asked)
    assert read(compared) == ("eval compare", {"before": Path("a-mutant"), "after": Path("a")})


def test_an_evaluation_without_a_folder_is_stored() -> None:
    done = evaluate.TesterOptions(agent="fuzz", problems="starter", mutants=0, mode="suite")
    stored, other = map(read, next_commands(done, None))
    asked = {"agent": "fuzz", "problems": "starter", "mutants": 0, "mode": "suite"}
    assert stored == ("eval tester", asked | {"out": Path("eval-tester")})
    assert other == ("eval tester", asked | {"agent": "boundary"})


def test_a_choice_is_followed_by_its_two_agents_and_no_key_is_shown() -> None:
    done = evaluate.SelectOptions(coder="openai,model=m,api_key=hush", tester="fuzz", problems="starter")
    coder, tester = next_commands(done, None)
    assert "hush" not in coder
    assert read(coder)[0] == "eval coder"
    assert read(tester) == ("eval tester", {"agent": "fuzz", "problems": "starter"})


@pytest.mark.parametrize("runs", [[], [Path("e/cells/base-0/run")]])
def test_an_experiment_is_reported_and_enlarged(runs: list[Path]) -> None:
    done = ExperimentOptions(name="paper-cpu", seeds=2, quiet=True)
    shown, more = next_commands(done, Path("e"), runs)
    assert read(more) == ("experiment", {"name": "paper-cpu", "out": Path("e"), "seeds": 3})
    if runs:
        assert read(shown) == ("report", {"runs": runs, "out": Path("e.html")})
    else:
        assert read(shown) == (
            "experiment",
            {"name": "paper-cpu", "out": Path("e"), "seeds": 2, "report_only": True},
        )


def test_a_part_of_an_experiment_is_completed() -> None:
    done = ExperimentOptions(name="paper-cpu", seeds=2, only="golden")
    assert read(next_commands(done, Path("e"))[1]) == (
        "experiment",
        {"name": "paper-cpu", "out": Path("e"), "seeds": 2},
    )


@pytest.fixture
def trained(folder: Path) -> Callable[..., Path]:
    """Return the folder of a training that ended, with models that nobody loads."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    from codea1_agents.train.settings.options import TrainingConfig
    from codea1_env.runs.config import to_toml

    def make(*, exported: bool = True, held_out: str = "tiny:held-out") -> Path:
        run = Path("runs/first")
        places = [Path("base"), *(run / "models" / role for role in ("coder", "tester") if exported)]
        for place in places:
            place.mkdir(parents=True)
            for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
                (place / name).write_text("{}")
        run.mkdir(parents=True, exist_ok=True)
        config = {
            "game": {"problems": "tiny:train"},
            "agents": {role: {"model": "base", "max_tokens": 7} for role in ("coder", "tester")},
            "rollout": {"prompts": "tiny"},
            "evaluation": {"problems": held_out},
        }
        (run / "config.toml").write_text(to_toml(TrainingConfig.model_validate(config)))
        (run / "run.json").write_text(json.dumps({}))
        return run

    return make


def test_a_training_is_reported_and_its_coder_evaluated(trained: Callable[..., Path]) -> None:
    run = trained()
    shown, evaluated = map(read, next_commands(TrainOptions(), run))
    assert shown == ("report", {"runs": [run], "out": Path("runs/first.html")})
    name, asked = evaluated
    assert (name, asked["problems"]) == ("eval coder", "tiny:held-out")
    assert asked["agent"].startswith("transformers,model=runs/first/models/coder,prompts=tiny,")
    assert asked["agent"].endswith("max_tokens=7")


def test_without_held_out_problems_the_models_play(trained: Callable[..., Path]) -> None:
    name, asked = read(next_commands(TrainOptions(), trained(held_out=""))[1])
    assert (name, asked["problems"]) == ("play", "tiny:train")
    assert "models/coder" in asked["coder"]
    assert "models/tester" in asked["tester"]


def test_a_model_that_was_not_exported_is_exported(trained: Callable[..., Path]) -> None:
    run = trained(exported=False)
    found = read(next_commands(TrainOptions(), run)[1])
    assert found == ("export model", {"source": run, "role": "coder", "out": run / "models" / "coder"})


def test_nothing_follows_other_commands() -> None:
    with pytest.raises(TypeError):
        next_commands(Options(), None)
