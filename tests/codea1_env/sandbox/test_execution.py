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

from codea1_env.facts.outcomes import EntryPointCall, Outcome, OutcomeKind
from codea1_env.sandbox.interface import Call, Job, JobReport, Limits, Place
from codea1_env.sandbox.local.execution import Execution, internal_error_report
from codea1_env.sandbox.local.process import Process
from codea1_env.sandbox.local.worker import Ends, Worker
from codea1_env.sandbox.wire import APPLY, LOAD, Notice, Op, Tag, frame_bytes

ENDED, KILLED, ABORTED = 0, 9, 6
HARNESS = Call("check(f)", place=Place.HARNESS)


class Stage:
    """Stands where a zygote would: holds the far ends of all channels."""

    jobs_can_kill_themselves = False

    def __init__(self, calls: Sequence[Call], **limits: Any) -> None:
        self.far: dict[int, socket.socket] = {}
        self.killed: list[int] = []
        self.now = 0.0
        """The wall clock, which stands still unless a test moves it."""
        self.execution = Execution(Job("program", "f", tuple(calls), limits=Limits(**limits)), self.spawn)

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


def test_an_answer_to_another_call_breaks_the_channel() -> None:
    for wrong in (
        gives(1),
        gives(0) + gives(0),
        gives(APPLY),
        loaded(),
        frame_bytes(b"?", 0),
        frame_bytes(Tag.APPLY, 0),
    ):
        stage = Stage(TWO, max_restarts=0)
        stage.says(0, loaded(), wrong)
        outcomes = stage.report().outcomes
        assert {outcome.error_type for outcome in outcomes} & {"BrokenChannel"}
        assert stage.killed == [0]


def test_nothing_counts_that_a_process_says_after_its_channel_broke() -> None:
    stage = Stage(TWO, max_restarts=0)
    stage.says(0, loaded(), gives(5), gives(0), gives(1))
    assert kinds(stage.report()) == ["crashed", "crashed"]


def test_a_value_before_loading_does_not_count() -> None:
    stage = Stage(TWO)
    stage.says(0, gives(0), loaded(), gives(0), gives(1))
    report = stage.report()
    assert report.load.kind is OutcomeKind.CRASHED
    assert kinds(report) == ["crashed", "crashed"]


def test_a_value_for_loading_is_neither_loading_nor_an_answer() -> None:
    forged = frame_bytes(Tag.VALUE, LOAD, b"true")
    stage = Stage(TWO)
    stage.says(0, forged)
    assert stage.report().load.error_type == "BrokenChannel"
    stage = Stage((*TWO, HARNESS))
    stage.says(0, loaded())
    stage.ends(0, ABORTED)
    stage.says(1, forged)
    assert {outcome.kind for outcome in stage.report().outcomes} == {OutcomeKind.CRASHED}


def test_a_value_for_loading_a_harness_answers_none_of_its_calls() -> None:
    stage = Stage([HARNESS, HARNESS])
    stage.says(0, loaded())
    stage.says(1, frame_bytes(Tag.VALUE, LOAD, b"null"))
    assert {outcome.kind for outcome in stage.report().outcomes} == {OutcomeKind.CRASHED}


def test_who_has_closed_its_end_is_not_listened_to() -> None:
    stage = Stage([HARNESS])
    stage.says(0, loaded())
    process = stage.process(0)
    assert process is not None
    assert not process.has_closed
    stage.far[0].shutdown(socket.SHUT_WR)
    stage.execution.on_readable(process)
    assert process.has_closed
    stage.report()


def test_who_waits_for_us_to_listen_does_not_sleep() -> None:
    stage = Stage(TWO)
    process = stage.process(0)
    assert process is not None
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
    stage = Stage((*TWO, *TWO))
    process = stage.process(0)
    assert process is not None
    stage.says(0, loaded())
    for number, excusable_s in enumerate((60.0, 0.01)):
        stage.says(0, gives(number, b'"' + b"x" * 5000 + b'"'))
        stage.now += 0.02
        assert (process.idle_s(0, excusable_s) == 0.0) is (excusable_s == 60.0)
    stage.report()


def test_the_rest_goes_on_in_a_new_process() -> None:
    stage = Stage(TWO)
    stage.says(0, loaded())
    stage.ends(0, ABORTED)
    stage.says(1, loaded(), gives(1))
    report = stage.report()
    assert kinds(report) == ["crashed", "value"]
    assert report.outcomes[0].error_type == "SIGABRT"


