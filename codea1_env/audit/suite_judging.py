"""Runs one hostile suite: judges right and wrong programs by it and by two honest suites.

The following must be true for every hostile suite: a right program passes all cases, of the hostile suite and of the
honest ones; the honest suites beat a wrong program as if the hostile suite were absent; the hostile suite is rewarded
only for what it has found; the cases that it adds to the Mistake Book never beat a right program; and the report
contains nothing of the solution or the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from codea1_env.audit.attacks import NEEDLE, HostileSuite, Testbed
from codea1_env.audit.findings import AuditResult
from codea1_env.facts.submissions import Candidate, Suite
from codea1_env.facts.verdicts import CandidateReport, CaseReport, ProblemReport, SuiteReport, ValidCase, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.rendering import shorten
from codea1_env.rules.replies import read_suite
from codea1_env.rules.rewards import n_credited, score
from codea1_env.rules.ruleset import PRESETS, preset
from codea1_env.sandbox.interface import Limits, Sandbox

SUITE_LIMITS = Limits(cpu_s=0.2, wall_s=10.0, memory_mb=96, max_restarts=1)
"""Low, so that attacks on the limits take little time."""

_RULES = preset("fixed")


def play_suite(attack: HostileSuite, sandbox: Sandbox, secret: str) -> tuple[AuditResult, str]:
    """Return the result of the attack, and a sentence about it. `secret` is text in a file of the host.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    testbed = attack.testbed
    suites = tuple(_read(reply, testbed) for reply in (testbed.honest[0], attack.reply, testbed.honest[1]))
    report = _judge(testbed, suites, (), sandbox)
    seen = repr([asdict(replace(each, candidate=Candidate(""))) for each in report.candidates])
    if NEEDLE in seen or secret in seen:
        return AuditResult.ESCAPED, "it read the solution" if NEEDLE in seen else "it read a file of the host"
    if forged := next(_forgeries(attack, report), "") or _book_forgery(testbed, report, sandbox):
        return AuditResult.FORGED, forged
    if fault := next(_faults(attack, report), ""):
        return AuditResult.WRONG_RESULT, fault
    return AuditResult.HELD, _summary(report.candidates[0].suites[1])


def _read(reply: str, testbed: Testbed) -> Suite:
    entry_point = testbed.problem.entry_point
    return read_suite(reply, _RULES.reading, entry_point=entry_point, tests_per_suite=_RULES.tests_per_suite)


def _judge(
    testbed: Testbed, suites: tuple[Suite, ...], replayed: tuple[ValidCase, ...], sandbox: Sandbox
) -> ProblemReport:
    candidates = tuple(map(Candidate, (*testbed.right, *testbed.wrong)))
    duel = Duel(testbed.problem, candidates, (suites,) * len(candidates), replayed)
    return Judge(sandbox, _RULES, limits=SUITE_LIMITS).judge([duel])[0]  # a new judge, without cached answers


# -- forged verdicts -------------------------------------------------------------------------------


def _forgeries(attack: HostileSuite, report: ProblemReport) -> Iterator[str]:
    n_right = len(attack.testbed.right)
    for candidate in report.candidates[:n_right]:
        for case in (case for suite in candidate.suites for case in suite.cases):
            if case.verdict.is_failure or case.verdict is Verdict.NOT_RUN:
                yield f"a right program fails {_describe_case(case)}"
    for candidate in report.candidates:
        yield from _harm_to_others(attack.testbed, candidate, is_right=candidate in report.candidates[:n_right])
    for candidate in report.candidates[n_right:]:
        if (n_beating := n_credited(candidate.suites[1].cases)) > attack.n_beating:
            yield f"it is rewarded for {n_beating} cases that beat a wrong program, but has found {attack.n_beating}"
        yield from (f"it earns more under {name} than under fixed" for name in _paying_more(candidate))


def _paying_more(candidate: CandidateReport) -> Iterator[str]:
    """Yield the rules with credit rules that pay the hostile suite more than `fixed` does at their alpha."""
    for name, rules in PRESETS.items():
        if rules.reward.credit != _RULES.reward.credit:
            plain = replace(rules, reward=replace(rules.reward, credit=_RULES.reward.credit))
            earned, at_most = (score(candidate, rule_set).testers[1].value for rule_set in (rules, plain))
            if earned > at_most:
                yield name


def _harm_to_others(testbed: Testbed, candidate: CandidateReport, *, is_right: bool) -> Iterator[str]:
    for suite, n_beating in zip(candidate.suites[::2], testbed.n_beating, strict=True):
        if suite.suite.rejections:
            rejection = suite.suite.rejections[0]
            yield f"an honest suite lost {rejection.source} ({rejection.reason})"
        if not is_right and n_credited(suite.cases) != n_beating:
            yield f"an honest suite beats a wrong program {n_credited(suite.cases)} times instead of {n_beating}"


def _book_forgery(testbed: Testbed, report: ProblemReport, sandbox: Sandbox) -> str:
    """Replay the cases that would enter the Mistake Book, without any suite."""
    beaten = [
        case.case for candidate in report.candidates for case in candidate.suites[1].cases if case.verdict.is_failure
    ]
    if not beaten:
        return ""
    replayed = tuple({(case.case.expression, case.case.imports): case for case in beaten}.values())
    again = _judge(testbed, (), replayed, sandbox)
    for candidate in again.candidates[: len(testbed.right)]:
        for case in candidate.replayed:
            if case.verdict not in (Verdict.PASSED, Verdict.DENIED, Verdict.UNDECIDED):  # those two cost nobody
                return f"once in the Mistake Book, a right program fails {_describe_case(case)}"
    return ""


# -- other faults ----------------------------------------------------------------------------------


def _faults(attack: HostileSuite, report: ProblemReport) -> Iterator[str]:
    suite = report.candidates[-1].suites[1]
    if any(candidate.has_internal_error for candidate in report.candidates):
        yield "it counts as the sandbox's own failure"
    if attack.n_valid is not None and len(suite.suite.cases) != attack.n_valid:
        yield f"{len(suite.suite.cases)} of its cases are valid, not {attack.n_valid}: {_summary(suite)}"
    if attack.n_valid is not None and n_credited(suite.cases) != attack.n_beating:
        yield f"{n_credited(suite.cases)} of its cases beat a wrong program, not {attack.n_beating}"
    reasons = Counter(rejection.reason for rejection in suite.suite.rejections)
    if attack.reasons is not None and reasons != Counter(attack.reasons):
        yield f"its rejections are different: {_summary(suite)}"
    texts = [rejection.detail for rejection in suite.suite.rejections] + [case.actual for case in suite.cases]
    if any(len(text) > 300 for text in texts):
        yield "a text in its report is too long"


def _summary(suite: SuiteReport) -> str:
    reasons = Counter(rejection.reason.value for rejection in suite.suite.rejections)
    rejected: Sequence[str] = [f"{n} {reason}" for reason, n in sorted(reasons.items())]
    return ", ".join([f"{len(suite.suite.cases)} valid", *rejected])


def _describe_case(case: CaseReport) -> str:
    return shorten(f"{case.case.case.expression} ({case.verdict}: {case.actual})", 120)
