"""Frames found in the output of a process that is shared with a stranger."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.outcomes import OutcomeKind
from codea1_env.sandbox.fusion_runner import Mark, checksum
from codea1_env.sandbox.fusion_schema import CommandResult, CommandStatus
from codea1_env.sandbox.fusion_talk import Talk, read_talk
from codea1_env.sandbox.interface import Limits
from codea1_env.sandbox.wire import APPLY, Tag, frame_bytes

NONCE = "0123456789abcdef"
LIMITS = Limits(cpu_s=2.0, wall_s=30.0)


def line(tag: bytes, call: int = 0, payload: bytes = b"", nonce: str = NONCE, cpu_us: int = 0) -> str:
    return packed(frame_bytes(tag, call, payload, cpu_us), nonce)


def packed(data: bytes, nonce: str = NONCE) -> str:
    text = base64.b64encode(zlib.compress(data)).decode()
    return f"\n{nonce}:{text}:{checksum(nonce, text)}\n"


def heard(output: str, return_code: int | None = 0, status: CommandStatus = CommandStatus.FINISHED) -> Talk:
    return read_talk(CommandResult(status, 1.0, return_code, output), NONCE, LIMITS)


def test_lines_of_ours_are_found_among_others() -> None:
    output = "noise" + line(Mark.HELLO) + "\x00\r noise" + line(Tag.VALUE, 0, b"1") + "more" + line(Mark.END)
    talk = heard(output)
    assert talk.has_begun
    assert talk.marks == {Mark.HELLO, Mark.END}
    assert {call: frame.payload for call, frame in talk.answers.items()} == {0: b"1"}


def test_of_several_answers_to_one_call_the_last_counts() -> None:
    talk = heard(line(Tag.VALUE, 0, b"1") + line(Tag.VALUE, 0, b"2"))
    assert talk.answers[0].payload == b"2"


@pytest.mark.parametrize(
    "output",
    [
        line(Tag.VALUE, 0, b"1", nonce="f" * 16),
        line(Tag.VALUE, 0, b"1")[:-4],
        line(Tag.VALUE, 0, b"1")[4:],
        line(Tag.VALUE, 0, b"1").replace(":", ":A", 1),
        f"\n{NONCE}:!!!:{checksum(NONCE, '!!!')}\n",
        f"\n{NONCE}:QUJD:{checksum(NONCE, 'QUJD')}\n",
        packed(b"short"),
        packed(frame_bytes(Tag.VALUE, 0, b"1") + b"extra"),
        packed(frame_bytes(Tag.VALUE, 0, b"1")[:-1]),
    ],
)
def test_what_is_not_a_whole_line_of_ours_says_nothing(output: str) -> None:
    talk = heard(output)
    assert not talk.answers
    assert not talk.marks


def test_a_frame_that_unpacks_to_very_much_is_not_unpacked() -> None:
    bomb = packed(b"\0" * (65 << 20))
    assert heard(bomb + line(Tag.VALUE, 0, b"1")).answers == {}


def test_questions_and_counts_are_read_and_broken_ones_ignored() -> None:
    good = line(Mark.COUNT, APPLY, b"3") + line(Mark.QUESTIONS, 0, json.dumps(["a", "b"]).encode())
    broken = line(Mark.COUNT, 1, b"x") + line(Mark.QUESTIONS, 0, b"[1]") + line(Mark.QUESTIONS, 0, b'["\\ud800"]')
    talk = heard(good + broken)
    assert talk.counts == {APPLY: 3}
    assert talk.questions == ["a", "b"]


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=1), st.integers(0, 5), st.binary(max_size=20))))
def test_no_frame_breaks_the_reader(frames: list[tuple[bytes, int, bytes]]) -> None:
    talk = heard("".join(line(*frame) for frame in frames))
    assert set(talk.answers) <= {call for _, call, _ in frames}


@pytest.mark.parametrize(
    ("return_code", "kind", "error_type", "is_doubtful"),
    [
        (0, OutcomeKind.EXITED, "", False),
        (3, OutcomeKind.EXITED, "", False),
        (-11, OutcomeKind.CRASHED, "SIGSEGV", False),
        (139, OutcomeKind.CRASHED, "SIGSEGV", False),
        (-9, OutcomeKind.CRASHED, "SIGKILL", True),
        (137, OutcomeKind.CRASHED, "SIGKILL", True),
        (-27, OutcomeKind.TIME_LIMIT, "", False),
        (-24, OutcomeKind.TIME_LIMIT, "", False),
        (255, OutcomeKind.EXITED, "", False),
    ],
)
def test_the_exit_code_says_how_a_process_ended(
    return_code: int, kind: OutcomeKind, error_type: str, is_doubtful: bool
) -> None:
    ending = heard(line(Mark.HELLO), return_code).ending
    assert (ending.outcome.kind, ending.outcome.error_type, ending.is_doubtful) == (kind, error_type, is_doubtful)


def test_the_servers_time_limit_is_doubtful_and_ours_is_not() -> None:
    theirs = heard(line(Mark.HELLO), None, CommandStatus.TIME_LIMIT_EXCEEDED).ending
    assert (theirs.outcome.kind, theirs.is_doubtful) == (OutcomeKind.TIME_LIMIT, True)
    ours = heard(line(Mark.HELLO) + line(Mark.TIME)).ending
    assert (ours.outcome.kind, ours.is_doubtful) == (OutcomeKind.TIME_LIMIT, False)
    asleep = heard(line(Mark.HELLO) + line(Mark.WALL)).ending
    assert (asleep.outcome.kind, asleep.is_doubtful) == (OutcomeKind.TIME_LIMIT, True)


def test_more_output_than_is_read_is_the_programs_doing() -> None:
    talk = read_talk(None, NONCE, LIMITS)
    assert not talk.has_begun
    assert talk.ending.outcome.kind is OutcomeKind.CRASHED
    assert not talk.ending.is_doubtful