def test_a_program_that_loads_only_once_fails_the_rest() -> None:
    stage = Stage(TWO)
    stage.says(0, loaded())
    stage.ends(0)
    stage.ends(1)
    report = stage.report()
    assert report.loaded
    assert kinds(report) == ["exited", "exited"]


def test_a_call_over_its_time_by_the_processs_own_account_is_a_time_limit() -> None:
    stage = Stage(TWO, cpu_s=1.0)
    stage.says(0, loaded(500_000), gives(0, cpu_us=1_400_000), gives(1, cpu_us=2_500_001))
    assert kinds(stage.report()) == ["value", "time_limit"]


def test_the_time_of_each_call_is_reported_and_loading_is_no_call() -> None:
    stage = Stage(TWO, cpu_s=1.0)
    stage.says(0, loaded(900_000), gives(0, cpu_us=1_200_000), gives(1, cpu_us=1_250_000))
    assert stage.report().call_s == pytest.approx((0.3, 0.05))


def test_waiting_for_a_loaded_machine_uses_up_no_restarts() -> None:
    stage = Stage(TWO, wall_s=0.05, max_restarts=1)
    stage.says(0, loaded())
    process = stage.process(0)
    assert process is not None
    for _ in range(3):
        stage.now += 0.06
        stage.execution.on_cpu(process, 0, lambda: stage.now, False)
    stage.ends(0)
    stage.says(1, loaded(), gives(1))
    assert kinds(stage.report()) == ["exited", "value"]


def test_the_time_of_a_harness_call_counts_the_programs_part() -> None:
    stage = Stage([HARNESS])
    stage.says(0, loaded())
    stage.says(1, loaded(), frame_bytes(Tag.APPLY, APPLY, b"x"))
    stage.says(0, frame_bytes(Tag.VALUE, APPLY, b"1", 400_000))
    stage.says(1, gives(0, b"true", cpu_us=100_000))
    assert stage.report().call_s == pytest.approx((0.4,))


def test_a_measurement_over_the_limit_kills() -> None:
    stage = Stage(TWO, cpu_s=1.0)
    stage.says(0, loaded(500_000))
    process = stage.process(0)
    assert process is not None
    stage.execution.on_cpu(process, 1_500_000, lambda: None, is_retry=False)
    assert stage.killed == []
    stage.execution.on_cpu(process, 1_600_000, lambda: None, is_retry=False)
    assert stage.killed == [0]
    stage.says(1, loaded(), gives(1))
    assert kinds(stage.report()) == ["time_limit", "value"]


def test_claiming_to_have_used_much_before_buys_no_time() -> None:
    stage = Stage(TWO, cpu_s=1.0)
    stage.says(0, loaded(900_000))  # it says so; in truth it has used next to nothing
    process = stage.process(0)
    assert process is not None
    stage.execution.on_cpu(process, 60_000, lambda: None, is_retry=False)
    stage.execution.on_cpu(process, 1_200_000, lambda: None, is_retry=False)
    assert stage.killed == [0]
    stage.report()


def test_a_process_that_could_not_be_made_is_nobodys_fault() -> None:
    stage = Stage(TWO)
    stage.ends(0, -1)
    assert stage.execution.is_starved
    stage.execution.abort()
    stage.report()


def test_who_is_killed_by_the_machine_is_not_blamed_and_who_can_kill_itself_is() -> None:
    stage = Stage(TWO)
    stage.says(0, loaded())
    stage.ends(0, KILLED)
    assert stage.execution.is_starved
    stage.execution.abort()
    stage.report()
    stage = Stage(TWO, max_restarts=0)
    stage.jobs_can_kill_themselves = True
    stage.says(0, loaded())
    stage.ends(0, KILLED)
    assert kinds(stage.report()) == ["crashed", "exited"]


def test_only_deaths_that_took_long_are_limited_in_number() -> None:
    for cpu_us, last in ((1_000, "exited"), (600_000, "not_run")):
        stage = Stage(TWO, cpu_s=1.0, max_restarts=0)
        stage.says(0, loaded())
        stage.ends(0, cpu_us=cpu_us)
        assert kinds(stage.report()) == ["exited", last]


