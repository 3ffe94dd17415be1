"""A program of a user is type-checked against the packages as they are here: `py.typed` promises that it can be.

An error that should be found is marked as ignored; mypy reports such a mark where there is nothing to ignore.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

pytest.importorskip("mypy", reason="mypy is not installed")

USER = """
from collections.abc import Mapping
from typing import Any, assert_type

from codea1_env import AgentContext, GroupVector, MistakeBook, Problem, Referee, Ruleset
from codea1_env import bank_v0, code_a1_v0, judge, load_agent, load_problems, preset, score
from codea1_env.agent import Agent
from codea1_env.facts.verdicts import CandidateReport
from codea1_env.problems import ProblemSet
from codea1_env.rounds.referee import Scored
from codea1_env.sandbox import Sandbox, load_sandbox

def tester(observation: Mapping[str, Any]) -> str:
    return f"assert {observation['entry_point']}([]) == []"

problems = load_problems("starter")
assert_type(problems, ProblemSet)
assert_type(problems[0], Problem)
assert_type(preset("fixed"), Ruleset)

with code_a1_v0.env(problems, max_cycles=2, render_mode="ansi") as env:
    env.reset(seed=0, options={"replay": False})
    assert_type(load_agent("mutant", env, role="coder"), Agent)
    load_agent(tester, code_a1_v0.parallel_env("starter"))
    load_agent(tester, code_a1_v0.group_env(problems, n_candidates=4), role="judge")  # type: ignore[arg-type]
    load_agent("mutant", "starter")  # type: ignore[arg-type]

code_a1_v0.env(problms="starter")  # type: ignore[call-arg]
code_a1_v0.parallel_env("starter", max_cycles="2")  # type: ignore[arg-type]
code_a1_v0.blind_parallel_env("starter", rules=5)  # type: ignore[arg-type]
code_a1_v0.group_env("starter", 8)  # type: ignore[call-arg]
bank_v0.env(bank="starter", infos="no")  # type: ignore[arg-type]

with load_sandbox("local") as sandbox, Referee(problems, sandbox=sandbox) as referee, MistakeBook() as book:
    assert_type(sandbox, Sandbox)
    assert_type(book, MistakeBook)
    scored = referee.rewards([problems[0].id], ["def f(): pass"], ["assert f() is None"])
    assert_type(scored, list[Scored])
    assert_type(scored[0].coder, float | None)
    scored[0].coder + 1  # type: ignore[operator]
    load_agent("fuzz", AgentContext(problems, sandbox, seed=1))
    report = judge(problems[0], "def f(): pass", "assert f() is None", sandbox=sandbox)
    assert_type(report, CandidateReport)
    score(report, preset("fixed")).coder.value.is_integer()

with GroupVector([code_a1_v0.group_env(problems)]) as vector:
    rewards: list[dict[str, float]] = [step.rewards for step in vector.reset(seed=0)]
    vector.send({})  # type: ignore[arg-type]
"""


@pytest.mark.slow
def test_a_users_program_is_type_checked(tmp_path: Path) -> None:
    program = tmp_path / "user.py"
    program.write_text(USER)
    # In a folder of its own, so that only `py.typed` and the annotations count, and not the settings of this project.
    untyped = "[mypy]\nstrict = true\nfollow_imports = silent\n[mypy-pettingzoo.*]\nignore_missing_imports = true\n"
    (tmp_path / "mypy.ini").write_text(untyped)
    command, place = [sys.executable, "-m", "mypy", "user.py"], f"{ROOT}{os.pathsep}{ROOT / 'agents'}"
    settings = {"cwd": tmp_path, "env": {**os.environ, "MYPYPATH": place}, "timeout": 220}
    done = subprocess.run(command, **settings, capture_output=True, text=True, check=False)
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr


def test_all_packages_say_that_they_are_typed() -> None:
    folders = [ROOT / "codea1_env", ROOT / "agents" / "codea1_agents", ROOT / "agents" / "codea1_lab"]
    assert all((folder / "py.typed").is_file() for folder in folders)
