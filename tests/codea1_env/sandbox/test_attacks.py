"""Hostile programs (tests/cases/attacks): nothing forged, nothing reached, nothing left, and the next job is answered.

A case states what it tries, the program, the calls, and what must come of them: `right` are the values of a correct
program, which these must never be able to claim; `outcomes` the kinds that are acceptable; `values` what must be
returned exactly (evidence that an attempt failed, or a right answer that an attack must not spoil).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codea1_env.outcomes import OutcomeKind
from codea1_env.sandbox.interface import Call, Job, JobReport, Limits
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.values import encode, equal

FILES = sorted(Path(__file__).parents[2].glob("cases/attacks/*.toml"))
CASES = {path.stem: tomllib.loads(path.read_text()) for path in FILES}
HONEST = Job("def f(x):\n    'NEEDLE-4711'\n    return x * 2\n", "f", (Call("f(21)"), Call("f('ab')")))
ALL = [("namespaces", name) for name in CASES]
# What a process can reach is where tiers differ; how it can end is the same in all.
PROBES = [("landlock", name) for name, case in CASES.items() if "values" in case]


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[dict[str, LocalSandbox]]:
    found = {tier: LocalSandbox(1, tiers=(tier, "seccomp")) for tier in ("namespaces", "landlock")}
    yield found
    for sandbox in found.values():
        sandbox.close()


@pytest.mark.parametrize(("tier", "name"), ALL + PROBES)
def test_an_attack_gains_nothing_and_leaves_nothing(
    sandboxes: dict[str, LocalSandbox], tier: str, name: str, descendants: Any, left_over: Any
) -> None:
    case, sandbox = CASES[name], sandboxes[tier]
    if sandbox.tier != tier:
        pytest.skip(f"no {tier} here: {sandbox.refusals}")
    assert_honest_is_answered(sandbox)
    before = descendants()
    calls = tuple(Call(expression) for expression in case["calls"])
    report = sandbox.run([Job(case["program"], "f", calls, limits=Limits(**case.get("limits", {})))])[0]
    check(case, report)
    assert_honest_is_answered(sandbox)
    assert left_over(before) == set()


def check(case: dict[str, Any], report: JobReport) -> None:
    kinds = [report.load.kind, *(outcome.kind for outcome in report.outcomes)]
    assert OutcomeKind.INTERNAL_ERROR not in kinds, report
    for outcome, right in zip(report.outcomes, case.get("right", []), strict=bool(case.get("right"))):
        assert outcome.value is None or not equal(outcome.value, encode(eval(right)), nan_equal=True), report
    for outcome in report.outcomes:
        assert "outcomes" not in case or outcome.kind.value in case["outcomes"], report
        assert len(outcome.message) <= 300
        assert outcome.message.isprintable()
        assert outcome.error_type.isprintable()
    if "values" in case:
        assert [outcome.value for outcome in report.outcomes] == [encode(eval(value)) for value in case["values"]], (
            report
        )


def assert_honest_is_answered(sandbox: LocalSandbox) -> None:
    report = sandbox.run([HONEST])[0]
    assert [outcome.value for outcome in report.outcomes] == [b"42", b'"abab"']


def test_each_case_says_what_it_tries_and_what_must_come_of_it() -> None:
    assert len(CASES) >= 25
    for name, case in CASES.items():
        assert case["tries"], name
        assert {"right", "values", "outcomes"} & set(case), name
