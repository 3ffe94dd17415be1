"""Other right answers: replaces each answer, and each prediction, that a problem accepts by the solution's answer.

Everything that compares values afterwards, such as verdicts, golden tests and selection, then needs no rule of its own.
Answers are values of the entry point: of a direct call, of encoded arguments, or of a harness expression that is a call
of the entry point as a whole. The value of any other expression is compared as it is.

Values are compared here under an order or a tolerance. A checker is a program of the problem's author: it runs in the
sandbox, as its own job, in no process with a candidate, and gets plain data only. Each program's answers have their own
job, so no program's answer can use up the checker's resources for another one. A checker that raises, hangs, or returns
anything but True or False about an answer is asked about the solution's own answer to the same arguments. If it knows
that one, the other answer is wrong, since no right answer is one on which the problem's own checker fails; if it fails
again, the outcome is an INTERNAL_ERROR, which is masked and no verdict about anyone. An answer that is far longer than
the solution's, or whose bytes cannot be decoded, is wrong without a check.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from codea1_env import values
from codea1_env.facts.answers import CHECK, Comparison, ValueBudget, nearly_equal_texts
from codea1_env.facts.submissions import Suite
from codea1_env.facts.verdicts import EntryPointCall, Outcome, OutcomeKind
from codea1_env.judging.jobs import Terms, call_of_case
from codea1_env.problems.problem import Problem
from codea1_env.python_text import UnreadableError, parse, remembered_up_to
from codea1_env.rules.canonical_calls import parameters_of
from codea1_env.rules.reading.direct_calls import is_call_of, is_literal
from codea1_env.rules.reading.literals import LiteralError, encoded_literal
from codea1_env.rules.validation import SolutionEvidence
from codea1_env.sandbox.interface import Call, Job, JobReport, Limits, Place
from codea1_env.values import tree

_ENTRY = "checked_answer"
_WRAPPER = """

def {entry}(args, kwargs, expected, answer):
    def arguments({parameters}):
        return {names}
    return {check}(arguments(*args, **kwargs), expected, answer)
"""
_TRUE, _FALSE = values.encode(True), values.encode(False)
_NOT_SENDABLE = "an argument that the problem's checker cannot get"
_FREE_BYTES, _TIMES_LONGER = 2048, 16  # an answer that is longer could use up a checker's time


class AnswerPair(NamedTuple):
    """A program's answer and the solution's, both encoded."""

    arguments: bytes
    """Encoded pair of positional and keyword arguments."""
    expected: bytes
    actual: bytes

    def decide(self, is_right: bool) -> Outcome:
        """Return the outcome of the program's answer: the expected value if it is right, else its own."""
        return Outcome(OutcomeKind.VALUE, self.expected if is_right else self.actual)


@dataclass(frozen=True, slots=True)
class AnsweredCalls:
    """The report on one program's calls of one problem."""

    problem: Problem
    calls: tuple[Call, ...]
    expected: tuple[bytes | None, ...]
    """One per call: the right value, encoded; None where it is unknown."""
    report: JobReport

    def pairs(self) -> Iterator[tuple[int, AnswerPair]]:
        """Yield the answers that differ from the expected ones, each with the position of its call."""
        budget = ValueBudget()
        for position, (call, expected) in enumerate(zip(self.calls, self.expected, strict=True)):
            outcome = self.report.outcomes[position]
            if expected is None or outcome.value is None or outcome.value == expected:
                continue
            if budget.take(outcome, Outcome(OutcomeKind.VALUE, expected)) is outcome:
                records = self.report.entry_point_calls
                arguments = arguments_of(call, self.problem.entry_point, records[position] if records else ())
                if arguments is not None:
                    yield position, AnswerPair(arguments, expected, outcome.value)


