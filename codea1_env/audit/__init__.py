"""The sandbox under attack: hostile programs, test suites and candidates as data, and what runs them.

`programs/*.toml`, `suites/*.toml` and `candidates/*.toml` hold one attack each; `run_audit` plays them all. `codea1
audit` shows the result beside what a grader makes of the same attacks that runs program and tests in one process and
looks at its exit status.
"""

from __future__ import annotations

from codea1_env.audit.attacks import (
    Attacks,
    Ground,
    HostileCandidate,
    HostileProgram,
    HostileSuite,
    Truth,
    load_attacks,
)
from codea1_env.audit.findings import AuditReport, AuditResult, Finding
from codea1_env.audit.running import Auditor, run_audit

__all__ = [
    "Attacks",
    "AuditReport",
    "AuditResult",
    "Auditor",
    "Finding",
    "Ground",
    "HostileCandidate",
    "HostileProgram",
    "HostileSuite",
    "Truth",
    "load_attacks",
    "run_audit",
]
