"""Runs one hostile candidate: judges it by its asserts as in any round, and compares each verdict with the true one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from codea1_env.audit.attacks import HostileCandidate, Truth
from codea1_env.audit.findings import AuditResult
from codea1_env.errors import SandboxError
from codea1_env.facts.submissions import Candidate, RejectionReason
from codea1_env.facts.verdicts import CandidateReport, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.rendering import shorten
from codea1_env.rules.replies import read_suite
from codea1_env.sandbox.interface import Sandbox

_DOUBTS = frozenset({RejectionReason.FLAKY, RejectionReason.UNKNOWABLE})
_MAX_SHOWN = 60  # characters


def play_candidate(attack: HostileCandidate, sandbox: Sandbox, secret: str) -> tuple[AuditResult, str]:
    """Return the result of the attack, and a sentence about it. `secret` is text in a file of the host.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    suites = tuple(
        read_suite(line, attack.rules.reading, entry_point="f", forms=attack.calls) for line in attack.asserts
    )
    duel = Duel(attack.problem, (Candidate(attack.program),), (suites,))
    judge = Judge(sandbox, attack.rules, limits=attack.limits, golden=bool(attack.golden))
    try:
        (report,) = judge.judge([duel])[0].candidates
    except SandboxError:
        raise
    except Exception as error:  # noqa: BLE001  -- a candidate may provoke any exception
        return AuditResult.WRONG_RESULT, f"the judge raised {type(error).__name__}: {error}"[:300]
    if secret in repr(asdict(report)):
        return AuditResult.ESCAPED, "it read a file of the host"
    words = [  # the verdict on the only assert of each suite, or the reason why it was rejected
        (suite.cases[0].verdict if report.loads else report.verdict).value
        if suite.cases
        else suite.suite.rejections[0].reason.value
        for suite in report.suites
    ]
    if forged := next(_forgeries(attack, report, words), ""):
        return AuditResult.FORGED, forged
    if fault := next(_faults(attack, report, words), ""):
        return AuditResult.WRONG_RESULT, fault
    return AuditResult.HELD, ", ".join(dict.fromkeys(words))


def _forgeries(attack: HostileCandidate, report: CandidateReport, words: Sequence[str]) -> Iterator[str]:
    for line, truth, word in zip(attack.asserts, attack.truth, words, strict=True):
        if truth is Truth.FAILS and word == Verdict.PASSED:
            yield f"{shorten(line, _MAX_SHOWN)} is passed"
        if truth is Truth.PASSES and word in list(Verdict) and Verdict(word).is_failure:
            yield f"{shorten(line, _MAX_SHOWN)} is failed ({word})"
    if attack.golden and (report.golden_pass_rate or 0.0) * len(attack.golden) > attack.n_golden:
        yield f"it passes {report.golden_pass_rate:.0%} of the golden tests"


def _faults(attack: HostileCandidate, report: CandidateReport, words: Sequence[str]) -> Iterator[str]:
    if report.has_internal_error:
        yield "it counts as the sandbox's own failure"
    for line, truth, word in zip(attack.asserts, attack.truth, words, strict=True):
        if not _is_true(truth, word):
            yield f"{shorten(line, _MAX_SHOWN)} is {word}, but the truth is {truth}"
    if attack.golden and report.golden_pass_rate != attack.n_golden / len(attack.golden):
        yield f"its golden pass rate is {report.golden_pass_rate}"


def _is_true(truth: Truth | RejectionReason, word: str) -> bool:
    if truth is Truth.FAILS:
        return word in list(Verdict) and Verdict(word).is_failure
    if truth is Truth.PASSES:
        return word == Verdict.PASSED
    return word in _DOUBTS if truth is Truth.DOUBTED else word == truth