def accept_right_answers(answered: Sequence[AnsweredCalls], terms: Terms) -> list[JobReport]:
    """Return the reports, with the solution's answer in place of each other right one.

    Args:
        answered: one per program; those of problems without rules of answers are returned as they are.
        terms: where checkers run, what they may use per answer, and how the ruleset compares values.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    judged = _judge_differences(answered, terms)
    return [
        replace(each.report, outcomes=tuple(outcomes.get(n, own) for n, own in enumerate(each.report.outcomes)))
        if outcomes
        else each.report
        for each, outcomes in zip(answered, judged, strict=True)
    ]


def _judge_differences(batches: Sequence[AnsweredCalls | SuiteEvidence], terms: Terms) -> list[dict[int, Outcome]]:
    """Return for each batch the outcomes of the answers that differ, by position.

    Args:
        batches: the answers to compare. Where the problem has no rules of answers, no outcome is returned.
        terms: where checkers run, what they may use per answer, and how the ruleset compares values.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    pairs_of = [dict(each.pairs()) if each.problem.answers.accepts_others else {} for each in batches]
    questions = [(each.problem, list(pairs.values())) for each, pairs in zip(batches, pairs_of, strict=True)]
    judged = judge_answers(questions, terms) if any(pairs_of) else [[] for _ in batches]
    return [dict(zip(pairs, outcomes, strict=True)) for pairs, outcomes in zip(pairs_of, judged, strict=True)]


def judge_answers(batches: Sequence[tuple[Problem, Sequence[AnswerPair]]], terms: Terms) -> list[list[Outcome]]:
    """Return the outcome of each answer: the expected value if it is right, its own value if it is wrong.

    An answer that equals the expected one under the problem's order and tolerance is right; so is one that its checker
    accepts. An answer on which the checker fails is wrong, unless it also fails on the expected one: then the outcome
    is an INTERNAL_ERROR.

    Args:
        batches: a problem and answers of one program each; a checker runs once per batch.
        terms: where checkers run, what they may use per answer, and how the ruleset compares values.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    answers = [[_compare(pair, problem, terms.comparison) for pair in pairs] for problem, pairs in batches]
    open_pairs = [
        [n for n, pair in enumerate(pairs) if outcomes[n].value != pair.expected and _is_checked(pair)]
        if problem.answers.checker
        else []
        for (problem, pairs), outcomes in zip(batches, answers, strict=True)
    ]
    jobs = [
        checker_job(problem, [pairs[n] for n in positions], terms.limits)
        for (problem, pairs), positions in zip(batches, open_pairs, strict=True)
        if positions
    ]
    reports = iter(terms.sandbox.run(jobs) if jobs else ())
    doubted = list[_FailedChecks]()
    for (problem, pairs), positions, outcomes in zip(batches, open_pairs, answers, strict=True):
        said = dict(zip(positions, next(reports).outcomes if positions else (), strict=True))
        failed = {}
        for n, answer in said.items():
            fault = "" if answer.error_type == values.Malformed.__name__ else checker_fault(answer)
            failure = Outcome(OutcomeKind.INTERNAL_ERROR, message=fault[:300])
            outcomes[n] = failure if fault else pairs[n].decide(answer.value == _TRUE)
            if fault and answer.kind is not OutcomeKind.INTERNAL_ERROR:
                failed[n] = answer
        if failed:
            doubted.append(_FailedChecks(problem, pairs, failed, outcomes))
    again = terms.sandbox.run([each.job(terms.limits) for each in doubted]) if doubted else []
    for each, report in zip(doubted, again, strict=True):
        each.settle(report)
    return answers


class _FailedChecks(NamedTuple):
    """The answers of one program on which a checker has failed."""

    problem: Problem
    pairs: Sequence[AnswerPair]
    failed: Mapping[int, Outcome]
    """By position: what was said of each."""
    outcomes: list[Outcome]
    """By position: changed by `settle`."""

    def job(self, limits: Limits) -> Job:
        """Return the job that asks about the solution's answers, then about those to which others left no time."""
        own = [self.pairs[n]._replace(actual=self.pairs[n].expected) for n in self.failed]
        return checker_job(self.problem, [*own, *(self.pairs[n] for n in self._unasked)], limits)

    @property
    def _unasked(self) -> list[int]:
        return [n for n, said in self.failed.items() if said.kind is OutcomeKind.NOT_RUN]

    def settle(self, report: JobReport) -> None:
        """Replace each outcome, unless the checker has failed on the solution's answer, too."""
        of_own = dict(zip(self.failed, report.outcomes, strict=False))
        again = dict(zip(self._unasked, report.outcomes[len(self.failed) :], strict=True))
        for n, said in self.failed.items():
            last = again.get(n, said)
            if not checker_fault(of_own[n]) and last.kind is not OutcomeKind.INTERNAL_ERROR:
                self.outcomes[n] = self.pairs[n].decide(last.value == _TRUE)


