"""Read the replies of models into candidates and suites, in one of two readings; any text is accepted.

STRICT is the reading of this project. `rules.reading.strict_programs` finds a coder's program, without the tests
that the coder has added to it, and `strict_suites`
reads a tester's asserts: operators are respected, the entry point must be called, and every dropped piece has a reason.
`allowed_names` lists the names that a test may use; any other name, and the entry point without a call, is
FORBIDDEN_NAME. Both get the answer in a reply (`answers`), without reasoning and the tokens of chat templates.

RELEASE is the reading of the Code-A1 release (`rules.reading.release`), for comparison.

In both, a rejection counts as a failed attempt at a test if its reason is in `COUNTED_AS_INVALID`. The other reasons
(NOT_AN_ASSERT, NO_COMPARISON, NO_CODE, ...) are for people. Duplicates are kept here, since the solution's values
decide whether two cases are the same.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import string
from collections import Counter
from collections.abc import Iterable

from codea1_env.facts.answers import OutputForm, case_as_printed
from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.submissions import (
    COUNTED_AS_INVALID,
    Candidate,
    Rejection,
    RejectionReason,
    Rejections,
    Suite,
    TestCase,
)
from codea1_env.python_text import TextBudget, UnreadableError, parse, remembered_up_to
from codea1_env.rules.reading import strict_programs
from codea1_env.rules.reading.answers import read_answer, read_fences
from codea1_env.rules.reading.direct_calls import is_direct_call
from codea1_env.rules.reading.functions import holds_assert
from codea1_env.rules.reading.logical_lines import literals
from codea1_env.rules.reading.statements import Places, read_statements, sources_of
from codea1_env.rules.reading.strict_suites import SuiteReader
from codea1_env.rules.ruleset import Reading

MAX_CHARACTERS = 65_536
"""Longest reply that is read, unless the caller says otherwise; about four times the release's longest reply.
Parsing it takes up to half a second and 100 MB."""

MAX_RELEASE_CASES = 512
"""Most cases of a reply in the RELEASE reading. The release has no such limit, but each case may use a program's whole
time."""

_SURPLUS = f"at most {MAX_RELEASE_CASES} cases of a reply are run"
_UNFINISHED = "the reply ends within its thinking, before an answer"

_LISTED = re.compile(
    r"^[ \t]*(?:(?:[-*+\u2022]|\d{1,4}[.):])[ \t]+)?(?P<ticks>`{1,2})(?P<quoted>assert\b[^`\n]+)(?P=ticks)[^\n]*$"
    r"|^[ \t]*(?:[-*+\u2022]|\d{1,4}[.):])[ \t]+(?:\*\*[^*\n]*\*\*:?[ \t]*)?(?P<code>assert\b[^`\n]*)$",
    re.MULTILINE,
)
"""An assert as an item of a list, in backticks or not, or in backticks at the start of a line."""

_LIST = re.compile(r"^[ \t]*(?P<value>[\[{])", re.MULTILINE)
_STATES_TEST = re.compile(r"(?:^|[;:])[ \t]*(?:self\.)?assert", re.MULTILINE)

# Zero-width joiners are invisible, but emoji and several scripts need them.
_CLAIMS = ("bool(", "raises(")  # whose value is a bool, so that an assert needs no other
_HARMLESS = frozenset(string.whitespace) | {"\u200c", "\u200d"}


def read_candidate(
    reply: str, reading: Reading, *, entry_point: str = "", max_program_bytes: int | None = None
) -> Candidate:
    """Return the program in a coder's reply, or the reason why there is none.

    Args:
        reply: any text.
        reading: STRICT reads fences of any style, several blocks, or bare code; RELEASE reads the first
            ```` ```python ```` block, else the whole reply.
        entry_point: the function that the program must define, used to choose among blocks; may be empty.
        max_program_bytes: a program that is longer in UTF-8 is TOO_LONG; None: no such bound. A reply of more than
            `MAX_CHARACTERS` is TOO_LONG in any case. Text that costs more than a `TextBudget` to read counts as text
            that does not parse.
    """
    rejection = _unreadable(reply)
    if rejection is not None:
        return Candidate("", rejection)
    detail = "contains no block of code and does not define what the problem asks for"
    if reading is Reading.RELEASE:
        from codea1_env.rules.reading import release  # noqa: PLC0415  few games read so

        found = strict_programs.Program(release.find_program(reply))
    else:
        budget = TextBudget()
        answer = read_answer(reply, budget)
        found = strict_programs.find_program(read_fences(answer.text, budget), entry_point, budget)
        detail = _UNFINISHED if answer.unfinished else detail
    program = found.text
    if not program.strip():
        return Candidate("", Rejection(RejectionReason.NO_CODE, _excerpt(reply), 0, detail))
    n_bytes = len(program.encode("utf-8", "surrogatepass"))
    if max_program_bytes is not None and n_bytes > max_program_bytes:
        detail = f"a program of {n_bytes:,} bytes; at most {max_program_bytes:,} are run"
        return Candidate("", Rejection(RejectionReason.TOO_LONG, _excerpt(program), 0, detail))
    return Candidate(program, n_own_tests=found.n_own_tests)


def read_suite(
    reply: str,
    reading: Reading,
    *,
    entry_point: str,
    tests_per_suite: int | None = None,
    output: OutputForm | None = None,
    forms: CallForms = PLAIN_CALLS,
    imports: str = "",
) -> Suite:
    """Return the test cases in a tester's reply, in order, and every dropped piece.

    Args:
        reply: any text.
        reading: which text counts as a test, see the module's docstring. Both readings turn an empty reply into an
            empty suite, where the release stops with a ZeroDivisionError (reward.py:305).
        entry_point: the function under test. RELEASE uses it only to decide which cases are direct.
        tests_per_suite: the most cases that STRICT keeps; it drops further ones as TOO_MANY. None keeps all. RELEASE
            ignores it and keeps at most `MAX_RELEASE_CASES`.
        output: for programs on standard input, what counts in an output; predictions are brought to this form.
        forms: what tests of the problem may do besides plain calls (`Problem.calls`); RELEASE ignores it.
        imports: import statements whose names are known to STRICT tests: those of the problem.

    Returns:
        A suite without cases if the reply has more than `MAX_CHARACTERS` (TOO_LONG). An assert is TOO_LONG, too, if it
        brings the cost of the reply beyond a `TextBudget`. The suite lists at most `facts.submissions.MAX_LISTED`
        rejections and counts all of them. Its
        `nonprintable_share` is a share of all characters of the reply: STRICT counts characters that are neither
        printable nor white space (control characters, lone surrogates), RELEASE those outside `string.printable`.
    """
    share = _nonprintable_share(reply, reading)
    rejection = _unreadable(reply)
    if rejection is not None:
        return Suite((), (rejection,), share)
    if reading is Reading.RELEASE:
        from codea1_env.rules.reading import release  # noqa: PLC0415  few games read so

        cases, rejections = release.read_tests(reply, entry_point, TextBudget())
        for case in cases[MAX_RELEASE_CASES:]:
            rejections.add(RejectionReason.TOO_MANY, case.to_assert(), case.line, _SURPLUS)
        cases = cases[:MAX_RELEASE_CASES]
    else:
        cases, rejections = _read_strictly(reply, _reader(entry_point, tests_per_suite, forms, reading, imports))
    if not cases and not rejections.listed:
        rejections.add(RejectionReason.NO_CODE, _excerpt(reply), 0, "contains no assert")
    n_more_invalid = sum(n for reason, n in rejections.more.items() if reason in COUNTED_AS_INVALID)
    if output is not None:
        cases = [case_as_printed(case, output) for case in cases]
    return Suite(tuple(cases), tuple(rejections.listed), share, n_more_invalid)


@remembered_up_to(1024)
def is_readable(case: TestCase, reading: Reading, entry_point: str, forms: CallForms) -> bool:
    """Whether a stored case is one that `read_suite` could have read. So no file makes a sandbox run anything else.

    Args:
        case: from a Mistake Book, which may have been made under other rules, or by hand.
        reading: RELEASE accepts any expression, but evaluates only a direct call in the program's process.
        entry_point: the function under test.
        forms: as in `read_suite`.
    """
    if case.direct and not forms.functions:
        return is_direct_call(case.expression, entry_point)
    if reading is Reading.RELEASE:
        return not case.direct
    claim = case.expression if case.expression.startswith(_CLAIMS) else f"{case.expression} == 0"
    text = "\n".join((*case.imports, f"assert {claim}"))
    if len(text) > MAX_CHARACTERS:
        return False
    reader = _reader(entry_point, None, forms, reading)
    # Not as a reply: a string of the case could hold another answer, in a fence.
    reader.read(read_statements(text, 1, reader.budget))
    if len(reader.cases) != 1 or reader.rejections.listed:
        return False
    (read,) = reader.cases
    return read.imports == case.imports and (read.direct or not case.direct)


def _reader(
    entry_point: str, tests_per_suite: int | None, forms: CallForms, reading: Reading, imports: str = ""
) -> SuiteReader:
    is_strict = reading is Reading.STRICT
    return SuiteReader(entry_point, tests_per_suite, forms=forms, exceptions=is_strict, imports=imports)


def _read_strictly(reply: str, reader: SuiteReader) -> tuple[list[TestCase], Rejections]:
    answer = read_answer(reply, reader.budget)
    fenced = read_fences(answer.text, reader.budget)
    blocks = [
        read_statements(block.text, block.first_line, reader.budget)
        for block in fenced.blocks
        if block.may_be_python and (block.is_labelled_python or "assert" in block.text)
    ]
    if not any(map(holds_assert, blocks)):
        outside = read_statements(_LISTED.sub(_code_of_item, fenced.outside), 1, reader.budget)
        if holds_assert(outside):
            reader.prose_is_broken = False
            blocks = [outside]
        elif listed := _find_listed_tests((*(block.text for block in fenced.blocks), fenced.outside), reader.budget):
            reader.read(read_statements(listed, 1, reader.budget))
            reader.finish()
            return reader.cases, reader.rejections
    reader.places = Places(answer, sources_of(itertools.chain(*blocks)), _column)
    for pieces in blocks:
        reader.read(pieces)
    reader.finish()
    if answer.unfinished and not (reader.cases or reader.rejections.listed):
        reader.rejections.add(RejectionReason.NO_CODE, _excerpt(reply), 0, _UNFINISHED)
    return reader.cases, reader.rejections


def _find_listed_tests(texts: Iterable[str], budget: TextBudget) -> str:
    """Return the tests that are texts in values of JSON, or of Python, one after the other; empty if there are none.

    What is not a value is no fault: there may be several values, and the last one may be cut.
    """
    listed: list[str] = []
    for text in texts:
        begin = _LIST.search(text)
        values = text[begin.start("value") :] if begin is not None and "assert" in text else ""
        for start, end in literals(values):
            literal = values[start:end]
            if "assert" in literal and _STATES_TEST.search(value := _value_of_literal(literal, budget)):
                listed.append(value)
    return "\n".join(listed)


def _value_of_literal(literal: str, budget: TextBudget) -> str:
    """Return the text that a literal of JSON or of Python is; empty for other ones."""
    try:
        return str(json.loads(literal))
    except ValueError:
        pass
    try:
        body = parse(literal, budget).body
    except UnreadableError:
        return ""
    match body:
        case [ast.Expr(value=ast.Constant(value=str() as value))]:
            return value
    return ""


def _code_of_item(item: re.Match[str]) -> str:
    return item["quoted"] or item["code"]


def _column(line: str, code: str) -> int:
    """Return where the code that was read of a line of the answer begins in it: behind a margin, a fence, a bullet."""
    begin = line.find(code)
    item = _LISTED.match(line) if line[:begin].strip() else None
    return begin if item is None or _code_of_item(item) != code else item.start(item.lastgroup or 0)


def _unreadable(reply: str) -> Rejection | None:
    if len(reply) > MAX_CHARACTERS:
        detail = f"{len(reply):,} characters; at most {MAX_CHARACTERS:,} are read"
        return Rejection(RejectionReason.TOO_LONG, _excerpt(reply), 0, detail)
    if not reply.strip():
        return Rejection(RejectionReason.EMPTY_REPLY, "", 0, "nothing but white space")
    return None


def _nonprintable_share(reply: str, reading: Reading) -> float:
    is_printable = reply.replace("\n", "").isprintable()
    if not reply or (is_printable and (reading is not Reading.RELEASE or reply.isascii())):  # most replies
        return 0.0
    counts = Counter(reply)
    if reading is Reading.RELEASE:
        n_bad = sum(n for character, n in counts.items() if character not in string.printable)
    else:
        # From U+00A0 on, isspace() is true only for spaces; below, also for control characters.
        spaces = {character for character in counts if character >= "\xa0" and character.isspace()}
        harmless = _HARMLESS | spaces
        n_bad = sum(n for character, n in counts.items() if not (character.isprintable() or character in harmless))
    return n_bad / len(reply)


def _excerpt(reply: str) -> str:
    return reply.strip()[:200] if len(reply) < 10_000 else reply[:200]
