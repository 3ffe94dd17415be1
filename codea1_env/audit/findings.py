"""The results of attacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from codea1_env.sandbox.interface import Guarantee


class AuditResult(StrEnum):
    """The end of one attack, from best to worst."""

    HELD = "held"
    """It gained nothing and left nothing behind."""
    WRONG_RESULT = "wrong_result"
    """None of the worse results, but not the expected one: another kind of outcome, or an internal error."""
    LEFT_BEHIND = "left_behind"
    """It left a process, a file or a listening socket behind."""
    ESCAPED = "escaped"
    """It reached something forbidden: the host, another job, the sandbox itself, the solution."""
    FORGED = "forged"
    """A verdict is wrong: a wrong answer counts as right, or a right program or an honest suite is harmed."""

    @property
    def is_sound(self) -> bool:
        """True iff nothing was forged, escaped or left behind."""
        return self in (AuditResult.HELD, AuditResult.WRONG_RESULT)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one attack."""

    attack: str
    result: AuditResult
    sentence: str
    """Description of what happened, for people."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The results of all attacks on one back end."""

    sandbox: str
    guarantee: Guarantee
    tier: str
    """Name of the isolation in force; empty if the back end does not name it."""
    findings: tuple[Finding, ...]
    """In the order of the attacks."""

    @property
    def counts(self) -> dict[AuditResult, int]:
        """Number of attacks by result; contains every result."""
        n_by_result = Counter(finding.result for finding in self.findings)
        return {result: n_by_result[result] for result in AuditResult}

    @property
    def is_sound(self) -> bool:
        """True iff all results are."""
        return all(finding.result.is_sound for finding in self.findings)
