"""The same seed gives the same replies in another process, whatever its hash seed and whoever acted before."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support.command_line import run_python

PLAY = """
import hashlib, json
from codea1_env.agent import AgentContext, load_agent
from codea1_env.observations import observation_of
from codea1_env.problems import humaneval, starter
from codea1_env.problems.problem import ProblemSet
from codea1_env.sandbox import load_sandbox

NAMES = ["mutant", "random", "boundary", "fuzz", "boundary,hunt=true", "fuzz,hunt=true", "fuzz,predict=none", "invalid"]

def play(order):
    problems = ProblemSet("some", (*starter.load()[::9], *humaneval.load()[::27]))
    context = AgentContext(problems, load_sandbox("local"), seed=11)
    agents = {name: load_agent(name, context) for name in NAMES}
    replies = {}
    for agent in agents.values():
        agent.reset(4)
    for name in order(NAMES):
        for problem in problems:
            program = problem.wrong_programs[0].program if problem.wrong_programs else ""
            info = {"problem_id": problem.id, "tests_per_suite": 8}
            replies[name, problem.id] = agents[name].act(observation_of(problem, 0, program), info)
    return sorted((*key, reply) for key, reply in replies.items())

if __name__ == "__main__":
    import sys
    print(json.dumps(play(reversed if sys.argv[1] == "reversed" else list)))
"""


@pytest.mark.slow
def test_two_processes_give_the_same_replies(tmp_path: Path) -> None:
    first = run_python("-c", PLAY, "forward", folder=tmp_path, PYTHONHASHSEED="1")
    second = run_python("-c", PLAY, "reversed", folder=tmp_path, PYTHONHASHSEED="2")
    assert len(first) > 10_000
    assert hashlib.sha256(first.encode()).digest() == hashlib.sha256(second.encode()).digest()
