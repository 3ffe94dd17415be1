"""Compares the judge with plain Python, on random programs and tests of several kinds.

    python benchmarks/differential_fuzz.py [--kinds KIND ...] [--programs N] [--quick] [--seed N] [--json]

- `asserts`: mutants and variants of solutions, with asserts of 70 forms (`drawn_asserts.py`).
- `numpy`: functions that return arrays and numbers of numpy, with golden harnesses that compare them.
- `in_place`: functions that change their arguments, with asserts on the changes.
- `stdin`: programs on standard input that read, print and end in many ways.
- `checker`: answers of all sorts, judged by checkers, some of which fail.

The judge (rules `fixed`) reads and judges the tests. Plain Python (`plain_python.py`) runs each program with each test
in its own process, where `==` between a call and a literal has the documented tolerance.

If the two disagree, code finds one of the known reasons in the record (`Reason`, docs/rules.md). If there is none, the
exit status is 1, and the full records are printed.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import islice
from textwrap import indent
from typing import Any, TypeAlias

import drawn_arrays
import drawn_asserts
import drawn_checkers
import drawn_in_place
import drawn_scripts
from drawn import LIMITS, Draw, Program, Subject, Test
from measuring import machine, option_parser
from plain_python import Answer, Copies, Ended, Mode, PlainPython, Question

from codea1_env.facts.submissions import Candidate, RejectionReason
from codea1_env.facts.verdicts import Outcome, ProblemReport, Verdict
from codea1_env.judging.golden import (
    GOLDEN_LIMITS,
    ExpectedValues,
    GoldenRun,
    accept_golden_answers,
    golden_jobs,
    golden_results,
)
from codea1_env.judging.judge import Duel, Judge
from codea1_env.rules.funnel import NOT_RIGHT
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox.interface import Call
from codea1_env.sandbox.local import LocalSandbox

DRAWS: Mapping[str, Draw] = {
    "asserts": drawn_asserts.subjects,
    "numpy": drawn_arrays.subjects,
    "in_place": drawn_in_place.subjects,
    "stdin": drawn_scripts.subjects,
    "checker": drawn_checkers.subjects,
}
_BATCH = 12  # problems judged together
_NEAR_LIMIT = 0.1  # share of the limit that a program must use for the limit to be a reason
_LONG = 200  # characters; a report shows 300
_FAULTS_OF_SOLUTIONS = frozenset({*NOT_RIGHT, RejectionReason.UNKNOWABLE})
"""Reasons why a test that holds for the solution in plain Python is not a case here."""
_LIMIT_VERDICTS = frozenset({Verdict.TIME_LIMIT, Verdict.MEMORY_LIMIT, Verdict.OUTPUT_LIMIT})

# -- the verdicts of judge and plain Python, and why they differ --


class Reason(StrEnum):
    """Reasons why the judge differs from plain Python: the known differences of docs/rules.md and docs/problems.md."""

    EQUAL_ANSWERS = "equal answers"
    """The expression has another value, but the program answers all of the solution's calls equally."""
    TOLERANCE = "tolerance"
    """The same, with equality within the tolerance."""
    EQUALITY = "equality"
    """The sides of an equality are compared like values: within the tolerance, and arrays as a whole."""
    SAYS_NOTHING = "says nothing"
    """The case was not run, or it is doubted: it is not evidence."""
    LIMIT = "limit"
    """One of the two exceeded its time or memory, and the other used a large part of it."""
    STATE = "state between asserts"
    """If plain Python runs the other asserts first in the same process, it agrees with the judge."""
    OPAQUE = "opaque value"
    """The program returns a value that is not plain data and cannot be sent between processes."""
    COPIED_ARGUMENTS = "copied arguments"
    """If plain Python copies the arguments of calls, it agrees: a harness does not see how a program changes them."""
    COPIED_BOTH_WAYS = "arguments copied both ways"
    """If it copies arguments, and the changes back after each call, it agrees: later changes have no effect."""
    COPIED_RESULTS = "copied results"
    """If plain Python copies results, too, it agrees: numbers of numpy become Python's, and results share nothing."""
    FAILING_CHECKER = "failing checker"
    """The checker fails on answers to calls that the expression makes, the solution's among them: nobody knows."""
    LONG_ANSWER = "long answer"
    """A checker is not asked about an answer that is far longer than the solution's."""


