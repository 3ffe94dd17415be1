from __future__ import annotations

from collections.abc import Sequence

import pytest

from codea1_agents.checks.sandbox_check import check_sandbox, promise_of
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox import Guarantee, Job, JobReport, Sandbox


class Liar:
    """Says on its first call that all is well, afterwards that nothing is."""

    name = "liar"
    guarantee = Guarantee.TRUSTED_ONLY

    def __init__(self) -> None:
        self.calls = 0

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        self.calls += 1
        kind = OutcomeKind.EXITED if self.calls == 1 else OutcomeKind.CRASHED
        return [JobReport(Outcome(kind), (Outcome(kind),) * len(job.calls), tier="hope") for job in jobs]

    def close(self) -> None:
        pass


@pytest.mark.slow
def test_the_local_sandbox_tells_every_kind_apart_twice(sandbox: Sandbox) -> None:
    found = check_sandbox(sandbox)
    assert {each.expected for each in found} == set(OutcomeKind) - {OutcomeKind.INTERNAL_ERROR}
    assert [each for each in found if not each.ok] == []


def test_a_sandbox_that_changes_its_mind_is_not_ok_and_a_promise_names_guarantee_and_means() -> None:
    found = {each.expected: each for each in check_sandbox(Liar())}
    assert found[OutcomeKind.EXITED].found == (OutcomeKind.EXITED, OutcomeKind.CRASHED)
    assert not any(each.ok for each in found.values())
    sentence = promise_of(Liar()).sentence()
    assert sentence.startswith("liar: trusted only, by hope (")
    assert "not strangers'" in sentence
