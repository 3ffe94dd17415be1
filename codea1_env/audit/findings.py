"""What came of attacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from codea1_env.sandbox.interface import Guarantee


class AuditResult(StrEnum):
    """How one attack ended, from best to worst."""

    HELD = "held"
    """It gained nothing, and nothing remains of it."""
    WRONG_RESULT = "wrong_result"
    """None of the worse ones, but not what must come out: another kind of outcome, or the sandbox takes the blame."""
    LEFT_BEHIND = "left_behind"
    """A process, a file or a listening socket remains of it."""
    ESCAPED = "escaped"
    """It reached what it must not: the host, another job, the sandbox itself, the solution."""
    FORGED = "forged"
    """A verdict is not true: a wrong answer counts as right, or a right program or an honest suite pays for it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one attack gained."""

    attack: str
    result: AuditResult
    sentence: str
    """What happened, for people."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What all attacks on one back end gained."""

    sandbox: str
    guarantee: Guarantee
    tier: str
    """Name of the isolation that held; empty where the back end names none."""
    findings: tuple[Finding, ...]
    """In the order of the attacks."""

    @property
    def counts(self) -> dict[AuditResult, int]:
        """How many attacks ended in each way; every way is there."""
        found = Counter(finding.result for finding in self.findings)
        return {result: found[result] for result in AuditResult}

    @property
    def is_sound(self) -> bool:
        """True iff nothing was forged, escaped or left behind."""
        return all(finding.result in (AuditResult.HELD, AuditResult.WRONG_RESULT) for finding in self.findings)
