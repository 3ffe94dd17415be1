"""Replies of models become candidates and suites, in one of two readings; any text at all is accepted.

STRICT is ours. A coder's program is found as `rules.reading.strict_programs` says, a tester's asserts as
`strict_suites` says: operators are respected, the entry point must be called, every dropped piece has a reason. What a
test may mention is in `allowed_names`; naming anything else, or the entry point without calling it, is FORBIDDEN_NAME.
What a reasoning model thinks before it answers is no part of either (`thinking`).

RELEASE is what the Code-A1 release does (`rules.reading.release`), for comparison.

In both, a rejection whose reason `rules.validation` counts as invalid is a failed attempt at a test; the other reasons
(NOT_AN_ASSERT, NO_COMPARISON, NO_CODE, ...) are for people. Duplicates are kept: whether two cases are the same depends
on the solution's values.
"""

from __future__ import annotations

import re
import string
from collections import Counter

from codea1_env.facts.submissions import COUNTED_AS_INVALID, Candidate, Rejection, RejectionReason, Suite, TestCase
from codea1_env.rules.reading import release, strict_programs
from codea1_env.rules.reading.fences import Block, Fenced, read_fences
from codea1_env.rules.reading.rejections import Rejections
from codea1_env.rules.reading.statements import read_statements
from codea1_env.rules.reading.strict_suites import SuiteReader, holds_assert
from codea1_env.rules.reading.thinking import without_thinking
from codea1_env.rules.ruleset import Reading

MAX_CHARACTERS = 262_144
"""Longest reply that is read, unless the caller says otherwise; some sixteen times the release's longest reply."""

MAX_NODES = 8_192
"""Most nodes of syntax in all of a reply's cases that are no plain ones, with names filled in: reading them takes this
process about half a second."""

MAX_RELEASE_CASES = 512
"""Most cases of a reply in the RELEASE reading, which itself knows no bound: each may take a program's whole time."""

MAX_TOKENS = 65_536
"""Most words, numbers and signs of a reply that is read: parsing them takes up to half a second and 100 MB."""

MAX_FIELDS = 8_192
"""Most braces of a reply that is read and seems to hold an f-string: Python parses each replacement field by itself."""

_MAX_FIELD_STEPS = 1 << 28  # for each field, Python passes over its f-string up to there
_TOKEN = re.compile(r"\w+|[^\w \t]")
_F_STRING = re.compile(r"(?<!\w)(?:[fF][rR]?|[rR][fF])['\"]")

_SURPLUS = f"at most {MAX_RELEASE_CASES} cases of a reply are run"
_UNFINISHED = "is still thinking where it ends: no answer follows"

# Joiners have no picture of their own, but emoji and several scripts are written with them.
_HARMLESS = frozenset(string.whitespace) | {"\u200c", "\u200d"}


def read_candidate(
    reply: str, reading: Reading, *, entry_point: str = "", max_program_bytes: int | None = None
) -> Candidate:
    """Return the program in a coder's reply, or why there is none.

    Args:
        reply: any text.
        reading: STRICT takes fences of any style, several blocks, or bare code; RELEASE the first ```` ```python ````
            block, else the whole reply.
        entry_point: the function that the program must define, used to choose among blocks; may be empty.
        max_program_bytes: a longer program is TOO_LONG, in UTF-8, as is a reply of more than `MAX_CHARACTERS`,
            `MAX_TOKENS` or `MAX_FIELDS`; None: no such bound.
    """
    rejection = _unread(reply, MAX_CHARACTERS)
    if rejection is not None:
        return Candidate("", rejection)
    detail = "holds no program"
    if reading is Reading.RELEASE:
        program = release.find_program(reply)
    else:
        answer = without_thinking(_normalised(reply))
        program = strict_programs.find_program(read_fences(answer.text), entry_point)
        detail = _UNFINISHED if answer.unfinished else detail
    if not program.strip():
        return Candidate("", Rejection(RejectionReason.NO_CODE, _cut(reply), 0, detail))
    n_bytes = len(program.encode("utf-8", "surrogatepass"))
    if max_program_bytes is not None and n_bytes > max_program_bytes:
        detail = f"a program of {n_bytes:,} bytes, and at most {max_program_bytes:,} are run"
        return Candidate("", Rejection(RejectionReason.TOO_LONG, _cut(program), 0, detail))
    return Candidate(program)


