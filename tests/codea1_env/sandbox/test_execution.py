"""The state machine of one job, fed by hand: whatever a process sends, the report is well-formed."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env.facts.verdicts import EntryPointCall, Outcome, OutcomeKind
from codea1_env.sandbox.interface import BROKEN_HARNESS, Call, Job, JobReport, Limits, Place
from codea1_env.sandbox.local.execution import Execution, internal_error_report
from codea1_env.sandbox.local.process import Process
from codea1_env.sandbox.local.worker import Ends, Worker
from codea1_env.sandbox.wire import APPLY, LOAD, Notice, Op, Tag, frame_bytes

ENDED, KILLED, ABORTED = 0, 9, 6
HARNESS = Call("check(f)", place=Place.HARNESS)
BROKEN = "BrokenChannel"


class Stage:
    """Stands where a zygote would: holds the far ends of all channels."""

    jobs_can_kill_themselves = False

    def __init__(self, calls: Sequence[Call], expected: Sequence[bytes] = (), **limits: Any) -> None:
        self.far: dict[int, socket.socket] = {}
        self.killed: list[int] = []
        self.now = 0.0
        """The wall clock, which stands still unless a test moves it."""
        job = Job("program", "f", tuple(calls), limits=Limits(**limits))
        self.execution = Execution(job, self.spawn, expected)

    def spawn(self, cpu_s: int, max_payload: int) -> Process:
        number = len(self.far)
        limits: dict[str, int] = {"cpu_s": cpu_s, "memory_mb": 1, "max_payload": max_payload}
        return Process(number, cast(Worker, self), **limits, clock=lambda: self.now)

    def fork(self, number: int, cpu_s: int, memory_mb: int) -> Ends:
        near, self.far[number] = socket.socketpair()
        near.setblocking(False)
        with near:
            return Ends(os.dup(near.fileno()), os.dup(near.fileno()))

    def send_request(self, op: bytes, number: int) -> None:
        assert op == Op.KILL
        self.killed.append(number)

    def process(self, number: int) -> Process | None:
        return next((process for process in self.execution.processes if process.number == number), None)

    @property
    def first(self) -> Process:
        process = self.process(0)
        assert process is not None
        return process

    def says(self, number: int, *frames: bytes) -> None:
        self.far[number].sendall(b"".join(frames))
        process = self.process(number)
        if process is not None:
            self.execution.on_readable(process)

    def ends(self, number: int, status: int = ENDED, cpu_us: int = 1000) -> None:
        process = self.process(number)
        if process is not None:
            self.execution.on_exit(process, Notice(Op.EXIT, number, status, cpu_us))

    def report(self) -> JobReport:
        while processes := self.execution.processes:
            number = processes[0].number
            self.ends(number, KILLED if number in self.killed else ENDED)
        for far in self.far.values():
            far.close()
        assert self.execution.is_over
        return self.execution.report("test")


def loaded(cpu_us: int = 0) -> bytes:
    return frame_bytes(Tag.LOADED, LOAD, cpu_us=cpu_us)


def gives(call: int, payload: bytes = b"1", cpu_us: int = 0) -> bytes:
    return frame_bytes(Tag.VALUE, call, payload, cpu_us)


def kinds(report: JobReport) -> list[str]:
    return [outcome.kind.value for outcome in report.outcomes]


def started(calls: Sequence[Call], *frames: bytes, **limits: Any) -> Stage:
    """A stage whose first process has loaded the program and said more."""
    stage = Stage(calls, **limits)
    stage.says(0, loaded(), *frames)
    return stage


TWO = (Call("f(1)"), Call("f(2)"))


def test_what_was_sent_before_the_end_counts() -> None:
    stage = Stage(TWO)
    stage.far[0].sendall(loaded() + gives(0) + gives(1, b"2"))
    stage.ends(0)
    report = stage.report()
    assert [outcome.value for outcome in report.outcomes] == [b"1", b"2"]
    assert report.cpu_s == 0.001


def test_a_missing_answer_is_never_a_value() -> None:
    stage = Stage(TWO, max_restarts=0)
    stage.far[0].sendall(loaded() + gives(0))
    stage.ends(0)
    assert kinds(stage.report()) == ["value", "exited"]


@pytest.mark.parametrize(
    "wrong",
    [gives(1), gives(0) + gives(0), gives(APPLY), loaded(), frame_bytes(b"?", 0), frame_bytes(Tag.APPLY, 0)],
)
def test_an_answer_to_another_call_breaks_the_channel(wrong: bytes) -> None:
    stage = started(TWO, wrong, max_restarts=0)
    outcomes = stage.report().outcomes
    assert {outcome.error_type for outcome in outcomes} & {"BrokenChannel"}
    assert stage.killed == [0]


SLOW = loaded(500_000), gives(0, cpu_us=1_400_000), gives(1, cpu_us=2_500_001)
FORGED, NO_NEWS = (frame_bytes(Tag.VALUE, LOAD, payload) for payload in (b"true", b"null"))


@pytest.mark.parametrize(
    ("calls", "limits", "events", "expected", "error"),
    [
        # Nothing counts that a process says after its channel broke, or before it has loaded.
        (TWO, {"max_restarts": 0}, [(0, loaded(), gives(5), gives(0), gives(1))], "value crashed crashed", BROKEN),
        (TWO, {}, [(0, gives(0), loaded(), gives(0), gives(1))], "crashed crashed crashed", BROKEN),
        # A value for loading is neither loading nor an answer, of a program or of a harness.
        (TWO, {}, [(0, FORGED)], "crashed crashed crashed", BROKEN),
        ((*TWO, HARNESS), {}, [(0, loaded()), (0, ABORTED), (1, FORGED)], "value crashed crashed crashed", BROKEN),
        ((HARNESS, HARNESS), {}, [(0, loaded()), (1, NO_NEWS)], "value crashed crashed", BROKEN_HARNESS),
        # The rest goes on in a new process, and fails if that does not load.
        (TWO, {}, [(0, loaded()), (0, ABORTED), (1, loaded(), gives(1))], "value crashed value", "SIGABRT"),
        (TWO, {}, [(0, loaded()), (0, ENDED), (1, ENDED)], "value exited exited", ""),
        # Time by the process's own account; only deaths that took long are limited in number.
        (TWO, {"cpu_s": 1.0}, [(0, *SLOW)], "value value time_limit", ""),
        (TWO, {"cpu_s": 1.0, "max_restarts": 0}, [(0, loaded()), (0, ENDED, 1_000)], "value exited exited", ""),
        (TWO, {"cpu_s": 1.0, "max_restarts": 0}, [(0, loaded()), (0, ENDED, 600_000)], "value exited not_run", ""),
    ],
)
def test_a_report_follows_from_what_processes_say_and_how_they_end(calls, limits, events, expected, error) -> None:
    stage = Stage(calls, **limits)
    for number, *said in events:
        stage.says(number, *said) if isinstance(said[0], bytes) else stage.ends(number, *said)
    report = stage.report()
    assert [report.load.kind.value, *kinds(report)] == expected.split()
    assert report.outcomes[0].error_type == error


def test_who_has_closed_its_end_is_not_listened_to() -> None:
    stage = started([HARNESS])
    process = stage.first
    assert not process.has_closed
    stage.far[0].shutdown(socket.SHUT_WR)
    stage.execution.on_readable(process)
    assert process.has_closed
    stage.report()


def test_who_waits_for_us_to_listen_does_not_sleep() -> None:
    stage = Stage(TWO)
    process = stage.first
    stage.now += 0.02
    assert process.idle_s(0, 60.0) == pytest.approx(0.02)
    stage.says(0, loaded(), gives(0, b'"' + b"x" * 5000 + b'"'))
    stage.now += 0.02
    assert not process.sends_much
    assert process.idle_s(0, 60.0) == 0.0
    assert process.sends_much
    stage.now += 0.02
    assert process.idle_s(0, 60.0) == pytest.approx(0.02)
    stage.report()


def test_who_says_much_so_that_its_sleep_does_not_count_is_excused_for_so_long_only() -> None:
    stage = started((*TWO, *TWO))
    process = stage.first
    for number, excusable_s in enumerate((60.0, 0.01)):
        stage.says(0, gives(number, b'"' + b"x" * 5000 + b'"'))
        stage.now += 0.02
        assert (process.idle_s(0, excusable_s) == 0.0) is (excusable_s == 60.0)
    stage.report()


def test_the_time_of_each_call_is_reported_and_loading_is_no_call() -> None:
    stage = Stage(TWO, cpu_s=1.0)
    stage.says(0, loaded(900_000), gives(0, cpu_us=1_200_000), gives(1, cpu_us=1_250_000))
    assert stage.report().call_s == pytest.approx((0.3, 0.05))


def test_waiting_for_a_loaded_machine_uses_up_no_restarts() -> None:
    stage = started(TWO, wall_s=0.05, max_restarts=1)
    for _ in range(3):
        stage.now += 0.06
        stage.execution.on_cpu(stage.first, 0, lambda: stage.now, False)
    stage.ends(0)
    stage.says(1, loaded(), gives(1))
    assert kinds(stage.report()) == ["exited", "value"]


@pytest.mark.parametrize(
    ("claimed_us", "measured_us"),
    # to say that it has used much before buys a process no time
    [(500_000, [1_500_000, 1_600_000]), (900_000, [60_000, 1_200_000])],
)
def test_a_measurement_over_the_limit_kills(claimed_us: int, measured_us: list[int]) -> None:
    stage = Stage(TWO, cpu_s=1.0)
    stage.says(0, loaded(claimed_us))
    for cpu_us in measured_us:
        assert stage.killed == []
        stage.execution.on_cpu(stage.first, cpu_us, lambda: None, is_retry=False)
    assert stage.killed == [0]
    stage.says(1, loaded(), gives(1))
    assert kinds(stage.report()) == ["time_limit", "value"]


@pytest.mark.parametrize(("is_loaded", "status"), [(False, -1), (True, KILLED)])
def test_a_process_that_was_not_made_or_that_the_machine_killed_is_nobodys_fault(is_loaded: bool, status: int) -> None:
    stage = started(TWO) if is_loaded else Stage(TWO)
    stage.ends(0, status)
    assert stage.execution.is_starved
    stage.execution.abort()
    stage.report()


def test_who_can_kill_itself_is_blamed() -> None:
    stage = started(TWO, max_restarts=0)
    stage.jobs_can_kill_themselves = True
    stage.ends(0, KILLED)
    assert kinds(stage.report()) == ["crashed", "exited"]


def test_how_a_harness_call_uses_the_program_is_reported() -> None:
    stage = started([Call("f(0)"), HARNESS], gives(0))
    stage.says(1, loaded(), frame_bytes(Tag.APPLY, APPLY, b"one"))
    stage.says(0, gives(APPLY, b'"answer"'))
    stage.says(1, frame_bytes(Tag.APPLY, APPLY, b"two"))
    stage.says(0, frame_bytes(Tag.OPAQUE, APPLY, b"a generator"))
    stage.says(1, gives(1, b"true"))
    answers = [Outcome(OutcomeKind.VALUE, b'"answer"'), Outcome(OutcomeKind.OPAQUE, message="a generator")]
    assert stage.report().entry_point_calls == ((), tuple(map(EntryPointCall, (b"one", b"two"), answers)))


def test_who_dies_of_its_processor_limit_is_to_blame() -> None:
    stage = started(TWO, cpu_s=1.0, max_restarts=0)
    stage.ends(0, KILLED, cpu_us=stage.first.cpu_limit_s * 1_000_000)
    assert kinds(stage.report()) == ["time_limit", "not_run"]


def test_a_harness_call_is_passed_on_and_back_and_its_time_counts_the_programs_part() -> None:
    stage = started([HARNESS])
    stage.says(1, loaded(), frame_bytes(Tag.APPLY, APPLY, b"arguments"))
    assert stage.far[0].recv(1 << 16).endswith(b"arguments")
    stage.says(0, gives(APPLY, b'"answer"', cpu_us=400_000))
    assert stage.far[1].recv(1 << 16).endswith(b'"answer"')
    stage.says(1, gives(0, b"true", cpu_us=100_000))
    report = stage.report()
    assert kinds(report) == ["value"]
    assert report.call_s == pytest.approx((0.4,))


def test_a_harness_cannot_blame_the_program_for_what_it_did_not_do() -> None:
    stage = started([HARNESS])
    blame = json.dumps(["ValueError", "ValueError", "it was the program", True]).encode()
    stage.says(1, loaded(), frame_bytes(Tag.ERROR, 0, blame))
    (outcome,) = stage.report().outcomes
    assert (outcome.kind, outcome.message) == (OutcomeKind.ERROR, "it was the program")


def test_an_uncaught_fault_of_the_program_is_reported_as_the_program_stated_it() -> None:
    stage = started([HARNESS])
    stage.says(1, loaded(), frame_bytes(Tag.APPLY, APPLY, b"x"))
    stage.says(0, frame_bytes(Tag.OPAQUE, APPLY, b"a generator"))
    stage.says(1, frame_bytes(Tag.ERROR, 0, json.dumps(["OpaqueResultUse", "TypeError", "m", True]).encode()))
    (outcome,) = stage.report().outcomes
    assert (outcome.kind, outcome.message) == (OutcomeKind.OPAQUE, "m")


def test_a_program_that_speaks_unasked_during_a_harness_breaks_its_channel() -> None:
    stage = started([HARNESS], max_restarts=0)
    stage.says(1, loaded())
    stage.says(0, gives(APPLY))
    assert stage.report().outcomes[0].error_type == "BrokenChannel"
    assert set(stage.killed) == {0, 1}


def test_a_job_that_we_could_not_run_has_no_outcome_but_our_failure() -> None:
    report = internal_error_report(Job("", "f", TWO), "why")
    assert {outcome.kind for outcome in (report.load, *report.outcomes)} == {OutcomeKind.INTERNAL_ERROR}


TAGS = (Tag.LOADED, Tag.VALUE, Tag.ERROR, Tag.MEMORY, Tag.OPAQUE, Tag.TOO_LARGE, Tag.APPLY, Tag.AHEAD, b"?")
CALL_NUMBERS = st.sampled_from([0, 1, 2, LOAD, APPLY, 77])
FRAMES = st.builds(
    frame_bytes,
    st.sampled_from(TAGS),
    CALL_NUMBERS,
    st.sampled_from([b"", b"1", b"[", json.dumps(["E", "ValueError", "m", True]).encode()]),
    st.integers(0, 2**63),
)
EVENTS = st.lists(
    st.tuples(st.integers(0, 3), FRAMES | st.sampled_from([loaded(), gives(0), gives(1), gives(2)]))
    | st.tuples(st.integers(0, 3), st.sampled_from([ENDED, KILLED, ABORTED, -1]))
    | st.tuples(st.integers(0, 3), st.binary(max_size=30)),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.booleans())
def test_whatever_processes_send_and_however_they_end_the_report_is_sound(events: list[Any], is_foreseen: bool) -> None:
    calls, expected = ([HARNESS], [b"1"] * 9) if is_foreseen else ([Call("f(1)"), HARNESS, Call("f(2)")], [])
    stage = Stage(calls, expected, max_restarts=2)
    for number, event in events:
        if number in stage.far and stage.process(number) is not None:
            stage.says(number, event) if isinstance(event, bytes) else stage.ends(number, event)
    stage.execution.abort()
    report = stage.report()
    assert len(report.outcomes) == len(calls)
    assert (report.load.kind is OutcomeKind.VALUE) or not any(o.kind is OutcomeKind.VALUE for o in report.outcomes)
    assert OutcomeKind.INTERNAL_ERROR not in {outcome.kind for outcome in report.outcomes}


def test_sleep_before_quick_deaths_uses_up_the_restarts() -> None:
    stage = Stage([Call("f(1)")] * 20, wall_s=0.05, max_restarts=1)
    for number in range(20):
        process = stage.process(number)
        if process is None:
            break
        stage.now += 0.04
        stage.execution.on_cpu(process, 0, lambda: 0.0, False)
        stage.says(number, loaded())
        stage.ends(number)
    found = kinds(stage.report())
    assert found[0] == "exited"
    assert found[-1] == "not_run"
