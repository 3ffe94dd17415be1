"""Bytes from a stranger's process: cut into frames, read as claims, never believed further than that."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.sandbox.local.process import _PLAIN_VALUE, as_outcome, error_fields, printable
from codea1_env.sandbox.wire import Frame, FrameReader, Items, Tag, WireError, frame_bytes
from codea1_env.values import encode, validate

TAGS = st.sampled_from([Tag.LOADED, Tag.VALUE, Tag.OPAQUE, Tag.TOO_LARGE, Tag.MEMORY, Tag.ERROR, Tag.APPLY, b"?"])
PAYLOADS = (
    st.binary(max_size=60)
    | st.sampled_from([b"null", b"[1]", b"", json.dumps(["E", "E", "m", True]).encode()])
    | st.lists(st.text(max_size=5) | st.booleans() | st.none(), max_size=5).map(json.dumps).map(str.encode)
)
FRAMES = st.builds(Frame, TAGS, st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), PAYLOADS)


@given(st.lists(FRAMES, max_size=5), st.integers(1, 50))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(frames: list[Frame], step: int) -> None:
    stream = b"".join(frame_bytes(f.tag, f.call, f.payload, f.cpu_us) for f in frames)
    reader, found = FrameReader(1000), []
    for start in range(0, len(stream), step):
        reader.feed(stream[start : start + step])
        while (frame := reader.next()) is not None:
            found.append(frame)
    assert found == frames


def test_a_frame_longer_than_may_be_is_refused_by_its_header_alone() -> None:
    reader = FrameReader(10)
    reader.feed(frame_bytes(Tag.VALUE, 0, b"x" * 11)[:17])
    with pytest.raises(WireError, match="11 bytes"):
        reader.next()


def test_values_are_taken_together_up_to_the_first_frame_that_is_anything_else() -> None:
    value, longer = frame_bytes(Tag.VALUE, 1, b"12", 5), frame_bytes(Tag.VALUE, 2, b"x" * 11)
    for other in (longer, frame_bytes(Tag.ERROR, 2), frame_bytes(Tag.VALUE, 3), frame_bytes(Tag.VALUE, 2, b"1")[:-1]):
        reader = FrameReader(10)
        reader.feed(value + other)
        assert reader.values([1, 2, 3]) == ([5], [b"12"])
        assert reader.values([2, 3]) == ([], [])
    reader = FrameReader(20)
    reader.feed(value + longer + value)
    assert reader.values([1]) == ([5], [b"12"])
    assert reader.next() == Frame(Tag.VALUE, 2, 0, b"x" * 11)
    assert reader.values([1, 1]) == ([5], [b"12"])
    assert reader.next() is None


@settings(max_examples=300)
@given(FRAMES)
def test_any_frame_is_an_outcome_fit_for_people_or_refused(frame: Frame) -> None:
    try:
        outcome = as_outcome(frame)
    except WireError:
        return
    assert (outcome.kind is OutcomeKind.VALUE) == (frame.tag == Tag.VALUE)
    assert outcome.kind not in (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN)
    assert len(outcome.message) <= 300
    assert (outcome.message + outcome.error_type).isprintable()


NO_VALUES = (b"", b"NaN", b"{}", b"\xff", encode(1) + b" 2", b'{"s":[[]]}')
NO_VALUES += (b'{"D":"1E+9999999999999999999"}', b'{"r":[2,4]}', b"[" * 65 + b"]" * 65)
NO_ERRORS = (b"", b"[]", b"[1,2,3,4]", b'["a","b","c"]', b"null", b'"abcd"', b"5")
NO_ERRORS += (b"[" * 10**5, b"[" * 20_000, json.dumps(["A", "Exception", "m" * 20_000, False]).encode())


@pytest.mark.parametrize(
    ("tag", "payload"), [*((Tag.VALUE, each) for each in NO_VALUES), *((Tag.ERROR, each) for each in NO_ERRORS)]
)
def test_what_is_no_encoding_of_a_value_or_no_error_is_refused(tag: bytes, payload: bytes) -> None:
    with pytest.raises(WireError):
        as_outcome(Frame(tag, 0, 0, payload))
    if tag == Tag.ERROR:
        with pytest.raises(WireError):
            error_fields(payload)
        if payload:
            with pytest.raises(WireError):
                as_outcome(Frame(Tag.ITEMS, 0, 0, Items(0, 0, False, -1, True, b"", b"[]", payload).pack()))


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=400))
def test_texts_are_cut_and_made_printable(text: str) -> None:
    assert printable(text).isprintable()
    assert len(printable(text)) == min(300, len(text))


ATOMS = st.sampled_from(
    ["0", "-1", "007", "1.50", "1e9", "-0.0", "true", "null", "nan", '"a b"', '"\\n"', '"', "1" * 19]
)
LIKE_VALUES = st.recursive(
    ATOMS,
    lambda inner: st.tuples(
        st.sampled_from(["[%s]", '{"t":[%s]}', '{"s":[%s]}', '{"d":[%s]}', '{"d":[["a",%s]]}', "[%s", '{"t":%s}']),
        st.lists(inner, max_size=3),
    ).map(lambda parts: parts[0] % ",".join(parts[1])),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(LIKE_VALUES)
def test_what_is_let_through_at_a_glance_would_have_passed_the_check(text: str) -> None:
    data = text.encode()
    assume(_PLAIN_VALUE.fullmatch(data) is not None)
    validate(data)


FLAT = (0, -1, 1.5, "a b", None, True)
NESTED = ([], [1, "x"], (1, 2), [(1, 2), (3, 4)], [[1], []], (), {1, 2}, {"a": [1]}, {1: (2,)})


@pytest.mark.parametrize("value", FLAT + NESTED)
def test_ordinary_values_are_let_through_at_a_glance(value: object) -> None:
    assert _PLAIN_VALUE.fullmatch(encode(value)) is not None


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 90), min_size=1, max_size=9))
def test_frames_survive_any_mixture_of_whole_and_broken_pieces(payloads: list[bytes], steps: list[int]) -> None:
    stream = b"".join(frame_bytes(Tag.VALUE, call, payload) for call, payload in enumerate(payloads))
    reader, found, start = FrameReader(40), [], 0
    for turn in range(len(stream) + 1):
        if start >= len(stream):
            break
        step = steps[turn % len(steps)]
        reader.feed(stream[start : start + step])
        start += step
        if turn % 2:
            found += zip(count(len(found)), reader.values(range(len(found), len(payloads))).payloads, strict=False)
        elif (frame := reader.next()) is not None:
            found.append((frame.call, frame.payload))
    found += zip(count(len(found)), reader.values(range(len(found), len(payloads))).payloads, strict=False)
    assert found == list(enumerate(payloads))


@pytest.mark.parametrize("size", [1 << 20, 9 << 20])
def test_a_value_that_is_too_large_to_be_read_is_one_all_the_same(size: int) -> None:
    data = b"[" + b"1," * (size // 2) + b"1]"
    assert as_outcome(Frame(Tag.VALUE, 0, 0, data)).value == data