@dataclass(frozen=True)
class Record:
    """One program with one test."""

    kind: str
    problem: str
    program: str
    """Name of the variant, or the mutation."""
    form: str
    text: str
    judge: str
    """Verdict of the case; for a candidate that does not load, that of the candidate."""
    judged: str
    """The value or error of the candidate."""
    plain: str
    detail: str
    source: str
    reason: Reason | None = None


@dataclass(frozen=True)
class _Pair:
    """One program with one test, and both answers."""

    subject: Subject
    program: Program
    test: Test
    others: tuple[str, ...]
    """Tests that the judge may have run before in the same process."""
    verdict: Verdict
    actual: str
    answer: Answer

    @property
    def differs(self) -> bool:
        if self.answer.ended is Ended.MASKED:
            return self.verdict is not Verdict.INTERNAL_ERROR
        if self.verdict in (Verdict.NOT_RUN, Verdict.INTERNAL_ERROR):
            return True
        return (self.verdict is Verdict.PASSED) is not (self.answer.ended is Ended.PASSED)

    def record(self, kind: str, reason: Reason | None) -> Record:
        return Record(
            kind,
            self.subject.problem.id,
            self.program.what,
            self.test.form,
            self.test.harness or self.test.lines or self.test.text,
            self.verdict.value,
            self.actual,
            self.answer.ended.value,
            self.answer.detail,
            self.program.source,
            reason,
        )

    def question(
        self, mode: Mode = Mode.ASSERT, copies: Copies = Copies.NONE, before: tuple[str, ...] = ()
    ) -> Question:
        """Return another question to plain Python, with more time."""
        asked = self.subject.question(self.test, self.program.source, mode, copies)
        return replace(asked, before=before, cpu_s=4 * LIMITS.cpu_s)

    def of_sides(self) -> list[Question]:
        """Return the question whether the sides of the condition have equal values, if it is an equality."""
        node = ast.parse(self.test.text, mode="eval").body
        if self.test.call or not isinstance(node, ast.Compare) or [type(each) for each in node.ops] != [ast.Eq]:
            return []
        return [replace(self.question(), text=ast.unparse(node.left), expected=ast.unparse(node.comparators[0]))]


@dataclass
class Figures:
    """Numbers of the comparison of one kind."""

    n_programs: int = 0
    n_tests: int = 0
    n_compared: int = 0
    agreed: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    """Tests that hold for the solution but are not cases, by the reason of the rejection."""
    reasons: Counter[str] = field(default_factory=Counter)
    wall_s: float = 0.0


def fuzz(kind: str, n_programs: int, seed: int) -> tuple[list[Record], Figures]:
    """Compare all programs of a kind; return the records that differ, and figures."""
    figures, differing, started = Figures(), [], time.monotonic()
    with PlainPython("numpy") as plain, LocalSandbox() as sandbox:
        judge = Judge(sandbox, preset("fixed"), limits=LIMITS)
        drawn = DRAWS[kind](n_programs, seed, plain)
        subjects = [subject.with_solution() for subject in drawn if subject.programs and subject.tests]
        for start in range(0, len(subjects), _BATCH):
            batch = subjects[start : start + _BATCH]
            pairs = list(_judged(batch, judge, plain, figures))
            figures.n_compared += len(pairs)
            figures.agreed.update(f"{each.test.form}, {each.answer.ended.value}" for each in pairs if not each.differs)
            found = [pair.record(kind, _reason(pair, plain)) for pair in pairs if pair.differs]
            differing += found
            for line in shown(found):
                print(line, file=sys.stderr)
            done = f"{kind}: {start + len(batch)} of {len(subjects)} problems, {figures.n_compared} compared"
            print(f"{done}, {sum(not each.reason for each in differing)} unexplained", file=sys.stderr)
    figures.reasons.update(record.reason.value if record.reason else "unexplained" for record in differing)
    figures.wall_s = round(time.monotonic() - started, 1)
    return differing, figures


