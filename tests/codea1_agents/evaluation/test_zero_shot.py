from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from codea1_agents.evaluation.mutant_trials import figures_of_trials, mutant_trials
from codea1_agents.evaluation.zero_shot import ZeroShotTask, zero_shot
from codea1_agents.play.named_agent import NamedAgent
from codea1_env.agent import AgentContext, load_agent
from codea1_env.errors import AgentUnavailable
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.sandbox import Sandbox

PROBLEMS = ProblemSet("some", load_problems("starter")[:4])
SIZES = {"samples": 1, "tests": 4, "seed": 0}


def agent(spec: Any, sandbox: Sandbox) -> NamedAgent:
    return NamedAgent(load_agent(spec, AgentContext(PROBLEMS, sandbox, 0)), "agent")


def test_a_perfect_coder_a_tester_that_knows_the_answers_and_nobody(sandbox: Sandbox) -> None:
    players: Any = {"coder": agent("reference", sandbox), "tester": agent("fuzz", sandbox)}
    found = zero_shot(PROBLEMS, players, sandbox, ZeroShotTask(samples=2, tests=4))
    assert (len(found.samples), len(found.trials)) == (8, 8)
    figures = found.figures()
    assert figures["pass@1"].mean == 1.0
    assert figures["validity"].mean > 0.9
    assert figures["right_kill_rate"].mean > 0.5
    assert figures["right_kill_rate"].n_problems == 4
    assert set(zero_shot(PROBLEMS, {"coder": agent("reference", sandbox)}, sandbox).figures()) == {"pass@1"}
    assert zero_shot(PROBLEMS, {}, sandbox).figures() == {}


def test_a_tester_sees_mutants_unless_its_view_is_black(sandbox: Sandbox) -> None:
    seen: list[str] = []

    def tester(observation: Mapping[str, Any]) -> str:
        seen.append(observation["program"])
        return "assert nothing"

    trials = mutant_trials(PROBLEMS, agent(tester, sandbox), sandbox, **SIZES)
    solutions = {problem.solution.strip() for problem in PROBLEMS}
    assert all(seen)
    assert not solutions & set(seen)
    figures = figures_of_trials(trials, tests=4, seed=0)
    assert figures["validity"].mean == figures["kill_rate"].mean == 0.0
    seen.clear()
    mutant_trials(PROBLEMS, agent(tester, sandbox), sandbox, **SIZES, view="black_box")
    assert set(seen) == {""}


def test_wrong_answers_beat_mutants_by_no_right_test(sandbox: Sandbox) -> None:
    def tester(observation: Mapping[str, Any], info: Mapping[str, Any]) -> str:
        return re.sub(r" == .*", " == 'lie'", inputs.act(observation, info))

    inputs = load_agent("fuzz", AgentContext(PROBLEMS, sandbox, 0))
    figures = figures_of_trials(mutant_trials(PROBLEMS, agent(tester, sandbox), sandbox, **SIZES), tests=4, seed=0)
    assert figures["kill_rate"].mean > 0.5
    assert figures["right_kill_rate"].mean == 0.0


def test_replies_that_did_not_come_are_masked(sandbox: Sandbox) -> None:
    def tester(observation: Mapping[str, Any]) -> str:
        raise AgentUnavailable("no engine")

    trials = mutant_trials(PROBLEMS, agent(tester, sandbox), sandbox, **SIZES)
    assert [(trial.reply, trial.report) for trial in trials] == [(None, None)] * 4
    figures = figures_of_trials(trials, tests=4, seed=0)
    assert (figures["validity"].n, figures["validity"].n_masked) == (0, 4)
