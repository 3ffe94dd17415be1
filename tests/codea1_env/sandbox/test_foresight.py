"""Reading ahead changes nothing but the cost: whatever programs and harnesses do, reports are those of single calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox import Call, Harness, Job, Limits, Place, Sandbox
from codea1_env.sandbox.local.relay import Foresight, ReadAhead, WrongForesight
from codea1_env.sandbox.wire import APPLY, Frame, Tag

N_CALLS = 14
CHECK = (Call("check(candidate)", place=Place.HARNESS),)
LIMITS = Limits(cpu_s=0.4, memory_mb=256)
RIGHT = "def f(x):\n  return [x, 2 * x]\n"

ENDINGS = {
    "right": "return [x, 2 * x]",
    "wrong": "return [x, 0]",
    "an exception": "raise KeyError(x)",
    "an end of iteration": "raise StopIteration",
    "an exit": "raise SystemExit(1)",
    "no memory": "return [0] * 10**10",
    "not sent": "return f",
    "items": "return (y for y in [x, 2 * x])",
    "too large": "return 'x' * 10**6",
    "a hang": "\n    while True: pass",
    "what came before": "return [x, 2 * x, *seen][:2] if len(seen) % 2 else [x, 2 * x, len(seen)]",
}
HARNESSES = {
    "stops at the first failure": "  for x in range(N):\n    assert c(x) == [x, 2 * x], x\n",
    "catches": "  for x in range(N):\n    try: c(x)\n    except Exception as e: assert type(e) is KeyError\n",
    "goes on": "  r = []\n  for x in range(N):\n    try: r += [c(x) == [x, 2 * x]]\n    except Exception: r += [0]\n"
    "  assert all(r), r\n",
    "asks again after a failure": "  for x in range(N):\n    assert c(x) == [x, 2 * x] or c(x + 1) == c(x + 2), x\n",
    "follows answers": "  x = 1\n  for _ in range(N):\n    a = c(x)[1] % 17\n    x = a if type(a) is int else 3\n",
    "leaves off": "  for x in range(N):\n    a = c(x)\n    if a != [x, 2 * x]: return\n",
}
HARNESS = {name: f"N = {N_CALLS}\ndef check(c):\n{body}" for name, body in HARNESSES.items()}


def program(endings: dict[int, str], setup: str = "") -> str:
    branches = "".join(f"  if x == {x}: {ENDINGS[name]}\n" for x, name in endings.items())
    return f"{setup}seen = []\ndef f(x):\n  seen.append(x)\n{branches}  return [x, 2 * x]\n"


@given(
    endings=st.dictionaries(st.integers(0, N_CALLS - 1), st.sampled_from(sorted(ENDINGS)), max_size=3),
    harness=st.sampled_from(sorted(HARNESSES)),
    setup=st.sampled_from(["", "import sys\n"]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_foreseen_harness_reports_as_others(sandbox: Sandbox, endings: Any, harness: str, setup: str) -> None:
    foreseen = Job(RIGHT, "f", CHECK, harness=Harness(HARNESS[harness]), limits=LIMITS)
    assert sandbox.run([foreseen])[0].outcomes[0].kind is OutcomeKind.VALUE
    job = replace(foreseen, program=program(endings, setup))
    unforeseen = replace(job, harness=Harness(HARNESS[harness] + f"# {job.program!r}\n"))
    with_it, without = sandbox.run([job, unforeseen])
    assert with_it.outcomes == without.outcomes
    assert with_it.entry_point_calls == without.entry_point_calls


def test_a_program_that_has_ended_too_early_is_not_missed(sandbox: Sandbox) -> None:
    """It hangs in a call that the harness does not make, since it takes its time with an answer before and stops."""
    source = "def check(c):\n  for x in range(14):\n    if c(x)[1] == 1: sum(range(10**7)); return\n"
    job = Job(RIGHT, "f", CHECK, harness=Harness(source), limits=LIMITS)
    hangs = "def f(x):\n  while x == 6: pass\n  return [x, x == 5]\n"
    for report in sandbox.run([job]) + sandbox.run([replace(job, program=hangs)]):
        assert report.outcomes[0].kind is OutcomeKind.VALUE
    assert len(report.entry_point_calls[0]) == 6


def test_a_program_that_sleeps_a_little_in_each_call_may_sleep_as_long_as_ever(sandbox: Sandbox) -> None:
    source = "def check(c):\n  for x in range(100): assert c(x) == x\n"
    job = Job("def f(x): return x", "f", CHECK, harness=Harness(source), limits=replace(LIMITS, wall_s=0.7))
    sleeps = "import time\ndef f(x):\n  time.sleep(0.01)\n  return x"
    for report in sandbox.run([job]) + sandbox.run([replace(job, program=sleeps)]):
        assert report.outcomes[0].kind is OutcomeKind.VALUE


def test_a_harness_that_draws_its_calls_runs_without_foresight(sandbox: Sandbox) -> None:
    drawn = "random.SystemRandom().sample(range(10**9), 40)"
    source = f"import random\ndef check(c):\n  for x in {drawn}: assert c(x) == x\n"
    job = Job("def f(x): return x", "f", CHECK, harness=Harness(source), limits=LIMITS)
    for report in sandbox.run([job]) + sandbox.run([job] * 3):
        assert report.outcomes[0].kind is OutcomeKind.VALUE
        assert len(report.entry_point_calls[0]) == 40


def test_answers_that_are_too_large_are_not_kept() -> None:
    ahead = ReadAhead([b"1", b"2"])
    ahead.ask(b"1")
    frame = Frame(Tag.VALUE, APPLY, 0, bytes(1 << 23))
    with pytest.raises(WrongForesight):
        ahead.answer(frame, Outcome(OutcomeKind.VALUE, frame.payload))


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"harness": Harness(HARNESS["catches"], is_trusted=False)}, False),
        ({"calls": (*CHECK, Call("f(1)"))}, False),
        # a program that is slow in the calls that follow would seem to be slow in this one
        ({"harness": Harness("from time import time\n" + HARNESS["catches"])}, False),
        ({"harness": Harness(HARNESS["catches"] + "  import os, signal\n")}, False),
    ],
)
def test_only_calls_of_one_harness_of_a_benchmark_are_remembered(sandbox: Sandbox, changes: Any, known: bool) -> None:
    job = replace(Job(RIGHT, "f", CHECK, harness=Harness(HARNESS["catches"])), **changes)
    foresight = Foresight()
    (report,) = sandbox.run([job])
    foresight.learn(job, report)
    assert bool(foresight.of(job)) is known
    foresight.forget(job)
    foresight.learn(job, report)
    assert not foresight.of(job)


def test_a_harness_that_is_long_with_its_calls_is_not_remembered(sandbox: Sandbox) -> None:
    job = Job(RIGHT, "f", CHECK, harness=Harness("def check(c):\n  assert c(1) == [1, 2]\n"), limits=LIMITS)
    (report,) = sandbox.run([job])
    for length, n_known in ((10, 1), (2 << 20, 0)):
        foresight = Foresight()
        foresight.learn(replace(job, harness=Harness(job.harness.source + "#" * length)), report)
        assert len(foresight._known) == n_known
