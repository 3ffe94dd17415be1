"""Cells for real, as small as can be: pretraining of three steps, training of one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from codea1_agents.train.loop import load_training, preset_names
from codea1_env.problems import load_problems
from codea1_env.records.locks import hold_folder
from codea1_lab.experiments.declaration import Evaluation, Experiment, Pretraining, StartingModel, System
from codea1_lab.experiments.folder import ExperimentFolder
from codea1_lab.experiments.grid import Cell, cells_of
from codea1_lab.experiments.models import Models
from codea1_lab.experiments.pool import cell_command
from codea1_lab.experiments.results import read_result

pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("scipy", reason="scipy is not installed")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]

SOURCE = "tiny:held-out"
SMALL = {
    "run.steps": 1,
    "rollout.problems_per_step": 2,
    "rollout.n_candidates": 2,
    "rollout.n_suites": 2,
    "evaluation.every": 0,
    "logging.tensorboard": False,
    "logging.samples_every": 0,
}
EXPERIMENT = Experiment(
    name="small",
    seeds=1,
    pretraining=Pretraining(steps=3),
    set=SMALL,
    evaluation=Evaluation(coder={"held-out": SOURCE}, samples=1, tester=SOURCE, together=SOURCE, candidates=2),
    systems=(
        System(name="base"),
        System(name="a1", preset="code-a1", set={"game.reward.alpha": 0.25}),
        System(name="together", coder_from="a1", tester_from="base", together=True),
        System(name="earlier", coder_from="a1", coder_step=1, tester_from="a1"),
    ),
)


def test_cells_train_measure_and_hand_their_models_on(tmp_path: Path) -> None:
    from codea1_lab.experiments.cell import run_cell

    with ExperimentFolder(tmp_path / "one", EXPERIMENT):
        found = {cell.system: run_cell(tmp_path / "one", EXPERIMENT, cell) for cell in cells_of(EXPERIMENT)}
    assert found["base"].figures["coder/held-out"] < 0.5
    assert {"tester/pass@4", "tester/mut_fixed@4", "duel/validity"} <= found["base"].figures.keys()
    assert found["base"].curve == ()
    (point,) = found["a1"].curve
    assert point.step == 1
    assert point.cpu_s > 0
    assert found["a1"].figures["training/coder_reward"] == pytest.approx(point.figures["coder_reward"], abs=1e-6)
    assert found["a1"].declared
    assert {"together/average", "together/chosen"} <= found["together"].figures.keys()
    place = tmp_path / "one" / "cells" / Cell("together", 0, 0).name
    assert Models.read(place).coder == (tmp_path / "one/cells/a1/base-0/seed-0/run/models/coder").resolve()
    assert read_result(place) == found["together"]
    earlier = Models.read(tmp_path / "one" / "cells" / Cell("earlier", 0, 0).name)
    assert earlier.tester == (tmp_path / "one/cells/a1/base-0/seed-0/run/models/tester").resolve()
    assert earlier.coder.name == "coder-1"
    weights = [each / "model.safetensors" for each in (earlier.coder, Models.read(place).coder)]
    assert weights[0].read_bytes() == weights[1].read_bytes(), "step 1 is the last"

    # A moved folder goes on; the run in it has the paths of before.
    (tmp_path / "one").rename(tmp_path / "two")
    place = tmp_path / "two" / "cells" / Cell("earlier", 0, 0).name
    shutil.rmtree(place)
    with ExperimentFolder(tmp_path / "two", EXPERIMENT):
        again = run_cell(tmp_path / "two", EXPERIMENT, Cell("earlier", 0, 0))
    assert again == found["earlier"]


def test_systems_start_from_a_model_that_exists(tmp_path: Path, tiny_folder: Path) -> None:
    from codea1_lab.experiments.cell import run_cell

    options = "prompts=tiny,max_tokens=24,temperature=1,top_p=1,device=cpu"
    model = StartingModel(name="tiny", digest="0", folder=str(tiny_folder), coder=options, tester=options)
    two_adapters = {"agents.base": "tiny", "agents.coder.model": "", "agents.tester.model": ""}
    experiment = Experiment(
        name="adapters",
        seeds=1,
        model=model,
        set=SMALL,
        evaluation=Evaluation(coder={"held-out": SOURCE}, samples=1, duels=SOURCE, duel_problems=2),
        systems=(System(name="base"), System(name="block", preset="code-a1", set=two_adapters)),
    )
    with ExperimentFolder(tmp_path / "one", experiment):
        results = {cell.system: run_cell(tmp_path / "one", experiment, cell) for cell in cells_of(experiment)}
    place = tmp_path / "one" / "cells" / Cell("block", 0, 0).name
    assert Models.read(place) == Models(place / "adapter-coder", place / "adapter-tester")
    assert (place / "adapter-coder" / "adapter_config.json").exists()
    assert results["block"].figures.keys() >= {"coder/held-out", "duel/right_kill_subtlest", "cpu_s"}
    assert (place / "evaluation" / "held-out" / "records.jsonl").read_text().count("\n") == len(load_problems(SOURCE))


def test_a_grader_pays_a_cell_and_is_watched(tmp_path: Path) -> None:
    from codea1_lab.experiments.cell import run_cell

    graded = System(name="graded", preset="golden", grader="exit status")
    few = {"pretraining": Pretraining(steps=3, hostile=0.02), "evaluation": Evaluation(), "systems": (graded,)}
    experiment = EXPERIMENT.model_copy(update=few)
    with ExperimentFolder(tmp_path, experiment):
        found = run_cell(tmp_path, experiment, Cell("graded", 0, 0))
    (point,) = found.curve
    assert {f"coder_{name}" for name in ("paid", "true", "fooled", "attack", "hacked")} <= point.figures.keys()
    assert point.figures["coder_reward"] == point.figures["coder_paid"]


def test_an_interrupted_fine_tuning_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from codea1_agents.train.sft import warm_start
    from codea1_lab.experiments.cell import _fine_tune

    def interrupted(model: str, problems: object, out: Path, *_: object) -> object:
        out.mkdir(parents=True)
        return SimpleNamespace(tuned=SimpleNamespace(is_interrupted=True))

    monkeypatch.setattr(warm_start, "warm_start", interrupted)
    models = Models(tmp_path / "base", tmp_path / "base")
    with pytest.raises(KeyboardInterrupt):
        _fine_tune(tmp_path / "cell", EXPERIMENT, Cell("a1", 0, 0), models)
    assert not (tmp_path / "cell/sft-tester").exists()


def test_two_processes_do_not_run_one_cell(tmp_path: Path) -> None:
    with ExperimentFolder(tmp_path, EXPERIMENT):
        pass
    place = tmp_path / "cells" / Cell("base", 0, 0).name
    place.mkdir(parents=True)
    command = cell_command(tmp_path, Cell("base", 0, 0))
    with hold_folder(place):
        second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (second.returncode, "another process is writing to it" in second.stderr) == (2, True)


@pytest.mark.parametrize(
    "name", [n for n in preset_names() if not n.startswith(("paper-", "one-gpu", "node-", "laptop"))]
)
def test_presets_of_the_laptop_differ_from_code_a1_by_what_they_are_for(name: str) -> None:
    base, preset = load_training("code-a1").model_dump(), load_training(name).model_dump()
    changed = {
        f"{section}.{key}"
        for section in base
        if isinstance(base[section], dict)
        for key in base[section]
        if base[section][key] != preset[section][key]
    }
    assert changed == set(DIFFERENCES[name].split())


DIFFERENCES = {
    "code-a1": "",
    "golden": "game.rules rollout.n_suites agents.tester",
    "all-inputs": "game.rules game.problems rollout.n_suites agents.tester",
    "fresh-16": "game.tests_per_suite game.tester_view game.book rollout.suites_per rollout.n_suites agents.tester",
    "fuzz-hunt": "rollout.n_suites agents.tester",
    "self-play": "game.tester_view agents.coder agents.tester agents.shared rollout.suites_per rollout.n_suites",
    "self-play-control": "game.tester_view rollout.suites_per rollout.n_suites",
    "sft-tester": "agents.tester",
    "no-predicted-answer": "game.validation",
    "black-box": "game.tester_view",
    "block-credit": "training.credit",
    "no-mistake-book": "game.book",
    "book-as-alpha": "game.reward",
    "frozen-tester": "agents.tester",
    "rival-cure": "game.rules",
    "rival-utrl": "game.rules",
    "rival-atgen": "game.rules",
    "rival-learnability": "game.rules",
    "coevolve": "run.steps game.reward logging.samples_every",
}
"""What each preset changes."""
