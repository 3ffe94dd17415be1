"""Every attack on the local sandbox, in two of its tiers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from codea1_env.audit import Auditor, AuditResult, HostileCandidate, HostileProgram, HostileSuite, load_attacks
from codea1_env.sandbox.local import LocalSandbox

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("watches the machine")]

ATTACKS = load_attacks()
# What a process can reach is where tiers differ; how it can end is the same in all.
PROBES = [attack for attack in ATTACKS.programs if attack.evidence or attack.values]


def auditor_in(tier: str) -> Iterator[Auditor]:
    # As in a trainer with much else open: what is inherited has high numbers then.
    with contextlib.ExitStack() as held, LocalSandbox(1, tiers=(tier, "seccomp")) as sandbox:
        for _ in range(300):
            held.enter_context(open(os.devnull))
        if sandbox.tier != tier:
            pytest.skip(f"no {tier} here: {sandbox.refusals}")
        with Auditor(sandbox) as auditor:
            yield auditor


@pytest.fixture(scope="module")
def namespaces() -> Iterator[Auditor]:
    yield from auditor_in("namespaces")


@pytest.fixture(scope="module")
def landlock() -> Iterator[Auditor]:
    yield from auditor_in("landlock")


@pytest.mark.parametrize("attack", tuple(ATTACKS), ids=lambda attack: attack.name)
def test_no_program_suite_or_candidate_gains_anything_or_is_judged_wrongly(
    namespaces: Auditor, attack: HostileProgram | HostileSuite | HostileCandidate
) -> None:
    finding = namespaces.try_attack(attack)
    assert finding.result is AuditResult.HELD, finding.sentence


@pytest.mark.parametrize("attack", PROBES, ids=lambda attack: attack.name)
def test_a_hostile_program_reaches_nothing_without_namespaces_either(landlock: Auditor, attack: HostileProgram) -> None:
    finding = landlock.try_attack(attack)
    assert finding.result is AuditResult.HELD, finding.sentence