def checker_job(problem: Problem, pairs: Sequence[AnswerPair], limits: Limits) -> Job:
    """Return the job in which a problem's checker answers True or False about each pair."""
    calls = []
    for pair in pairs:  # (args, kwargs, expected, answer), and no keyword arguments
        args_and_kwargs = pair.arguments.removeprefix(b'{"t":[').removesuffix(b"]}")
        four = b'{"t":[{"t":[%b,%b,%b]},{"d":[]}]}' % (args_and_kwargs, pair.expected, pair.actual)
        calls.append(Call(arguments=four))
    program = _checker_program(problem.answers.checker, problem.solution, problem.defined)
    return Job(program, _ENTRY, tuple(calls), problem.imports, limits=limits, problem_id=problem.id)


def checker_fault(said: Outcome) -> str:
    """Return why a checker gave no answer, as a clause; empty if it answered True or False."""
    if said.value in (_TRUE, _FALSE):
        return ""
    if said.value is not None:
        return f"the checker returned {values.describe(said.value)}, not True or False"
    return f"the checker failed: {said.summary}"


def arguments_of(call: Call, entry_point: str, record: Sequence[EntryPointCall] = ()) -> bytes | None:
    """Return the encoded arguments of the call whose answer is the value of `call`; None if its value is not an answer.

    They are empty where they hold a function, so that they cannot be encoded.
    """
    if call.arguments:
        return call.arguments
    if call.place is Place.PROGRAM:
        return _literal_arguments(call.expression, entry_point) or b""
    return record[-1].arguments if record and _is_call(call.expression, entry_point) else None


def _compare(pair: AnswerPair, problem: Problem, comparison: Comparison) -> Outcome:
    rules = problem.answers
    if problem.script and rules.tolerance:
        return pair.decide(nearly_equal_texts(pair.expected, pair.actual, rules.tolerance))
    try:
        is_right = values.equal(
            pair.expected,
            pair.actual,
            rel_tol=max(rules.tolerance, comparison.rel_tol),
            abs_tol=max(rules.tolerance, comparison.abs_tol),
            nan_equal=comparison.nan_equal,
            strict_types=comparison.strict_types,
            unordered_levels=rules.unordered_levels,
            exact_numbers_too=rules.tolerance > 0,
        )
    except values.Malformed:  # the bytes of a record have not been checked before
        is_right = False
    return pair.decide(is_right)


def _is_checked(pair: AnswerPair) -> bool:
    """Whether a checker must answer about a pair; otherwise the answer is wrong.

    It is wrong, too, if the bytes, which a process may have forged, are not arguments and a value within the budget.
    """
    if len(pair.actual) > _FREE_BYTES + _TIMES_LONGER * len(pair.expected):
        return False
    try:
        arguments = tree.parse(pair.arguments)
        tree.parse(pair.actual)
    except values.Malformed:
        return False
    match arguments:
        case tree.Tagged("t", [tree.Tagged("t", _), tree.Tagged("d", _)]):
            return True
    return False


@remembered_up_to(16_384)
def _checker_program(checker: str, solution: str, entry_point: str) -> str:
    known = parameters_of(solution, entry_point)
    parameters, names = ("*args, **kwargs", "(*args, *kwargs.values())") if known is None else _signature(known)
    return checker + _WRAPPER.format(entry=_ENTRY, check=CHECK, parameters=parameters, names=names)


