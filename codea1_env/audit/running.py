"""Runs attacks against a back end and reports the result of each."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from codea1_env.audit.attacks import Attack, Attacks, HostileCandidate, HostileProgram, HostileSuite, load_attacks
from codea1_env.audit.candidate_judging import play_candidate
from codea1_env.audit.findings import AuditReport, AuditResult, Finding
from codea1_env.audit.suite_judging import play_suite
from codea1_env.audit.surroundings import Surroundings
from codea1_env.errors import SandboxError
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.rendering import shortened
from codea1_env.sandbox.interface import Call, Job, JobReport, Sandbox
from codea1_env.sandbox.local import EACH_KIND
from codea1_env.values import describe, encode, equal

_MAX_MESSAGE = 300
_MAX_SHOWN = 60
_MAX_LISTED = 3
_ROUNDS_TO_FILL = 20

# The harmless program after each attack. One attack searches for the text of an earlier job, which this is.
_CANARY = Job("def f(x):\n    'NEEDLE-4711'\n    return x * 2\n", "f", (Call("f(21)"), Call("f('ab')")))
_CANARY_VALUES = (encode(42), encode("abab"))
_BUSY = "def f(x):\n    return sum(range(300_000))\n"


def run_audit(
    sandbox: Sandbox, *, attacks: Attacks | None = None, progress: Callable[[int, int], None] | None = None
) -> AuditReport:
    """Run all attacks, one after the other.

    Args:
        sandbox: the back end.
        attacks: the attacks; by default all of this package.
        progress: called with the number of finished attacks and the number of all attacks.

    Raises:
        SandboxError: the back end gives wrong answers before the first attack.
    """
    findings: list[Finding] = []
    chosen = load_attacks() if attacks is None else attacks
    with Auditor(sandbox) as auditor:
        for finding in map(auditor.try_attack, chosen):
            findings.append(finding)
            if progress is not None:
                progress(len(findings), len(chosen))
        return AuditReport(sandbox.name, sandbox.guarantee, auditor.tier, tuple(findings))


class Auditor:
    """Runs attacks against one back end; use it as a context manager.

    Raises:
        SandboxError: the back end gives wrong answers before the first attack.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self.tier = ""
        self._sandbox = sandbox
        self._surroundings = Surroundings()
        try:
            self._fill()
            if fault := self._canary_fault():
                raise SandboxError(f"{sandbox.name}: before any attack, {fault}")
        except BaseException:
            self._surroundings.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._surroundings.__exit__(*exception)

    def try_attack(self, attack: Attack) -> Finding:
        """Run an attack, then a harmless program, then check the machine; return the worst result."""
        self._surroundings.mark()
        try:
            play = next(_PLAYED[kind] for kind in type(attack).__mro__ if kind in _PLAYED)
            result, sentence = play(attack, self._sandbox, self._surroundings.secret)
        except SandboxError as error:
            result, sentence = AuditResult.ESCAPED, f"it ended the sandbox: {error}"
        if fault := self._canary_fault():
            result, sentence = _worse(result, sentence, AuditResult.ESCAPED, f"after it, {fault}")
        if left := self._surroundings.changes():
            result, sentence = _worse(result, sentence, AuditResult.LEFT_BEHIND, _list_sentences(left))
        return Finding(attack.name, result, sentence)

    def _canary_fault(self) -> str:
        """Run a harmless program; return what is wrong with its answers, empty if they are right."""
        try:
            report = self._sandbox.run([_CANARY])[0]
        except SandboxError as error:
            return f"a harmless program is not run: {error}"
        self.tier = report.tier
        if tuple(outcome.value for outcome in report.outcomes) == _CANARY_VALUES:
            return ""
        outcomes = ", ".join(outcome.summary or "another value" for outcome in report.outcomes)
        return f"a harmless program gets wrong answers ({outcomes})"

    def _fill(self) -> None:
        """Make the back end start all its permanent processes, so that none of them counts as left behind later."""
        busy = [Job(f"{_BUSY}{kind}", "f", (Call("f(1)"),)) for kind in EACH_KIND for _ in range(8)]
        self._sandbox.run(busy)
        for _ in range(_ROUNDS_TO_FILL):
            if not self._surroundings.mark():
                return
            self._sandbox.run(busy)


def _play_program(attack: HostileProgram, sandbox: Sandbox, secret: str) -> tuple[AuditResult, str]:
    (report,) = sandbox.run([attack.to_job()])
    for index, outcome in enumerate(report.outcomes):
        if attack.right and _has(outcome, attack.right[index]):
            return AuditResult.FORGED, f"{attack.calls[index]} counts as {attack.right[index]}"
    for index, outcome in enumerate(report.outcomes):
        if attack.evidence and outcome.value is not None and not _has(outcome, attack.evidence[index]):
            return AuditResult.ESCAPED, f"{attack.calls[index]} reached {describe(outcome.value)}"
    if secret in repr(report):
        return AuditResult.ESCAPED, "it read a file of the host"
    faults = list(_faults(attack, report))
    if faults:
        return AuditResult.WRONG_RESULT, faults[0]
    return AuditResult.HELD, ", ".join(dict.fromkeys(map(_describe_outcome, report.outcomes)))


_PLAYED: Mapping[type[Attack], Callable[[Any, Sandbox, str], tuple[AuditResult, str]]] = {
    HostileProgram: _play_program,
    HostileSuite: play_suite,
    HostileCandidate: play_candidate,
}


def _faults(attack: HostileProgram, report: JobReport) -> Iterator[str]:
    for call, outcome in (("loading", report.load), *zip(attack.calls, report.outcomes, strict=True)):
        if outcome.kind is OutcomeKind.INTERNAL_ERROR:
            yield f"{call} counts as the sandbox's own failure: {outcome.summary}"
        if not (outcome.message + outcome.error_type).isprintable() or len(outcome.message) > _MAX_MESSAGE:
            yield f"{call} has a message that cannot be printed"
    for index, outcome in enumerate(report.outcomes):
        if attack.outcomes and outcome.kind not in attack.outcomes:
            yield f"{attack.calls[index]} ended as {outcome.kind}: {_describe_outcome(outcome)}"
        for stated in (attack.evidence, attack.values):
            if stated and not _has(outcome, stated[index]):
                yield f"{attack.calls[index]} is not {stated[index]}: {_describe_outcome(outcome)}"


def _has(outcome: Outcome, source: str) -> bool:
    return outcome.value is not None and equal(outcome.value, encode(ast.literal_eval(source)), nan_equal=True)


def _describe_outcome(outcome: Outcome) -> str:
    return shortened(outcome.summary if outcome.value is None else f"returned {describe(outcome.value)}", _MAX_SHOWN)


def _list_sentences(sentences: Sequence[str]) -> str:
    more = f"; and {len(sentences) - _MAX_LISTED} more" if len(sentences) > _MAX_LISTED else ""
    return "; ".join(sentences[:_MAX_LISTED]) + more


def _worse(result: AuditResult, sentence: str, other: AuditResult, more: str) -> tuple[AuditResult, str]:
    if result is AuditResult.HELD:
        return other, more
    return max(result, other, key=list(AuditResult).index), f"{sentence}; {more}"
