"""From a job to requests and back to a report, against a server that says anything."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox.fusion_execution import run_job
from codea1_env.sandbox.fusion_http import Unanswered
from codea1_env.sandbox.fusion_ledger import Bounds
from codea1_env.sandbox.fusion_runner import Mark
from codea1_env.sandbox.fusion_script import Script
from codea1_env.sandbox.fusion_talk import Ending, Talk
from codea1_env.sandbox.interface import Call, Job, Limits, Place
from codea1_env.sandbox.wire import APPLY, LOAD, Frame, Tag

JOB = Job(
    "def f(x): ...",
    "f",
    (Call("f(1)"), Call("f(2)"), Call("f(3) + 1", place=Place.HARNESS), Call("f(f(4))", place=Place.HARNESS)),
    limits=Limits(cpu_s=1.0, max_restarts=2),
)
BOUNDS = Bounds(max_rounds=5)
DEATH = Ending(Outcome(OutcomeKind.CRASHED, error_type="SIGSEGV"))
MAYBE_DEATH = Ending(Outcome(OutcomeKind.TIME_LIMIT), is_doubtful=True)
TAGS = [Tag.LOADED, Tag.VALUE, Tag.OPAQUE, Tag.TOO_LARGE, Tag.MEMORY, Tag.ERROR, Tag.APPLY, Tag.JOB, b"?"]
PAYLOADS = [b"7", b"", b"null", b'["E", "E", "m", false]', b'["E", "E", "m", true]', b"\xff", b"{", b'"x"' * 9]
CALLS = [LOAD, APPLY, 0, 1, 2, 3, 4]
frames = st.builds(
    Frame, st.sampled_from(TAGS), st.sampled_from(CALLS), st.integers(0, 3_000_000), st.sampled_from(PAYLOADS)
)
talks = st.builds(
    lambda ending, marks, frames, counts, questions: Talk(
        ending, set(marks), {frame.call: frame for frame in frames}, counts, questions, 0.1
    ),
    st.sampled_from([DEATH, MAYBE_DEATH]),
    st.sets(st.sampled_from([Mark.HELLO, Mark.END, Mark.FULL, Mark.LOST, Mark.TIME])),
    st.lists(frames, max_size=6),
    st.dictionaries(st.sampled_from(CALLS), st.integers(0, 5), max_size=4),
    st.lists(st.sampled_from(["a", "b"]), max_size=3),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(talks, min_size=1, max_size=12), talks)
def test_whatever_a_server_says_a_job_ends_and_values_are_only_what_was_said(first: list[Talk], then: Talk) -> None:
    n_asked = 0

    def ask(script: Script, job: Job) -> Talk:
        nonlocal n_asked
        n_asked += 1
        assert n_asked < 2000
        return first[n_asked - 1] if n_asked <= len(first) else then

    report = run_job(JOB, ask, BOUNDS)
    assert len(report.outcomes) == len(JOB.calls)
    said = {frame.payload for talk in (*first, then) for frame in talk.answers.values() if frame.tag == Tag.VALUE}
    assert {outcome.value for outcome in report.outcomes} <= {None, *said}
    if not report.loaded:
        assert all(outcome.value is None for outcome in report.outcomes)


def test_a_missing_answer_is_what_ended_the_process_and_the_rest_is_asked_again() -> None:
    loaded = Frame(Tag.LOADED, LOAD, 0, b"")
    talks = [
        Talk(DEATH, {Mark.HELLO}, {LOAD: loaded}),
        Talk(DEATH, {Mark.HELLO, Mark.END}, {LOAD: loaded, 1: Frame(Tag.VALUE, 1, 0, b"7")}),
    ]
    job = Job("def f(x): ...", "f", (Call("f(1)"), Call("f(2)")))
    report = run_job(job, lambda script, job: talks.pop(0), BOUNDS)
    assert [outcome.kind for outcome in report.outcomes] == [OutcomeKind.CRASHED, OutcomeKind.VALUE]


def test_a_doubtful_ending_counts_only_the_second_time() -> None:
    loaded = Frame(Tag.LOADED, LOAD, 0, b"")
    silent = Talk(MAYBE_DEATH, {Mark.HELLO}, {LOAD: loaded})
    answered = Talk(DEATH, {Mark.HELLO}, {LOAD: loaded, 0: Frame(Tag.VALUE, 0, 0, b"7")})
    job = Job("def f(x): ...", "f", (Call("f(1)"),))
    for talks, kind in (([silent, answered], OutcomeKind.VALUE), ([silent, silent], OutcomeKind.TIME_LIMIT)):
        said = iter(talks)
        assert run_job(job, lambda script, job, said=said: next(said), BOUNDS).outcomes[0].kind is kind


def test_too_much_time_by_its_own_account_is_a_time_limit() -> None:
    answers = {LOAD: Frame(Tag.LOADED, LOAD, 900_000, b""), 0: Frame(Tag.VALUE, 0, 1_800_000, b"7")}
    answers[1] = Frame(Tag.VALUE, 1, 2_900_000, b"7")
    job = Job("def f(x): ...", "f", (Call("f(1)"), Call("f(2)")), limits=Limits(cpu_s=1.0))
    report = run_job(job, lambda script, job: Talk(DEATH, {Mark.HELLO}, answers), BOUNDS)
    assert [outcome.kind for outcome in report.outcomes] == [OutcomeKind.VALUE, OutcomeKind.TIME_LIMIT]


def test_when_the_server_fails_what_is_known_is_kept() -> None:
    loaded = Frame(Tag.LOADED, LOAD, 0, b"")
    talks = [Talk(DEATH, {Mark.HELLO}, {LOAD: loaded, 0: Frame(Tag.VALUE, 0, 0, b"7")})]

    def ask(script: Script, job: Job) -> Talk:
        if not talks:
            raise Unanswered("HTTP status 500")
        return talks.pop()

    job = Job("def f(x): ...", "f", (Call("f(1)"), Call("f(2)"), Call("f(3)")))
    report = run_job(job, ask, BOUNDS)
    assert report.loaded
    assert [outcome.kind for outcome in report.outcomes] == [
        OutcomeKind.VALUE,
        OutcomeKind.CRASHED,
        OutcomeKind.INTERNAL_ERROR,
    ]
    assert "500" in report.outcomes[2].message


def test_a_process_that_claims_to_have_no_room_for_what_would_fit_is_not_believed() -> None:
    full = Talk(DEATH, {Mark.HELLO, Mark.FULL}, {LOAD: Frame(Tag.LOADED, LOAD, 0, b"")})
    for value_bytes, kind in ((65_536, OutcomeKind.CRASHED), (1 << 20, OutcomeKind.INTERNAL_ERROR)):
        job = Job("def f(x): ...", "f", (Call("f(1)"),), limits=Limits(value_bytes=value_bytes))
        assert run_job(job, lambda script, job: full, BOUNDS).outcomes[0].kind is kind
