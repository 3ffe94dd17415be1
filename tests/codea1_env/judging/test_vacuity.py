"""Tests that hold whatever the solution returns are found, others are kept, and neither can stall the rest."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import ValidSuite
from codea1_env.judging.solution_values import SolutionValues, limits_of_solutions
from codea1_env.problems import GoldenCase, Problem
from codea1_env.rules.ruleset import PRESETS, preset
from codea1_env.rules.validation import ChangeEvidence
from codea1_env.sandbox import Call, Job, JobReport, Limits, Place, Sandbox
from codea1_env.sandbox.inside.changes import N_CHANGES, N_DECISIVE
from codea1_env.sandbox.local.execution import internal_error_report
from tests.support import several_answers
from tests.support.replies import reasons
from tests.support.sandboxes import Counting

LIMITS = limits_of_solutions(Limits())
TABLE = tomllib.loads((Path(__file__).parent / "tautologies.toml").read_text())["cases"]
SQUARE = "def f(x=3):\n    return x * x"


def problem_of(solution: str, examples: tuple[str, ...] = ()) -> Problem:
    return Problem("p", "def f(x): ...", "f", solution, (GoldenCase("f(1)", "1"),), examples=examples)


def harness(*expressions: str) -> list[Call]:
    return [Call(expression, ("import math",), Place.HARNESS) for expression in expressions]


def changed(sandbox: Sandbox, solution: str, expressions: Iterable[str]) -> dict[str, ChangeEvidence]:
    values = SolutionValues(sandbox, LIMITS, finds_vacuous=True)
    (answers,) = values.answers([(problem_of(solution), harness(*expressions))])
    return {call.expression: evidence.change_evidence for call, evidence in answers.items()}


def judged(sandbox: Sandbox, reply: str, rules: str = "fixed", examples: tuple[str, ...] = ()) -> ValidSuite:
    (report,) = several_answers.judged(sandbox, problem_of(SQUARE, examples), [SQUARE], [reply], rules=preset(rules))
    return report.suites[0].suite


@pytest.mark.parametrize("row", TABLE, ids=[row["solution"].split("\n")[-1].strip() for row in TABLE])
def test_the_table_of_tautologies_and_real_tests(sandbox: Sandbox, row: dict[str, list[str]]) -> None:
    found = changed(sandbox, str(row["solution"]), [*row["vacuous"], *row["kept"]])
    assert [each for each, under in found.items() if under.is_vacuous] == row["vacuous"]


def test_at_least_twelve_changes_are_tried(sandbox: Sandbox) -> None:
    (found,) = changed(sandbox, SQUARE, ["f() == f() + 0"]).values()
    assert found.n_true >= 12
    assert found.n_false == 0
    assert N_DECISIVE < N_CHANGES


def test_no_program_runs_for_it_and_equal_cases_cost_once(sandbox: Sandbox) -> None:
    counting = Counting(sandbox)
    values = SolutionValues(counting, LIMITS, finds_vacuous=True)
    asked = [(problem_of(SQUARE), harness("f() == f() + 0", "f(2) == 4 or f(2) == 4.0"))]
    first = values.answers(asked)
    assert [job.program == SQUARE for job in counting.jobs] == [True] * 2 + [False] * 3
    assert values.answers(asked) == first
    assert len(counting.jobs) == 5


def test_what_has_no_record_or_no_plain_answer_is_not_vacuous(sandbox: Sandbox) -> None:
    expressions = ["1 + 1 == 2", "f(0) != 'xyzzy'", "f(1) is f"]
    found = changed(sandbox, "def f(x):\n    return f if x else object()", expressions)
    assert {text: under.is_vacuous for text, under in found.items()} == dict.fromkeys(expressions, False)


HANGING = [f"sum(1 for _ in range(f({n}) * 2**20)) >= 0" for n in range(3)]
EXITING = ["(lambda y: [y] * (y * 10**7) if y > 10**9 else y)(f(2)) is not None or f(2) is None"]


@pytest.mark.slow
def test_cases_that_hang_or_die_under_a_change_decide_about_no_others(sandbox: Sandbox) -> None:
    others = ["f() == f() + 0", "f(7) == 49 or f(7) == 50"]
    found = changed(sandbox, SQUARE, [*HANGING, *EXITING, *others])
    assert found[others[0]].is_vacuous
    assert found[others[1]].n_false > 0
    assert all(found[each].n_true for each in HANGING[1:])  # the small answers are tried all the same


def test_a_failed_sandbox_makes_nothing_vacuous_and_is_not_remembered(sandbox: Sandbox) -> None:
    failing = FailingOnRecords(sandbox)
    values = SolutionValues(failing, LIMITS, finds_vacuous=True)
    asked = [(problem_of(SQUARE), harness("f() == f() + 0"))]
    (answers,) = values.answers(asked)
    (evidence,) = answers.values()
    assert not evidence.change_evidence.is_vacuous
    assert not evidence.internal_error
    failing.fails = False
    (answers,) = values.answers(asked)
    assert [each.change_evidence.is_vacuous for each in answers.values()] == [True]


def test_a_vacuous_case_is_invalid_and_takes_no_other_ones_place(sandbox: Sandbox) -> None:
    suite = judged(sandbox, "assert f(5) == f(5) + 0\nassert f(5) > 20\nassert f(2) == 4\n")
    assert [case.case.expression for case in suite.cases] == ["bool(f(5) > 20)", "f(2)"]
    assert reasons(suite) == [RejectionReason.VACUOUS]
    assert suite.n_invalid == 1


def test_the_rule_is_off_in_paper_and_release_and_on_in_what_derives_from_fixed(sandbox: Sandbox) -> None:
    assert {name for name, rules in PRESETS.items() if not rules.drop_vacuous} == {"paper", "release"}
    assert reasons(judged(sandbox, "assert f(5) == f(5) + 0", "paper")) == []


@pytest.mark.parametrize(
    ("reply", "is_example"),
    [
        ("f(2) == 4", True),
        ("f(3) == 9", False),  # the statement says something else
        *(("f(2) + 1 == 5", True), ("f(2) < f(4)", True), ("f(2) < f(5)", False), ("f(4) == 16", True)),
        ("f(6) == 36", False),
    ],
)
def test_what_the_examples_state_is_marked(sandbox: Sandbox, reply: str, is_example: bool) -> None:
    examples = ("assert f(2) == 4", "assert f(3) == 8", "assert abs(f(4) - 16) < 1")
    assert [case.is_example for case in judged(sandbox, f"assert {reply}", examples=examples).cases] == [is_example]


SORT = "def f(items):\n    return sorted(items)"
SEEING = ["(lambda x: (f(x), x))([2, 1]) == ([1, 2], [2, 1])", "[f(x) + x for x in [[2, 1]]] == [[1, 2, 2, 1]]"]
BLIND = ["[f(x) for x in [[2, 1]]] == [[1, 2]]", "(lambda x: f(x))([2, 1]) == [1, 2]", "f(list((2, 1))) == [1, 2]"]


def kept(sandbox: Sandbox, solution: str, *conditions: str, rules: str = "fixed") -> list[str]:
    """Return the conditions of a suite that count."""
    text = "\n".join(f"assert {each}" for each in conditions)
    (report,) = several_answers.judged(sandbox, problem_of(solution), [solution], [text], rules=preset(rules))
    found = report.suites[0].suite
    assert set(reasons(found)) <= {RejectionReason.DUPLICATE}
    return [conditions[case.case.line - 2] for case in found.cases]


def test_a_call_counts_once_however_it_is_made(sandbox: Sandbox) -> None:
    ways = ["f(x=17) == 289", "[f(i) for i in [17]] == [289]", "f(34 // 2) == 289", "f(*[17]) == 289", "f(17.0) == 289"]
    assert kept(sandbox, SQUARE, "f(17) == 289", *ways) == ["f(17) == 289", "f(17.0) == 289"]
    assert kept(sandbox, SQUARE, *ways[1:], "f(17) == 289") == ["f(17.0) == 289", "f(17) == 289"]
    assert kept(sandbox, SQUARE, "f(*[17]) > 0", *ways[1:3]) == [ways[1]]  # the equality says more
    assert kept(sandbox, SQUARE, "f(17) == 289", *ways, rules="paper") == ["f(17) == 289", *ways]


def test_what_becomes_of_arguments_is_a_question_of_its_own(sandbox: Sandbox) -> None:
    assert kept(sandbox, SORT, "f([2, 1]) == [1, 2]", *SEEING, *BLIND) == ["f([2, 1]) == [1, 2]", SEEING[0]]
    found = changed(sandbox, SORT, [*SEEING, *BLIND])
    assert [each for each, under in found.items() if not under.sees_arguments] == BLIND[:2]  # the last names nothing


def test_an_example_in_other_words_is_an_example(sandbox: Sandbox) -> None:
    examples = ("assert f(2) == 4", "assert f(x=3) == 9")
    for reply in ("f(x=2) == 4", "f(3) == 9", "[f(i) for i in (2, 3)] == [4, 9]", "f(6 // 3) == 4"):
        for rules, is_example in (("fixed", True), ("paper", False)):
            (case,) = judged(sandbox, f"assert {reply}", rules, examples).cases
            assert case.is_example is is_example


class FailingOnRecords(Counting):
    """One that fails where answers are to be changed."""

    fails = True

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        if not (self.fails and any(job.harness.records for job in jobs)):
            return self._sandbox.run(jobs)
        return [internal_error_report(job, "lost") for job in jobs]