def _judged(subjects: Sequence[Subject], judge: Judge, plain: PlainPython, figures: Figures) -> Iterator[_Pair]:
    for subject, found in zip(subjects, _verdicts(subjects, judge, figures), strict=True):
        figures.n_programs += len(subject.programs)
        figures.n_tests += len(subject.tests)
        for program, verdicts in zip(subject.programs, found, strict=True):
            tests = tuple(verdicts)
            answers = plain.answers([subject.question(test, program.source) for test in tests])
            for place, (test, answer) in enumerate(zip(tests, answers, strict=True)):
                before = tuple(each.text for each in (*tests[:place], *tests[place + 1 :]))
                yield _Pair(subject, program, test, before, *verdicts[test], answer)


_Verdicts: TypeAlias = list[dict[Test, tuple[Verdict, str]]]
"""For each program, the verdict and the text beside it of each test that is a case."""


def _verdicts(subjects: Sequence[Subject], judge: Judge, figures: Figures) -> list[_Verdicts]:
    reports = iter(judge.judge([_duel(each, judge) for each in subjects if not each.is_golden]))
    golden = iter(_golden_verdicts([each for each in subjects if each.is_golden], judge))
    return [next(golden) if each.is_golden else _verdicts_of(each, next(reports), figures) for each in subjects]


def _duel(subject: Subject, judge: Judge) -> Duel:
    """Return a duel with one suite per test, so that no test is a duplicate."""
    problem = subject.problem
    suites = [
        read_suite(
            _reply(test),
            judge.rules.reading,
            entry_point=problem.entry_point,
            output=problem.printed,
            forms=problem.calls,
        )
        for test in subject.tests
    ]
    return Duel.crossed(problem, [Candidate(program.source) for program in subject.programs], suites)


def _reply(test: Test) -> str:
    modules = [name for name in ("math", "json") if re.search(rf"\b{name}\.", test.text)]
    imports = "".join(f"import {name}\n" for name in modules) + "import numpy as np\n" * ("np." in test.text)
    return f"```python\n{imports}{test.lines or f'assert {test.text}'}\n```\n"


def _verdicts_of(subject: Subject, report: ProblemReport, figures: Figures) -> _Verdicts:
    verdicts = [
        {
            test: (case.verdict, case.actual) if found.loads else (found.verdict, found.detail)
            for test, suite in zip(subject.tests, found.suites, strict=True)
            for case in suite.cases[:1]
        }
        for found in report.candidates
    ]
    for test, suite in zip(subject.tests, report.candidates[0].suites, strict=True):
        rejections = suite.suite.rejections
        if not suite.cases:
            figures.rejected.update([", ".join(each.reason.value for each in rejections) or "none"])
        # The first candidate is the solution, which passes the test in plain Python.
        if any(each.reason in _FAULTS_OF_SOLUTIONS for each in rejections) and test.predicts_the_solution:
            verdicts[0][test] = Verdict.WRONG_ANSWER, "; ".join(f"{each.reason}: {each.detail}" for each in rejections)
    return verdicts


def _golden_verdicts(subjects: Sequence[Subject], judge: Judge) -> list[_Verdicts]:
    limits = replace(GOLDEN_LIMITS, cpu_s=2 * LIMITS.cpu_s, wall_s=LIMITS.wall_s)
    asked = [(each.problem, golden_jobs(each.problem, it.source, limits)) for each in subjects for it in each.programs]
    reports = iter(judge.sandbox.run([job for _, jobs in asked for job in jobs]))
    runs = [GoldenRun(problem, jobs, tuple(islice(reports, len(jobs)))) for problem, jobs in asked]
    known = ExpectedValues(judge.sandbox).of([each.problem for each in subjects])
    accepted = iter(accept_golden_answers(runs, known, judge.sandbox, judge.rules.comparison))
    return [[_golden(each, next(accepted), known, judge) for _ in each.programs] for each in subjects]


def _golden(
    subject: Subject, run: GoldenRun, known: Mapping[Call, Outcome], judge: Judge
) -> dict[Test, tuple[Verdict, str]]:
    results = golden_results(subject.problem, run.reports, known, judge.rules.comparison)
    return {test: (it.verdict, it.detail) for test, it in zip(subject.tests, results, strict=True)}