def test_how_a_harness_call_uses_the_program_is_reported() -> None:
    stage = Stage([Call("f(0)"), HARNESS])
    stage.says(0, loaded(), gives(0))
    stage.says(1, loaded(), frame_bytes(Tag.APPLY, APPLY, b"one"))
    stage.says(0, gives(APPLY, b'"answer"'))
    stage.says(1, frame_bytes(Tag.APPLY, APPLY, b"two"))
    stage.says(0, frame_bytes(Tag.OPAQUE, APPLY, b"a generator"))
    stage.says(1, gives(1, b"true"))
    answers = [Outcome(OutcomeKind.VALUE, b'"answer"'), Outcome(OutcomeKind.OPAQUE, message="a generator")]
    assert stage.report().entry_point_calls == (
        (),
        tuple(map(EntryPointCall, (b"one", b"two"), answers)),
    )


def test_who_dies_of_its_processor_limit_is_to_blame() -> None:
    stage = Stage(TWO, cpu_s=1.0, max_restarts=0)
    stage.says(0, loaded())
    process = stage.process(0)
    assert process is not None
    stage.ends(0, KILLED, cpu_us=process.cpu_limit_s * 1_000_000)
    assert kinds(stage.report()) == ["time_limit", "not_run"]


def test_a_harness_call_is_passed_on_and_back() -> None:
    stage = Stage([HARNESS])
    stage.says(0, loaded())
    stage.says(1, loaded(), frame_bytes(Tag.APPLY, APPLY, b"arguments"))
    assert stage.far[0].recv(1 << 16).endswith(b"arguments")
    stage.says(0, gives(APPLY, b'"answer"'))
    assert stage.far[1].recv(1 << 16).endswith(b'"answer"')
    stage.says(1, gives(0, b"true"))
    assert kinds(stage.report()) == ["value"]


def test_a_harness_cannot_blame_the_program_for_what_it_did_not_do() -> None:
    stage = Stage([HARNESS])
    stage.says(0, loaded())
    blame = json.dumps(["ValueError", "ValueError", "it was the program", True]).encode()
    stage.says(1, loaded(), frame_bytes(Tag.ERROR, 0, blame))
    (outcome,) = stage.report().outcomes
    assert outcome.message == "it was the program"
    assert outcome.kind is OutcomeKind.ERROR


def test_an_uncaught_fault_of_the_program_is_reported_as_the_program_stated_it() -> None:
    stage = Stage([HARNESS])
    stage.says(0, loaded())
    stage.says(1, loaded(), frame_bytes(Tag.APPLY, APPLY, b"x"))
    stage.says(0, frame_bytes(Tag.OPAQUE, APPLY, b"a generator"))
    stage.says(1, frame_bytes(Tag.ERROR, 0, json.dumps(["OpaqueResultUse", "TypeError", "m", True]).encode()))
    (outcome,) = stage.report().outcomes
    assert (outcome.kind, outcome.message) == (OutcomeKind.OPAQUE, "m")


def test_a_program_that_speaks_unasked_during_a_harness_breaks_its_channel() -> None:
    stage = Stage([HARNESS], max_restarts=0)
    stage.says(0, loaded())
    stage.says(1, loaded())
    stage.says(0, gives(APPLY))
    assert stage.report().outcomes[0].error_type == "BrokenChannel"
    assert set(stage.killed) == {0, 1}


def test_a_job_that_we_could_not_run_has_no_outcome_but_our_failure() -> None:
    report = internal_error_report(Job("", "f", TWO), "why")
    assert {outcome.kind for outcome in (report.load, *report.outcomes)} == {OutcomeKind.INTERNAL_ERROR}


CALL_NUMBERS = st.sampled_from([0, 1, 2, LOAD, APPLY, 77])
FRAMES = st.builds(
    frame_bytes,
    st.sampled_from([Tag.LOADED, Tag.VALUE, Tag.ERROR, Tag.MEMORY, Tag.OPAQUE, Tag.TOO_LARGE, Tag.APPLY, b"?"]),
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
@given(EVENTS)
def test_whatever_processes_send_and_however_they_end_the_report_is_well_formed(events: list[Any]) -> None:
    stage = Stage([Call("f(1)"), HARNESS, Call("f(2)")], max_restarts=2)
    for number, event in events:
        if number in stage.far and stage.process(number) is not None:
            stage.says(number, event) if isinstance(event, bytes) else stage.ends(number, event)
    stage.execution.abort()
    report = stage.report()
    assert len(report.outcomes) == 3
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
