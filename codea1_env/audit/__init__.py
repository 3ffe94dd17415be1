"""Audits a sandbox with attacks: hostile programs, test suites and candidates, which are stored as data.

Each file of `programs/*.toml`, `suites/*.toml` and `candidates/*.toml` contains one attack; `run_audit` runs them all.
`codea1 sandbox audit` shows the results.
"""

from __future__ import annotations

from codea1_env.audit.attacks import (
    Attacks,
    HostileCandidate,
    HostileProgram,
    HostileSuite,
    Testbed,
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
    "HostileCandidate",
    "HostileProgram",
    "HostileSuite",
    "Testbed",
    "Truth",
    "load_attacks",
    "run_audit",
]
