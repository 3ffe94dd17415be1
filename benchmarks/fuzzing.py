"""Sends random bytes to all trusted code that reads untrusted bytes, for a given time.

    python benchmarks/fuzzing.py [--minutes N] [--seed N] [--atheris]

Inputs come from hypothesis or, with `--atheris`, from atheris (`pip install atheris`), which coverage guides.

The readers get frames of a channel, cut at any place; claims in frames; encoded values, which are also compared,
described and written as source; control messages of a zygote; and error frames. With hypothesis, half of the inputs are
valid encodings and frames of which some bytes were changed.

Each reader must reject an input with its one documented error, or return a result with these properties:

- an accepted value equals itself (except nan); its decoding can be encoded, and the result equals the value; encoding
  and decoding again changes nothing,
- a text for people is short and printable,
- frames are read as they were written, and none exceeds the limit of its length.

Prints the numbers of inputs and of accepted inputs. The exit status is 1 if an input breaks a property; the input is
printed.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from measuring import option_parser

from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.sandbox import wire
from codea1_env.sandbox.local import process
from codea1_env.sandbox.local.process import as_outcome
from codea1_env.sandbox.wire import NOTICE, Frame, FrameReader, Notice, Tag, WireError, frame_bytes
from codea1_env.values import (
    Malformed,
    Opaque,
    TooLarge,
    comparison,
    decode,
    decoding,
    describe,
    encode,
    encoding,
    equal,
    source,
    to_source,
    tree,
    validate,
)

MAX_PAYLOAD = 4096
TAGS = (Tag.LOADED, Tag.VALUE, Tag.OPAQUE, Tag.TOO_LARGE, Tag.MEMORY, Tag.ERROR, Tag.APPLY, b"?")
_EXAMPLES = 50  # of one property at a time; the properties take turns until the time is over
_SEEDS = (
    [1, -2.5, "a", None, True, 10**400],
    {"a": (1, 2), 3: {4, 5}},
    [float("nan"), float("-inf"), 1e300, 2 + 3j],
    (b"\x00\xff", bytearray(b"x"), frozenset({1, "b"}), range(1, 9, 2)),
    "\ud800 \u20ac \x00",
    [[[[[]]]]],
)

counts: Counter[str] = Counter()


def read_value(data: bytes) -> None:
    """Read bytes as an encoded value."""
    counts["values"] += 1
    try:
        validate(data)
    except Malformed:
        return
    counts["values accepted"] += 1
    assert equal(data, data, nan_equal=True)
    equal(data, data, rel_tol=1e-6, strict_types=True)
    assert len(describe(data)) <= MAX_PAYLOAD
    to_source(data)
    try:
        value = decode(data)
    except Malformed:  # e.g. an invalid date, which only the library rejects
        return
    try:
        again = encode(value, max_bytes=1 << 22)
    except (Opaque, TooLarge):
        return
    counts["values decoded and encoded again"] += 1
    assert encode(decode(again), max_bytes=1 << 22) == again
    if not any(tag in data for tag in (b'"s"', b'"z"', b'"d"')):  # untrusted bytes may state an element twice
        assert equal(data, again, nan_equal=True), (data, again)


def read_pair(a: bytes, b: bytes) -> None:
    """Compare bytes as two encoded values."""
    try:
        validate(a)
        validate(b)
    except Malformed:
        return
    counts["pairs compared"] += 1
    assert equal(a, b, nan_equal=True) == equal(b, a, nan_equal=True)
    if equal(a, b, strict_types=True):
        assert equal(a, b)


def read_near_pair(a: bytes, edits: list[tuple[int, int]]) -> None:
    """Compare encoded values that differ in a few bytes."""
    read_pair(a, changed(a, edits))


def read_stream(data: bytes, step: int) -> None:
    """Read bytes from a channel, `step` at a time."""
    counts["streams"] += 1
    reader, n_read = FrameReader(MAX_PAYLOAD), 0
    for start in range(0, len(data), step):
        reader.feed(data[start : start + step])
        try:
            while (frame := reader.next()) is not None:
                again = frame_bytes(frame.tag, frame.call, frame.payload, frame.cpu_us)
                assert data[n_read : n_read + len(again)] == again
                assert len(frame.payload) <= MAX_PAYLOAD
                n_read += len(again)
                read_claim(frame)
        except WireError:
            return


def read_claim(frame: Frame) -> None:
    """Read one frame about a call."""
    counts["frames"] += 1
    try:
        outcome = as_outcome(frame)
    except WireError:
        return
    counts["frames accepted"] += 1
    assert (outcome.kind is OutcomeKind.VALUE) == (frame.tag == Tag.VALUE)
    assert outcome.kind not in (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN)
    assert len(outcome.summary) <= 300
    assert (outcome.summary + outcome.error_type).isprintable()


def read_notice(data: bytes) -> None:
    """Read a control message, which has a fixed size."""
    notice = Notice.unpack(data)
    assert NOTICE.pack(*notice) == data


def changed(base: bytes, edits: list[tuple[int, int]]) -> bytes:
    """Return bytes with some of them replaced, removed or inserted."""
    data = bytearray(base)
    for place, what in edits:
        position = place % (len(data) + 1)
        if what < 256 and position < len(data):
            data[position] = what
        elif what < 320:
            data[position : position + 1] = b""
        else:
            data[position:position] = b'[]{}",:0e-"n\\td'[what % 15 : what % 15 + 2]
    return bytes(data)


# -- with hypothesis --

EDITS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=6)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
    | st.binary(max_size=8)
    | st.decimals()
    | st.complex_numbers()
    | st.datetimes()
    | st.timedeltas()
    | st.sets(st.integers() | st.text(max_size=3), max_size=4)
)
PLAIN: st.SearchStrategy[object] = st.deferred(
    lambda: (
        LEAVES
        | st.lists(PLAIN, max_size=3)
        | st.lists(PLAIN, max_size=3).map(tuple)
        | st.dictionaries(st.integers() | st.text(max_size=4), PLAIN, max_size=3)
    )
)
ENCODED = st.builds(changed, PLAIN.map(encode), EDITS) | st.binary(max_size=200)
FRAMES = st.builds(frame_bytes, st.sampled_from(TAGS), st.integers(0, 2**32 - 1), ENCODED, st.integers(0, 2**64 - 1))
STREAMS = st.builds(changed, st.lists(FRAMES, max_size=5).map(b"".join), EDITS)


PROPERTIES: tuple[tuple[Callable[..., None], tuple[st.SearchStrategy[Any], ...]], ...] = (
    (read_value, (ENCODED,)),
    (read_pair, (ENCODED, ENCODED)),
    (read_near_pair, (ENCODED, EDITS)),
    (read_stream, (STREAMS, st.integers(1, 60))),
    (read_notice, (st.binary(min_size=NOTICE.size, max_size=NOTICE.size),)),
)


def with_hypothesis(minutes: float, first_seed: int) -> None:
    """Check the properties in turn until the time is over."""
    until, number = time.monotonic() + 60 * minutes, first_seed
    wanted = settings(
        deadline=None,
        database=None,
        max_examples=_EXAMPLES,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    while time.monotonic() < until:
        for reader, inputs in PROPERTIES:
            seed(number)(wanted(given(*inputs)(reader)))()
        number += 1


# -- with atheris --


def with_atheris(minutes: float, first_seed: int) -> None:
    """Generate inputs guided by the coverage of our code; does not return."""
    import atheris  # type: ignore[import-not-found]  # noqa: PLC0415  -- only this function needs it

    for function in functions_of(wire, process, comparison, decoding, encoding, source, tree):
        atheris.instrument_func(function)  # in place

    def one(data: bytes) -> None:
        kind, rest = data[:1], data[1:]
        if kind < b"\x60":
            read_value(rest)
        elif kind < b"\xa0":
            middle = len(rest) // 2
            read_pair(rest[:middle], rest[middle:])
        else:
            read_stream(rest, 1 + (kind[0] % 40))

    options = [f"-max_total_time={round(60 * minutes)}", f"-seed={first_seed + 1}", "-max_len=400", "-timeout=10"]
    corpus = Path(tempfile.mkdtemp(prefix="codea1-fuzzing-"))
    atexit.register(shutil.rmtree, corpus)
    for number, plain in enumerate(_SEEDS):
        (corpus / f"value{number}").write_bytes(b"\x00" + encode(plain))
        (corpus / f"stream{number}").write_bytes(b"\xff" + frame_bytes(TAGS[number], number, encode(plain)))
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def functions_of(*modules: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions and methods that these modules define."""
    for module in modules:
        for held in vars(module).values():
            for each in (held, *vars(held).values()) if isinstance(held, type) else (held,):
                if isinstance(each, FunctionType) and each.__module__ == module.__name__:
                    yield each


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="default 1")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("--atheris", action="store_true", help="inputs guided by coverage")
    options = parser.parse_args()
    fuzz: Callable[[float, int], None] = with_atheris if options.atheris else with_hypothesis
    for plain in _SEEDS:  # start with valid ones
        read_value(encode(plain))
    fuzz(options.minutes, options.seed)
    print(", ".join(f"{number:,} {what}" for what, number in sorted(counts.items())))


if __name__ == "__main__":
    main()