def _reason(pair: _Pair, plain: PlainPython) -> Reason | None:
    """Return the first reason that the record shows; None if there is none, or if the judge itself failed."""
    passed = pair.verdict is Verdict.PASSED
    found = None
    if pair.verdict is Verdict.NOT_RUN:
        found = Reason.SAYS_NOTHING
    elif pair.verdict is Verdict.INTERNAL_ERROR:
        answer = plain.answers([pair.question(Mode.ANSWERS)])[0]
        found = Reason.FAILING_CHECKER if answer.ended is Ended.MASKED else None
    elif passed and (alike := _alike(pair, plain)):
        found = alike
    elif _is_at_limit(pair):
        found = Reason.LIMIT
    elif not passed and pair.answer.opaque:
        found = Reason.OPAQUE
    elif not passed and pair.subject.problem.answers.checker and len(pair.actual) > _LONG:
        found = Reason.LONG_ANSWER
    else:
        is_trusted = pair.subject.is_golden and not pair.subject.problem.calls.in_place
        copied = Reason.COPIED_ARGUMENTS if is_trusted else Reason.COPIED_BOTH_WAYS
        back = Copies.ARGUMENTS if is_trusted else Copies.BOTH_WAYS
        # The judge draws an order of the tests of one process; each harness has one of its own.
        others = () if pair.test.harness else pair.others
        orders = (others, others[::-1], *((other,) for other in others)) if others else ()
        again = [
            *((Reason.STATE, pair.question(before=before)) for before in orders),
            (copied, pair.question(copies=back)),
            (Reason.COPIED_RESULTS, pair.question(copies=Copies.RESULTS)),
            *((Reason.EQUALITY, question) for question in pair.of_sides()),
        ]
        answers = zip(again, plain.answers([question for _, question in again]), strict=True)
        found = next((reason for (reason, _), answer in answers if (answer.ended is Ended.PASSED) is passed), None)
    return found


def _alike(pair: _Pair, plain: PlainPython) -> Reason | None:
    """Return the reason if the program answers the solution's calls equally; None for plain and golden tests."""
    if pair.test.harness or pair.test.call.startswith(f"{pair.subject.problem.entry_point}("):
        return None
    found = plain.answers([pair.question(Mode.ANSWERS)])[0]
    return Reason.EQUAL_ANSWERS if found.alike_exactly else Reason.TOLERANCE if found.alike else None


def _is_at_limit(pair: _Pair) -> bool:
    if pair.verdict is Verdict.PASSED:
        return pair.answer.ended is Ended.LIMIT
    used = pair.answer.cpu_s > _NEAR_LIMIT * LIMITS.cpu_s or pair.verdict is not Verdict.TIME_LIMIT
    return pair.verdict in _LIMIT_VERDICTS and used


# -- the command --


def shown(records: Sequence[Record]) -> Iterator[str]:
    """Yield the unexplained records in full."""
    for record in records:
        if record.reason is None:
            yield f"{record.kind}, {record.problem}, {record.program}:\n{indent(record.source, '    | ')}"
            yield indent(record.text, "    > ")
            yield f"    judge: {record.judge} {record.judged}"
            yield f"    plain Python: {record.plain} {record.detail}"


def main() -> None:
    options = arguments()
    about: dict[str, Any] = machine() | {"seed": options.seed}
    records: list[Record] = []
    for kind in options.kinds:
        found, figures = fuzz(kind, 100 if options.quick else options.programs, options.seed)
        records += found
        about[kind] = {name: dict(held) if isinstance(held, Counter) else held for name, held in vars(figures).items()}
    n_unexplained = sum(record.reason is None for record in records)
    if options.json:
        print(json.dumps({"about": about, "differences": [asdict(record) for record in records]}, indent=1))
    else:
        print("\n".join(f"{key}: {value}" for key, value in about.items()))
        print("\n".join(shown(records)))
        n_compared = sum(about[kind]["n_compared"] for kind in options.kinds)
        print(f"{len(records)} of {n_compared} differ, {n_unexplained} of them unexplained")
    sys.exit(bool(n_unexplained))


def arguments() -> argparse.Namespace:
    parser = option_parser(__doc__, json="figures and all records for programs")
    parser.add_argument("--kinds", nargs="+", choices=DRAWS, default=list(DRAWS), help="default all")
    parser.add_argument("--programs", type=int, default=2000, help="of each kind; default 2000")
    parser.add_argument("--quick", action="store_true", help="100 programs of each kind")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    return parser.parse_args()


if __name__ == "__main__":
    main()