def _signature(parameters: ast.arguments) -> tuple[str, str]:
    """Return parameters without annotations, and the tuple of their values, as source."""
    named = [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]
    starred = [parameters.vararg] if parameters.vararg else []
    for argument in [*named, *starred, *([parameters.kwarg] if parameters.kwarg else [])]:
        argument.annotation = None
    parameters.defaults = [default if is_literal(default) else ast.Constant(None) for default in parameters.defaults]
    parameters.kw_defaults = [d if d is None or is_literal(d) else ast.Constant(None) for d in parameters.kw_defaults]
    names = [argument.arg for argument in named] + [f"*{argument.arg}" for argument in starred]
    names += [f"*{parameters.kwarg.arg}.values()"] if parameters.kwarg else []
    return ast.unparse(parameters), f"({''.join(f'{name}, ' for name in names)})"


@remembered_up_to(1024)
def _literal_arguments(expression: str, entry_point: str) -> bytes | None:
    """Return the encoded arguments of a direct call; None if its text is not a call with literal arguments."""
    node = _expression(expression)
    if node is None or not is_call_of(node, entry_point):
        return None
    try:
        args = b",".join(map(encoded_literal, node.args))
        kwargs = b",".join(b"[%b,%b]" % (values.encode(k.arg), encoded_literal(k.value)) for k in node.keywords)
    except LiteralError:
        return None
    return b'{"t":[{"t":[%b]},{"d":[%b]}]}' % (args, kwargs)


@remembered_up_to(1024)
def _is_call(expression: str, entry_point: str) -> bool:
    node = _expression(expression)
    return node is not None and is_call_of(node, entry_point)


def _expression(text: str) -> ast.expr | None:
    try:
        (statement,) = parse(text).body
    except (UnreadableError, ValueError):
        return None
    return statement.value if isinstance(statement, ast.Expr) else None


@dataclass(frozen=True, slots=True)
class SuiteEvidence:
    """A suite of one problem with the solution's outcomes."""

    problem: Problem
    suite: Suite
    evidence: Sequence[SolutionEvidence]
    """One per case."""

    def pairs(self) -> Iterator[tuple[int, AnswerPair]]:
        """Yield the predictions that differ from the solution's answers, each with the position of its case."""
        for position, (case, item) in enumerate(zip(self.suite.cases, self.evidence, strict=True)):
            expected = item.first.value
            predicted = case.predicted if item.prediction is None else item.prediction.value
            if expected is None or predicted is None or predicted == expected:
                continue
            arguments = arguments_of(call_of_case(case), self.problem.entry_point, item.entry_point_calls)
            if arguments is not None:
                yield position, AnswerPair(arguments, expected, predicted)


def accept_right_predictions(suites: Sequence[SuiteEvidence], terms: Terms) -> list[Sequence[SolutionEvidence]]:
    """Return the evidence of each suite, with the solution's answer as the prediction where the problem accepts it.

    If a checker fails, the prediction's outcome is an INTERNAL_ERROR. If a checker cannot get the arguments of a call,
    the call's outcome is OPAQUE, so that its case is rejected.

    Args:
        suites: suites of any problems; where answers have no rules, the evidence is returned unchanged.
        terms: where checkers run, what they may use per prediction, and how the ruleset compares values.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    suites = [replace(it, evidence=_mark_unsendable(it)) if it.problem.answers.checker else it for it in suites]
    judged = _judge_differences(suites, terms)
    return [
        [item._replace(prediction=replaced[n]) if n in replaced else item for n, item in enumerate(suite.evidence)]
        for suite, replaced in zip(suites, judged, strict=True)
    ]


def _mark_unsendable(suite: SuiteEvidence) -> list[SolutionEvidence]:
    """Return the evidence in which a call is OPAQUE if the problem's checker cannot be given its arguments."""
    marked = []
    for case, item in zip(suite.suite.cases, suite.evidence, strict=True):
        arguments = arguments_of(call_of_case(case), suite.problem.entry_point, item.entry_point_calls)
        is_unsendable = arguments == b"" and item.first.value is not None
        outcome = Outcome(OutcomeKind.OPAQUE, message=_NOT_SENDABLE)
        marked.append(item._replace(first=outcome) if is_unsendable else item)
    return marked
