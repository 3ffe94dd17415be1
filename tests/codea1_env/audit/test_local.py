"""Every attack on the local sandbox, in two of its tiers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

from codea1_env.audit import Auditor, AuditResult, load_attacks
from tests.support.sandboxes import sandbox_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("watches the machine")]

ATTACKS = load_attacks()
# What a process can reach is where tiers differ; how it can end is the same in all.
PROBES = [attack for attack in ATTACKS.programs if attack.evidence or attack.values]


@pytest.fixture(scope="module")
def auditor(request: pytest.FixtureRequest) -> Iterator[Auditor]:
    # As in a trainer with much else open: what is inherited has high numbers then.
    with contextlib.ExitStack() as held, sandbox_of(request.param) as sandbox:
        for _ in range(300):
            held.enter_context(open(os.devnull))
        with Auditor(sandbox) as auditor:
            yield auditor


@pytest.mark.parametrize(
    ("auditor", "attack"),
    [*(("namespaces", attack) for attack in ATTACKS), *(("landlock", attack) for attack in PROBES)],
    ids=lambda each: getattr(each, "name", each),
    indirect=["auditor"],
)
def test_no_attack_gains_anything_or_is_judged_wrongly(auditor: Auditor, attack: Any) -> None:
    finding = auditor.try_attack(attack)
    assert finding.result is AuditResult.HELD, finding.sentence
