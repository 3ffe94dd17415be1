"""Check the rules of answers of problems: the solution's answers are right, wrong programs fail, checkers never fail.

A checker that raises on some answer lets a candidate or a tester mask its round, so it is tried on odd answers too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from codea1_env import values
from codea1_env.facts.answers import Comparison
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.judging.golden import GOLDEN_LIMITS, GoldenRun, run_golden
from codea1_env.judging.right_answers import AnswerPair, arguments_of, checker_fault, checker_job
from codea1_env.problems.problem import Problem
from codea1_env.sandbox.interface import JobReport, Limits, Sandbox

_N_TRIED = 4  # golden tests whose answers are replaced by odd ones
_ODD_ANSWERS: tuple[object, ...] = (
    *(None, True, 0, -1, 1 << 80, 0.5, float("nan"), float("inf"), 1j, "", "a", b"a", (), [], set(), {}, {"a": [1]}),
    *((1, "a"), [None], ["a", 1], [[]], [[None]], [{}], [0] * 1000, [[[[[[[[]]]]]]]], {1: {2: {3: None}}}, range(3)),
)


def answer_rules_faults(solved: Sequence[GoldenRun], sandbox: Sandbox, comparison: Comparison) -> list[str]:
    """Return what is wrong with the rules of answers of each problem, as a clause; empty if nothing is.

    Args:
        solved: a run of each problem's solution, as the sandbox has reported it.
        sandbox: where checkers and wrong programs run.
        comparison: how the ruleset compares values.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    chosen = [(n, run) for n, run in enumerate(solved) if run.problem.answers.accepts_others]
    of_checkers = _checker_faults([run for _, run in chosen], sandbox)
    of_programs = _program_faults([run.problem for _, run in chosen], sandbox, comparison)
    faults = [""] * len(solved)
    for (n, _), of_checker, of_program in zip(chosen, of_checkers, of_programs, strict=True):
        faults[n] = of_checker or of_program
    return faults


def _checker_faults(runs: Sequence[GoldenRun], sandbox: Sandbox) -> list[str]:
    own = [list(_solution_pairs(run)) for run in runs]
    tried = [[*pairs, *(odd for pair in pairs[:_N_TRIED] for odd in _odd_pairs(pair))] for pairs in own]
    chosen = [n for n, run in enumerate(runs) if run.problem.answers.checker]
    jobs = [checker_job(runs[n].problem, tried[n], Limits()) for n in chosen]
    faults = [""] * len(runs)
    for n, report in zip(chosen, sandbox.run(jobs) if jobs else (), strict=True):
        faults[n] = _checker_fault(tried[n], len(own[n]), report)
    return faults


def _checker_fault(pairs: Sequence[AnswerPair], n_own: int, report: JobReport) -> str:
    """Return what is wrong with a checker that checked the solution's answers, then odd ones."""
    if not report.loaded:
        return f"the checker does not load: {report.load.summary}"
    for pair, said in zip(pairs, report.outcomes, strict=True):
        if said.kind is not OutcomeKind.INTERNAL_ERROR and (fault := checker_fault(said)):
            return (
                f"{fault}, about the answer {_describe_answer(pair)}; it must return True or False for any plain data"
            )
    for pair, said in zip(pairs[:n_own], report.outcomes, strict=False):
        if said.kind is OutcomeKind.VALUE and not _accepts(said):
            return f"the checker rejects the solution's answer {_describe_answer(pair)}"
    return "the checker accepts every answer" if pairs and all(map(_accepts, report.outcomes)) else ""


def _program_faults(problems: Sequence[Problem], sandbox: Sandbox, comparison: Comparison) -> list[str]:
    """Return for each problem which of its wrong programs passes all golden tests."""
    wrong = [(problem, each) for problem in problems if problem.golden for each in problem.wrong_programs]
    findings = run_golden(
        [(problem, each.program) for problem, each in wrong], sandbox, comparison, limits=GOLDEN_LIMITS
    )
    notes = {problem: each.note for (problem, each), run in zip(wrong, findings, strict=True) if run.passed}
    return [f"a wrong program passes all golden tests: {notes[each]}" if each in notes else "" for each in problems]


def _solution_pairs(run: GoldenRun) -> Iterator[AnswerPair]:
    """Yield the solution's answers to the golden value cases that are calls of the entry point."""
    for position, (call, outcome) in enumerate(zip(run.case_calls, run.reports[0].outcomes, strict=False)):
        records = run.reports[0].entry_point_calls
        arguments = arguments_of(call, run.problem.entry_point, records[position] if records else ())
        if arguments is not None and outcome.value is not None:
            yield AnswerPair(arguments, outcome.value, outcome.value)


def _odd_pairs(pair: AnswerPair) -> Iterator[AnswerPair]:
    """Yield the pair with other answers: values of any type, and changes of the solution's answer."""
    for value in _ODD_ANSWERS:
        yield pair._replace(actual=values.encode(value))
    for node in _changes(json.loads(pair.expected)):
        yield pair._replace(actual=json.dumps(node, separators=(",", ":")).encode())


def _changes(node: Any) -> Iterator[Any]:
    """Yield changes of the outermost list, in the form of JSON in which values are encoded."""
    yield [node]
    if isinstance(node, list):
        yield from (
            node[1:],
            node[::-1],
            [*node, *node],
            [None] * len(node),
            ["a"] * len(node),
            [[each] for each in node],
        )


def _accepts(said: Outcome) -> bool:
    return said.value == values.encode(True)


def _describe_answer(pair: AnswerPair) -> str:
    return values.describe(pair.actual)[:100]
