"""Scripted agents on problems with several right answers, functions that work in place, and functions as arguments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codea1_agents.scripted.literals import effect_text
from codea1_env.agent import AgentContext, load_agent
from codea1_env.observations import test_notes as notes_of
from codea1_env.problems.problem import ProblemSet
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import RoundOptions, Tree
from codea1_env.sandbox import Sandbox
from tests.support import ROOT
from tests.support.several_answers import examples_of

TABLES = ROOT / "tests" / "codea1_env" / "judging"
each_table = pytest.mark.parametrize(
    "table", ["several_answers.toml", pytest.param("in_place.toml", marks=pytest.mark.slow), "functions.toml"]
)


def problems_of(table: str) -> ProblemSet:
    """The problems of a table; their first golden tests are the examples of the statement."""
    found = examples_of(Path(TABLES / table))
    return ProblemSet(table, tuple(replace(each.problem, examples=each.golden[:2]) for each in found))


def played(problems: ProblemSet, coder: str, tester: str, sandbox: Sandbox) -> list[tuple[float, float, float]]:
    """Rewards of coder and tester, and the number of valid tests, in one round of each problem."""
    context = AgentContext(problems=problems, sandbox=sandbox, seed=0)
    agents = {"coder": load_agent(coder, context), "tester": load_agent(tester, context)}
    rounds = Referee(problems, "fixed", sandbox=sandbox).open(
        [Tree(problem, 1, 1) for problem in problems], RoundOptions(skips_invalid=False)
    )
    rounds.submit_programs([agents["coder"].act(turn.observation, turn.info) for turn in rounds.coder_turns()])
    rounds.submit_suites([agents["tester"].act(turn.observation, turn.info) for turn in rounds.tester_turns()])
    return [
        (float(each.coder_rewards[0]), float(each.tester_rewards[0, 0]), len(each.report.candidates[0].suites[0].cases))
        for each in rounds.results()
        if each.report is not None
    ]


@each_table
def test_a_round_of_each_problem_is_rewarded_but_copies_of_examples_are_not(table: str, sandbox: Sandbox) -> None:
    found = played(problems_of(table), "reference", "examples", sandbox)
    assert all(coder == 1.0 and n_cases >= 1 for coder, _, n_cases in found)
    rewards = [tester for _, tester, _ in found]
    assert sum(rewards) < 1.0
    assert sum(reward > 0 for reward in rewards) <= 2


@pytest.mark.slow
def test_a_tester_of_inputs_tests_what_changes_in_place(sandbox: Sandbox) -> None:
    found = played(problems_of("in_place.toml"), "reference", "boundary", sandbox)
    assert sum(n_cases for *_, n_cases in found) >= 60
    assert sum(tester for _, tester, _ in found) / len(found) >= 0.4


def test_the_changed_argument_is_the_first_that_can_change() -> None:
    assert effect_text("f", (1, [2], {3})) == "(lambda changed: (f(1, changed, {3}), changed)[1])([2])"
    assert effect_text("f", ([2], 1), (None, "k")) == "(lambda changed: (f(changed, k=1), changed)[1])([2])"
    assert effect_text("f", (1, "a")) == "f(1, 'a')"


def test_the_notes_name_what_a_tester_may_write() -> None:
    notes = {table: set(map(notes_of, problems_of(table))) for table in ("in_place.toml", "functions.toml")}
    assert all("`x = ...`" in note for note in notes["in_place.toml"])
    assert all("lambdas" in note for note in notes["functions.toml"])
    answers = {problem.id: notes_of(problem) for problem in problems_of("several_answers.toml")}
    assert answers["answers/common_items"] == "The items of an answer may have any order."
    assert "within 0.0001" in answers["answers/square_root"]
    assert "Other answers" in answers["answers/peak"]
    plain = replace(problems_of("in_place.toml")[0], calls=type(problems_of("in_place.toml")[0].calls)())
    assert notes_of(plain) == ""
