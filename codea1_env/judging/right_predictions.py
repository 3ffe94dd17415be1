"""Right predictions of testers: replaces each predicted answer that a problem accepts by the solution's answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.facts.submissions import Suite, TestCase
from codea1_env.judging.right_answers import AnswerPair, arguments_of, judged_differences
from codea1_env.judging.solution_values import call_of_case
from codea1_env.problems.problem import Problem
from codea1_env.rules.ruleset import Comparison
from codea1_env.rules.validation import SolutionEvidence
from codea1_env.sandbox.interface import Limits, Sandbox

_NOT_SENDABLE = "an argument that the problem's checker cannot get"


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
            expected, predicted = item.first.value, _predicted(case, item)
            if expected is None or predicted is None or predicted == expected:
                continue
            arguments = arguments_of(call_of_case(case), self.problem.entry_point, item.entry_point_calls)
            if arguments is not None:
                yield position, AnswerPair(arguments, expected, predicted)

    def without_unchecked(self) -> SuiteEvidence:
        """Return a copy in which a call is OPAQUE if the problem's checker cannot be given its arguments."""
        if not self.problem.answers.checker:
            return self
        return replace(self, evidence=list(map(self._as_checked, self.suite.cases, self.evidence)))

    def _as_checked(self, case: TestCase, item: SolutionEvidence) -> SolutionEvidence:
        call = call_of_case(case)
        if item.first.value is None or arguments_of(call, self.problem.entry_point, item.entry_point_calls) != b"":
            return item
        return item._replace(first=Outcome(OutcomeKind.OPAQUE, message=_NOT_SENDABLE))


def accept_right_predictions(
    suites: Sequence[SuiteEvidence], sandbox: Sandbox, limits: Limits, comparison: Comparison
) -> list[Sequence[SolutionEvidence]]:
    """Return the evidence of each suite, with the solution's answer as the prediction where the problem accepts it.

    If a checker fails, the prediction's outcome is an INTERNAL_ERROR. If a checker cannot get the arguments of a call,
    the call's outcome is OPAQUE, so that its case is rejected.

    Args:
        suites: suites of any problems; where answers have no rules, the evidence is returned unchanged.
        sandbox: where checkers run.
        limits: what a checker may use per prediction.
        comparison: how the ruleset compares values.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    suites = [each.without_unchecked() for each in suites]
    judged = judged_differences(suites, sandbox, limits, comparison)
    return [_with_predictions(each.evidence, outcomes) for each, outcomes in zip(suites, judged, strict=True)]


def _predicted(case: TestCase, item: SolutionEvidence) -> bytes | None:
    return case.predicted if item.prediction is None else item.prediction.value


def _with_predictions(
    evidence: Sequence[SolutionEvidence], replaced: Mapping[int, Outcome]
) -> Sequence[SolutionEvidence]:
    return [each._replace(prediction=replaced[n]) if n in replaced else each for n, each in enumerate(evidence)]
