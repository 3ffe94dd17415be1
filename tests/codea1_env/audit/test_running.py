"""An audit reports what a weak back end lets happen."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from codea1_env.audit import Attacks, AuditResult, load_attacks, run_audit, surroundings
from codea1_env.audit.attacks import NEEDLE, HostileCandidate, HostileProgram, HostileSuite, Truth
from codea1_env.audit.surroundings import MARK
from codea1_env.errors import SandboxError
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.problems.problem import GoldenCase
from codea1_env.sandbox import Job, JobReport, Sandbox
from codea1_env.values import encode
from tests.codea1_env.audit.conftest import Scripted
from tests.support.sandboxes import Wrapper

pytestmark = pytest.mark.xdist_group("watches the machine")

PROBE = HostileProgram("probe", "look around", "def f(x): ...", ("f(1)",), evidence=("[]",))
FORGER = HostileProgram("forger", "forge", "def f(x): ...", ("f(1)", "f(2)"), right=("41", "42"))
SPOILER = HostileProgram("spoiler", "spoil", "def f(x): ...", ("f(1)",), values=("1",))
LOOPER = HostileProgram("looper", "loop", "def f(x): ...", ("f(1)",), outcomes=frozenset({OutcomeKind.TIME_LIMIT}))

TIME_LIMIT = Outcome(OutcomeKind.TIME_LIMIT)


def value(of: object) -> Outcome:
    return Outcome(OutcomeKind.VALUE, encode(of))


def result_of(sandbox: Any, attack: HostileProgram) -> tuple[AuditResult, str]:
    (finding,) = run_audit(sandbox, attacks=Attacks((attack,), ())).findings
    return finding.result, finding.sentence


@pytest.mark.parametrize(
    ("attack", "outcome", "result"),
    [
        (FORGER, value(42), AuditResult.FORGED),
        (FORGER, value(42.0), AuditResult.FORGED),
        (FORGER, value(40), AuditResult.HELD),
        (FORGER, TIME_LIMIT, AuditResult.HELD),
        (PROBE, value([]), AuditResult.HELD),
        (PROBE, value(["/etc/shadow"]), AuditResult.ESCAPED),
        (PROBE, TIME_LIMIT, AuditResult.WRONG_RESULT),
        (SPOILER, value(1), AuditResult.HELD),
        (SPOILER, value(2), AuditResult.WRONG_RESULT),
        (LOOPER, TIME_LIMIT, AuditResult.HELD),
        (LOOPER, Outcome(OutcomeKind.CRASHED), AuditResult.WRONG_RESULT),
        (FORGER, Outcome(OutcomeKind.INTERNAL_ERROR), AuditResult.WRONG_RESULT),
        (FORGER, Outcome(OutcomeKind.ERROR, message="\x1b[2J"), AuditResult.WRONG_RESULT),
        (FORGER, Outcome(OutcomeKind.ERROR, message="x" * 301), AuditResult.WRONG_RESULT),
    ],
)
def test_each_way_to_end_has_its_result(attack: HostileProgram, outcome: Outcome, result: AuditResult) -> None:
    found, sentence = result_of(Scripted(lambda job, call: outcome), attack)
    assert found is result, sentence
    assert sentence


def test_a_long_answer_is_shown_with_both_of_its_ends() -> None:
    result, sentence = result_of(Scripted(lambda job, call: value([1, *range(40), 2])), SPOILER)
    assert result is AuditResult.WRONG_RESULT
    assert sentence == "f(1) is not 1: returned [1, 0, 1, 2, 3, 4, 5,…3, 34, 35, 36, 37, 38, 39, 2]"


def test_the_host_s_secret_in_a_value_is_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    begin = surroundings.Surroundings.__init__
    monkeypatch.setattr(surroundings.Surroundings, "__init__", lambda self: (begin(self), found.append(self.secret))[0])
    assert result_of(Scripted(lambda job, call: value(found[0])), LOOPER)[0] is AuditResult.ESCAPED


def test_what_is_left_behind_is_found_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = partial(surroundings.Surroundings, wait_s=0.2)
    monkeypatch.setattr("codea1_env.audit.running.Surroundings", quick)

    def leave_a_file(job: Job, call: str) -> Outcome:
        tempfile.mkdtemp(prefix=MARK)
        return TIME_LIMIT

    result, sentence = result_of(Scripted(leave_a_file), LOOPER)
    assert result is AuditResult.LEFT_BEHIND
    assert MARK in sentence
    children = []

    def leave_a_process(job: Job, call: str) -> Outcome:
        children.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return value(42)  # a forged verdict is worse, and both are told

    try:
        result, sentence = result_of(Scripted(leave_a_process), FORGER)
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert result is AuditResult.FORGED
    assert f"process {children[0].pid} " in sentence


class Fragile(Wrapper):
    """A back end that answers wrongly, or not at all, from a certain job on."""

    def __init__(self, inner: Any, n_good: int, *, ends: bool) -> None:
        super().__init__(inner)
        self._n_good, self._ends, self._n_runs = n_good, ends, 0

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        self._n_runs += 1
        if self._n_runs > self._n_good:
            if self._ends:
                raise SandboxError("gone")
            return [JobReport(value(None), (TIME_LIMIT,) * len(job.calls)) for job in jobs]
        return super().run(jobs)


@pytest.mark.parametrize(
    ("n_good", "ends", "said"),
    [
        # Filling, canary, attack; then the canary again, which is not served as before.
        (3, False, "harmless program"),
        (3, True, "harmless program"),
        (2, True, "it ended the sandbox: gone"),
    ],
)
def test_an_attack_that_ends_the_sandbox_or_its_service_has_escaped(n_good: int, ends: bool, said: str) -> None:
    result, sentence = result_of(Fragile(Scripted(lambda job, call: TIME_LIMIT), n_good, ends=ends), LOOPER)
    assert result is AuditResult.ESCAPED
    assert said in sentence


def test_a_sandbox_that_never_answers_is_no_finding() -> None:
    with pytest.raises(SandboxError, match="before any attack"):
        run_audit(Fragile(Scripted(lambda job, call: TIME_LIMIT), 1, ends=False), attacks=Attacks((LOOPER,), ()))


def test_a_report_counts_and_is_sound_as_long_as_nobody_gains_or_leaves_anything() -> None:
    told = []
    sandbox = Scripted(lambda job, call: value(42) if call == "f(2)" else TIME_LIMIT)
    report = run_audit(sandbox, attacks=Attacks((LOOPER, PROBE), ()), progress=lambda *at: told.append(at))
    assert report.is_sound
    assert report.counts[AuditResult.HELD] == report.counts[AuditResult.WRONG_RESULT] == 1
    assert sum(report.counts.values()) == 2
    assert told == [(1, 2), (2, 2)]
    assert not run_audit(sandbox, attacks=Attacks((LOOPER, FORGER), ())).is_sound


Change = Callable[[Job, str, Outcome], Outcome]


class Tampering(Wrapper):
    """The real sandbox, with some answers changed on their way out."""

    def __init__(self, inner: Sandbox, change: Change) -> None:
        super().__init__(inner)
        self._change = change

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        return [self._changed(job, report) for job, report in zip(jobs, super().run(jobs), strict=True)]

    def _changed(self, job: Job, report: JobReport) -> JobReport:
        pairs = zip(job.calls, report.outcomes, strict=True)
        return JobReport(report.load, tuple(self._change(job, call.expression, outcome) for call, outcome in pairs))


def audited(sandbox: Sandbox, change: Change, *, suite: HostileSuite | None = None, **candidate: Any) -> str:
    """What an audit says of a suite, or of the candidate with other fields."""
    attacks = Attacks((), (suite,)) if suite else Attacks(candidates=(replace(CANDIDATE, **candidate),))
    (finding,) = run_audit(Tampering(sandbox, change), attacks=attacks).findings
    return f"{finding.result}: {finding.sentence}"


TESTBED = next(suite.testbed for suite in load_attacks().suites if suite.testbed.problem.entry_point == "total")
SUITE = HostileSuite("suite", "be a suite", TESTBED, "assert total(7) == 28\nassert total(3) == 6", 2, 1, {})


def unchanged(job: Job, call: str, outcome: Outcome) -> Outcome:
    return outcome


def is_right(job: Job) -> bool:
    return job.program in TESTBED.right


@pytest.mark.parametrize(
    ("change", "other", "said"),
    [
        pytest.param(unchanged, {}, "held: 2 valid", marks=pytest.mark.slow),
        (lambda j, c, o: value(0) if is_right(j) and c == "total(3)" else o, {}, "forged: a right program fails tot"),
        (lambda j, c, o: value(153) if c == "total(17)" else o, {}, "beats a wrong program 0 times instead of 1"),
        (lambda j, c, o: value(NEEDLE) if c == "total(3)" else o, {}, "escaped: it read the sol"),
        (lambda j, c, o: Outcome(OutcomeKind.NOT_RUN) if c == "total(10)" else o, {}, "forged: an honest suite lost"),
        (lambda j, c, o: value(28) if c == "total(7)" else o, {}, "wrong_result: 0 of its cases beat"),
        (unchanged, {"n_valid": 3}, "wrong_result: 2 of its cases are valid, not 3"),
        (unchanged, {"n_beating": 0}, "forged: it is rewarded for 1 cases"),
    ],
)
def test_untrue_verdicts_by_a_suite_are_seen(sandbox: Sandbox, change: Any, other: Any, said: str) -> None:
    assert said in audited(sandbox, change, suite=replace(SUITE, **other))


def test_a_case_that_only_beats_right_programs_when_it_returns_from_the_book_is_seen(sandbox: Sandbox) -> None:
    def change(job: Job, call: str, outcome: Outcome) -> Outcome:
        is_replay = [each.expression for each in job.calls] == ["total(7)"]
        return value(0) if is_right(job) and is_replay else outcome

    assert "once in the Mistake Book, a right program fails total(7)" in audited(sandbox, change, suite=SUITE)


CANDIDATE = HostileCandidate(
    "candidate",
    "be a candidate",
    "def f(x):\n    return x * x\n",
    "def f(x):\n    return 9\n",
    ("assert f(3) == 9", "assert f(2) == 4", "assert f(2) ** f(1) == 4"),
    (Truth.PASSES, Truth.FAILS, Truth.FAILS),
    golden=(GoldenCase("f(3)", "9"), GoldenCase("f(2)", "4")),
    n_golden=1,
)


def of_candidate(job: Job) -> bool:
    return job.program == CANDIDATE.program


@pytest.mark.parametrize(
    ("change", "other", "said"),
    [
        (unchanged, {}, "held: passed, wrong_answer"),
        (lambda j, c, o: value(4) if c == "f(2)" else o, {}, "forged: assert f(2) == 4 is passed"),
        (lambda j, c, o: value(7) if of_candidate(j) else o, {}, "forged: assert f(3) == 9 is failed"),
        (unchanged, {"n_golden": 0}, "forged: it passes 50% of the golden tests"),
        (unchanged, {"n_golden": 2}, "wrong_result: its golden pass rate is 0.5"),
        (unchanged, {"truth": (Truth.PASSES, Truth.FAILS, Truth.DOUBTED)}, "wrong_result: assert f(2) ** f(1) == 4"),
        (lambda j, c, o: Outcome(OutcomeKind.NOT_RUN) if of_candidate(j) else o, {}, "wrong_result: assert f(3)"),
        (lambda j, c, o: Outcome(OutcomeKind.INTERNAL_ERROR) if of_candidate(j) else o, {}, "wrong_result: it counts"),
        (lambda j, c, o: 1 / 0 if of_candidate(j) else o, {}, "wrong_result: the judge raised ZeroDivisionError"),
    ],
)
def test_untrue_verdicts_on_a_candidate_are_seen(sandbox: Sandbox, change: Any, other: Any, said: str) -> None:
    assert audited(sandbox, change, **other).startswith(said)
