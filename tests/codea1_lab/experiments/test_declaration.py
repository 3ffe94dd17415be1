from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env.errors import UserError
from codea1_lab.experiments.declaration import experiment_names, load_experiment

WHOLE = """
name = "small"
bases = [0, 1]
seeds = 2
[[systems]]
name = "base"
[[systems]]
name = "a1"
preset = "code-a1"
[[systems]]
name = "static"
preset = "golden"
supervision = "a1"
"""


PICTURE = """
set = {"game.rules" = "golden"}
[[pictures]]
title = "x"
file = "x"
systems = ["static"]
panels = { x = "coder/held-out" }
over = "game.rules"
"""
STEP = WHOLE.replace('"code-a1"', '"code-a1"\nset = { "run.steps" = 30, "checkpoints.every" = 10 }') + (
    '[[systems]]\nname = "later"\ncoder_from = "a1"\ncoder_step = 20\n'
)


def written(folder: Path, text: str) -> str:
    path = folder / "declared.toml"
    path.write_text(text)
    return str(path)


def test_a_file_is_read_and_an_unknown_name_tells_the_known_ones(tmp_path: Path) -> None:
    found = load_experiment(written(tmp_path, WHOLE))
    names = [system.name for system in found.systems]
    assert (found.name, found.bases, names) == ("small", (0, 1), ["base", "a1", "static"])
    assert load_experiment(written(tmp_path, STEP)).system("later").coder_step == 20
    with pytest.raises(UserError, match="paper-cpu"):
        load_experiment("paper-gpu")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = 3", "name"),
        ("name = 'x'\nsystems = []", "systems"),
        (WHOLE + "colour = 1", "colour"),
        (WHOLE.replace('supervision = "a1"', 'supervision = "b2"'), "b2"),
        (WHOLE.replace('name = "static"', 'name = "a1"'), "twice"),
        (WHOLE + 2 * PICTURE[PICTURE.index("[[") :], "expected a file of its own for each picture"),
        (WHOLE.replace("[0, 1]", "[1, 1]"), "bases"),
        (WHOLE.replace("seeds = 2", "seeds = 0"), "seeds"),
        (WHOLE.replace("seeds = 2", 'compared_to = "nobody"'), "nobody"),
        (WHOLE.replace('preset = "golden"', 'preset = "goldn"'), "system 'static': unknown preset 'goldn'"),
        (WHOLE + 'set = {"run.stepz" = 3}', "system 'static': .*unknown setting 'run.stepz'"),
        (WHOLE + "coder_step = 5", "'static': coder_step is the step of"),
        (WHOLE + 'set = {"game.rules" = "fixd"}', "system 'static': .*'fixd'"),
        (WHOLE + 'set = {"game.limits" = {"cpu" = 1}}', "system 'static': .*game.limits.cpu"),
        (STEP.replace("20", "25"), "'later': coder_step is 25, and 'a1' keeps the checkpoints of 20, 30$"),
        (STEP.replace("20", "10"), "'later': coder_step is 10, and 'a1' keeps the checkpoints of 20, 30$"),
        (STEP.replace('from = "a1"', 'from = "base"'), "'later': coder_step: 'base' trains no coder"),
        (STEP.replace("coder_", "tester_").replace('_from = "a1"', '_from = "static"'), "'static' trains no tester"),
        (WHOLE + "together = true", "system 'static': together needs problems: set evaluation.together"),
        (WHOLE.replace('preset = "golden"', ""), "system 'static': supervision needs a training"),
        (
            WHOLE.replace('supervision = "a1"', 'grader = "judge"').replace('preset = "golden"', ""),
            "grader needs a trai",
        ),
        (WHOLE.replace('supervision = "a1"', 'grader = "me"'), "grader"),
        (WHOLE.replace('supervision = "a1"', "from_first_base = true"), "from_first_base needs a system"),
        (WHOLE + 'set = {"run.seed" = 3}', "system 'static': run.seed is set by the experiment"),
        (WHOLE + PICTURE, "picture 'x': expected a number, got game.rules of 'static' = 'golden'"),
        ("name = ", "declared.toml"),
        (WHOLE.replace('name = "base"', 'name = "0"'), "systems.0.name"),
        (WHOLE + '[[headlines]]\nsystem = "a1"\nfigure = "x"', "x of 'a1' is compared with no other system"),
        (WHOLE + '[[headlines]]\nsystem = "a1"\nfigure = "x"\ncompared_to = "b2"', "no system is called 'b2'"),
    ],
)
def test_faults_are_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        load_experiment(written(tmp_path, text))


@pytest.mark.parametrize("name", experiment_names())
def test_the_declared_experiments_are_well_formed(name: str) -> None:
    found = load_experiment(name)
    assert found.name == name
    assert found.headlines