def read_suite(
    reply: str,
    reading: Reading,
    *,
    entry_point: str,
    tests_per_suite: int | None = None,
    max_characters: int = MAX_CHARACTERS,
) -> Suite:
    """Return the test cases in a tester's reply, in order, and every dropped piece.

    Args:
        reply: any text.
        reading: how it is read, see above. An empty reply gives an empty suite in both (the release stops there with
            a ZeroDivisionError, method.md 1.2).
        entry_point: the function under test. RELEASE only uses it to tell which cases are direct.
        tests_per_suite: STRICT drops cases beyond it as TOO_MANY; None: no
            bound. RELEASE drops them beyond `MAX_RELEASE_CASES` whatever this says.
        max_characters: a longer reply is TOO_LONG, as is one of more than `MAX_TOKENS` or `MAX_FIELDS`, and an assert
            that brings the reply beyond `MAX_NODES`.

    Returns:
        A suite that lists at most `reading.rejections.MAX_LISTED` rejections and counts all. Its `nonprintable_share`
        is over all characters of the reply: STRICT counts what is neither printable nor white space (control
        characters, lone surrogates), RELEASE what is not in `string.printable`.
    """
    share = _nonprintable_share(reply, reading)
    rejection = _unread(reply, max_characters)
    if rejection is not None:
        return Suite((), (rejection,), share)
    if reading is Reading.RELEASE:
        cases, rejections = release.read_tests(reply, entry_point, min(max_characters, MAX_NODES))
        for case in cases[MAX_RELEASE_CASES:]:
            rejections.add(RejectionReason.TOO_MANY, case.to_assert(), case.line, _SURPLUS)
        cases = cases[:MAX_RELEASE_CASES]
    else:
        cases, rejections = _read_strictly(_normalised(reply), entry_point, tests_per_suite, max_characters)
    if not cases and not rejections.listed:
        rejections.add(RejectionReason.NO_CODE, _cut(reply), 0, "holds no assert")
    n_more_invalid = sum(n for reason, n in rejections.more.items() if reason in COUNTED_AS_INVALID)
    return Suite(tuple(cases), tuple(rejections.listed), share, n_more_invalid)


def _read_strictly(
    text: str, entry_point: str, tests_per_suite: int | None, max_characters: int
) -> tuple[list[TestCase], Rejections]:
    answer = without_thinking(text)
    fenced = read_fences(answer.text)
    blocks = [read_statements(block.text, block.first_line) for block in _test_blocks(fenced)]
    reader = SuiteReader(entry_point, tests_per_suite, min(max_characters, MAX_NODES))
    if not any(map(holds_assert, blocks)):
        outside = read_statements(fenced.outside, 1)
        if holds_assert(outside):
            reader.prose_is_broken = False
            blocks = [outside]
    for pieces in blocks:
        reader.read(pieces)
    if answer.unfinished and not (reader.cases or reader.rejections.listed):
        reader.reject(RejectionReason.NO_CODE, _cut(text), 0, _UNFINISHED)
    return reader.cases, reader.rejections


def _test_blocks(fenced: Fenced) -> list[Block]:
    """Return the blocks that may hold tests: those labelled Python, others only if they mention `assert`."""
    return [
        block for block in fenced.blocks if block.may_be_python and (block.is_labelled_python or "assert" in block.text)
    ]


def _unread(reply: str, max_characters: int) -> Rejection | None:
    if len(reply) > max_characters:
        detail = f"{len(reply):,} characters, and at most {max_characters:,} are read"
        return Rejection(RejectionReason.TOO_LONG, _cut(reply), 0, detail)
    if len(reply) > MAX_TOKENS and _TOKEN.subn("", reply)[1] > MAX_TOKENS:
        detail = f"more than {MAX_TOKENS:,} words, numbers and signs"
        return Rejection(RejectionReason.TOO_LONG, _cut(reply), 0, detail)
    if _has_too_many_fields(reply):
        return Rejection(RejectionReason.TOO_LONG, _cut(reply), 0, "too many braces for a text with an f-string")
    if not reply.strip():
        return Rejection(RejectionReason.EMPTY_REPLY, "", 0, "nothing but white space")
    return None


def _has_too_many_fields(reply: str) -> bool:
    n_fields = reply.count("{")
    if n_fields <= MAX_FIELDS and n_fields * len(reply) <= _MAX_FIELD_STEPS:
        return False
    return _F_STRING.search(reply) is not None


def _normalised(reply: str) -> str:
    """Return `reply` with line feeds for all of Python's line ends, and without a byte order mark."""
    return reply.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _nonprintable_share(reply: str, reading: Reading) -> float:
    is_printable = reply.replace("\n", "").isprintable()
    if not reply or (is_printable and (reading is Reading.STRICT or reply.isascii())):  # most replies
        return 0.0
    counts = Counter(reply)
    if reading is Reading.RELEASE:
        n_bad = sum(n for character, n in counts.items() if character not in string.printable)
    else:
        n_bad = sum(n for character, n in counts.items() if not _is_harmless(character))
    return n_bad / len(reply)


def _is_harmless(character: str) -> bool:
    # Beyond Latin-1, isspace() is true of spaces only; below, also of control characters.
    is_space = character >= "\xa0" and character.isspace()
    return character.isprintable() or is_space or character in _HARMLESS


def _cut(reply: str) -> str:
    return reply.strip()[:200] if len(reply) < 10_000 else reply[:200]
