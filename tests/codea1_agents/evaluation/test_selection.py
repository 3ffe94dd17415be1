from __future__ import annotations

from dataclasses import replace
from typing import Any

from codea1_agents.evaluation.records import SelectionRecord
from codea1_agents.evaluation.selection import select_candidates, selection_figures, unique_tests
from codea1_env.facts.answers import AnswerRules
from codea1_env.problems.problem import ProblemSet
from codea1_env.sandbox import Sandbox
from tests.support.replies import bare
from tests.support.scripted import scripted, written

PROGRAMS = [
    "def sign(n):\n    return 1",
    "def sign(n):\n    return 1 if n > 0 else 0",
    "def sign(n):\n    return (n > 0) - (n < 0)",
    "not a program",
]


def record_of(problems: Any, sandbox: Sandbox, coder: Any, tester: Any, **options: Any) -> SelectionRecord:
    batches = select_candidates(problems[1:], coder, tester, sandbox, candidates=4, tests=8, **options)
    (record,) = [each for batch in batches for each in batch]
    return record


def test_the_candidate_that_passes_most_distinct_tests_is_in_front(problems: ProblemSet, sandbox: Sandbox) -> None:
    suites = [["assert sign(5) == 1", "assert sign(0) == 0"], ["assert sign(5) == 1", "assert sign(-5) == -(1)"]]
    _, coder = scripted(lambda observation, info: PROGRAMS[info["sample"]])
    agent, tester = scripted(lambda observation, info: written(suites[info["sample"]]))
    record = record_of(problems, sandbox, coder, tester, suites=2)
    assert record.n_tests == 3
    assert record.scores == (1, 2, 3, 0)
    assert record.passed == (False, False, True, False)
    assert all((o["program"], i["tester_view"]) == ("", "blind") for o, i in agent.asked)


def test_wrong_tests_count_as_they_were_written_and_equal_ones_once(problems: ProblemSet, sandbox: Sandbox) -> None:
    _, coder = scripted(lambda observation, info: PROGRAMS[info["sample"]])
    _, tester = scripted(lambda observation, info: written(["assert sign(0) == 1", "assert sign(-5) == undefined"]))
    assert record_of(problems, sandbox, coder, tester, suites=1).scores == (1, 0, 0, 0)
    replies = ["assert f(1) == 2\nassert f(1)==2", "assert f(1) == 3"]
    suites = [bare(reply) for reply in replies]
    assert [(case.expression, case.prediction) for case in unique_tests(suites)] == [("f(1)", "2"), ("f(1)", "3")]


def test_other_right_answers_pass_the_tests_of_testers(problems: ProblemSet, sandbox: Sandbox) -> None:
    checker = "def check(arguments, expected, answer):\n    return type(answer) is int and answer * arguments[0] > 0"
    loose = replace(problems[1], answers=AnswerRules(checker=checker))
    programs = ["def sign(n):\n    return 3 * n", "def sign(n):\n    return -n"]
    _, coder = scripted(lambda observation, info: programs[info["sample"]])
    _, tester = scripted(lambda observation, info: written(["assert sign(5) == 1", "assert sign(-2) == -1"]))
    batches = select_candidates([loose], coder, tester, sandbox, candidates=2, suites=1, tests=8)
    (record,) = [each for batch in batches for each in batch]
    assert record.scores == (2, 0)


def test_a_problem_without_tester_or_coder_is_masked(problems: ProblemSet, sandbox: Sandbox) -> None:
    _, good = scripted(lambda observation, info: PROGRAMS[2])
    _, tests = scripted(lambda observation, info: written(["assert sign(0) == 0"]))
    _, gone = scripted(lambda observation, info: None)
    assert record_of(problems, sandbox, good, gone, suites=2).masked == "agent"
    assert record_of(problems, sandbox, gone, tests, suites=2).masked == "agent"
    assert record_of(problems, sandbox, good, tests, suites=2).masked == ""


def record(problem: str, passed: list[bool], scores: list[int], masked: str = "") -> SelectionRecord:
    known = {"passed": passed, "pass_rate": list(map(float, passed)), "scores": scores, "masked": masked}
    return SelectionRecord.model_validate(known | {"problem_id": problem, "n_tests": 3, "n_suites": 1})


def test_figures_tell_ties_and_their_effect() -> None:
    found = selection_figures(
        [
            record("won", [False, True], [1, 3]),
            record("open tie", [False, True], [2, 2]),
            record("idle tie", [True, True], [2, 2]),
            record("misled", [False, True], [3, 1]),
            record("gone", [True], [1], masked="sandbox"),
        ]
    )
    assert (found.n_problems, found.n_masked) == (4, 1)
    assert found.average.mean == (0.5 + 0.5 + 1 + 0.5) / 4
    assert found.chosen.mean == (1 + 0.5 + 1 + 0) / 4
    assert found.first.mean == (1 + 0 + 1 + 0) / 4
    assert found.best.mean == 1.0
    assert found.gain.mean == found.chosen.mean - found.average.mean
    assert (found.ties.mean, found.open_ties.mean) == (0.5, 0.25)
    assert (found.fidelity.mean, found.fidelity.n_problems) == (0.0, 2)
