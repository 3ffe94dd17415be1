"""Import and export of Mistake Books as the JSON of the Code-A1 release, and the merging of two books."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env import values
from codea1_env.book.store import MergeReport, MistakeBook, StoredEntry
from codea1_env.errors import BrokenInput, UserError
from codea1_env.problems.problem import ProblemSet, SkippedRow
from codea1_env.problems.python_source import parse
from codea1_env.records.whole_files import write_text
from codea1_env.rules.mistake_book import BookEntry, BookKey, Provenance
from codea1_env.rules.reading.direct_calls import is_direct_call
from codea1_env.rules.reading.literals import LiteralError, encoded_literal

_MAX_TEXT = 200_000
_MAX_FREQUENCY = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ImportReport(MergeReport):
    """What an import did; `combined` counts lines, whose frequencies were added up."""

    skipped: tuple[SkippedRow, ...]
    """Lines that could not be read as a case."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export did."""

    written: int
    skipped: tuple[SkippedRow, ...]
    """Entries that could not be written."""
    n_nan: int = 0
    """How many of the written entries expect a nan somewhere; the release's `==` never confirms these."""


def merge(into: MistakeBook, other: MistakeBook) -> MergeReport:
    """Add everything in `other` to `into`, in one transaction.

    Counts of equal cases are added up, and the provenance of the older entry is kept. A problem's round counter becomes
    the larger of the two. A bound on entries applies when the next round is recorded.

    Raises:
        UserError: both are the same book, or contain verdicts of different versions of the judge.
    """
    if into is other or (into.path is not None and into.path == other.path):
        raise UserError(f"cannot merge a Mistake Book into itself: {into.path or 'in memory'}")
    rounds = {problem_id: other.round_of(problem_id) for problem_id in other.problem_ids()}
    return into.absorb(other.entries(), rounds, other.departures(), judge_version=other.judge_version)


def import_official(book: MistakeBook, path: str | Path, problems: ProblemSet | None = None) -> ImportReport:
    """Add the cases of a book that the Code-A1 release has written, in one transaction.

    `{question: {"attack_testcases": [{"testcase": "assert f(1) == 2", "frequency": 3}], "blacklisted": false}}`.
    Nothing is executed. A line whose value is not a literal, or that is not Python, is skipped with its reason. The
    release's escaping turns some lines into other tests; these cannot be recognised without running the solution.

    Args:
        book: receives the cases.
        path: the JSON file.
        problems: give the entry points; for unknown problems it is the outermost call of each expression.

    Raises:
        BrokenInput: the file cannot be read or has another layout.
        UserError: the book contains verdicts of another version of the judge.
    """
    source = Path(path)
    skipped: list[SkippedRow] = []
    found = list(_official_entries(book, _read_json(source), source, problems, skipped))
    report = book.absorb(found, {})
    return ImportReport(report.added, report.combined, tuple(skipped))


def export_official(book: MistakeBook, path: str | Path) -> ExportReport:
    """Write the book as the release's JSON (see `import_official`), completely or not at all.

    `import_official` reads every written line as the same case. Entries that no assert can express (dataclasses) are
    skipped and reported.

    Raises:
        UserError: the file cannot be written.
    """
    questions: dict[str, dict[str, Any]] = {}
    skipped: list[SkippedRow] = []
    written = n_nan = 0
    for stored in book.entries():
        text = assert_text(stored.entry.key)
        if text is None:
            place = f"{stored.problem_id} entry {stored.entry.sequence}"
            skipped.append(SkippedRow(place, f"no assert can express this case: {stored.entry.key.expression}"[:300]))
            continue
        question = questions.setdefault(stored.problem_id, {"attack_testcases": [], "blacklisted": False})
        question["attack_testcases"].append({"testcase": text, "frequency": stored.entry.frequency})
        written += 1
        n_nan += b'{"f":"nan"}' in stored.entry.key.expected  # inside a string the quotes would have backslashes
    write_text(Path(path), json.dumps(questions, indent=2))
    return ExportReport(written, tuple(skipped), n_nan)


def assert_text(key: BookKey) -> str | None:
    """Return one line of Python that states the case and that is read as the same case; None if there is none."""
    expected = values.to_source(key.expected)
    if expected is None:
        return None
    imports = dict.fromkeys((*key.imports, *expected.imports))
    for expression in (key.expression, f"({key.expression})"):  # parentheses for operators weaker than ==
        text = "; ".join((*imports, f"assert {expression} == {expected.expression}"))
        try:
            found = _read_assert(text)
        except LiteralError:
            continue
        if (found.expression, found.expected) == (key.expression, key.expected):
            return text
    return None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BrokenInput(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BrokenInput(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise BrokenInput(f"{path}: expected an object of questions, found {type(content).__name__}")
    return content


def _official_entries(
    book: MistakeBook, content: dict[str, Any], path: Path, problems: ProblemSet | None, skipped: list[SkippedRow]
) -> Iterator[StoredEntry]:
    entry_points = {problem.id: problem.entry_point for problem in problems or ()}
    provenance = Provenance(run=f"import of {path.name}")
    for question, record in content.items():
        round_number = book.round_of(question)
        for number, row in enumerate(_rows(record, question, path, skipped), start=1):
            try:
                frequency = _frequency(row)
                key = _read_assert(row["testcase"])
            except LiteralError as error:
                skipped.append(SkippedRow(f"{path} {question} testcase {number}", str(error)))
                continue
            direct = is_direct_call(key.expression, entry_points.get(question) or _outermost_call(key.expression))
            counts = (frequency, frequency, frequency)
            yield StoredEntry(question, BookEntry(key, direct, *counts, round_number, 0, number, provenance))


def _rows(record: Any, question: str, path: Path, skipped: list[SkippedRow]) -> list[Any]:
    rows = record.get("attack_testcases") if isinstance(record, dict) else None
    if not isinstance(rows, list):
        skipped.append(SkippedRow(f"{path} {question}", "no list attack_testcases"))
        return []
    if record.get("blacklisted"):
        skipped.append(SkippedRow(f"{path} {question}", f"blacklisted, with {len(rows)} testcases"))
        return []
    return rows


def _frequency(row: Any) -> int:
    if not isinstance(row, dict) or not isinstance(row.get("testcase"), str):
        raise LiteralError("no text testcase")
    frequency = row.get("frequency")
    if type(frequency) is not int or not 1 <= frequency <= _MAX_FREQUENCY:
        raise LiteralError(f"frequency {frequency!r}: expected a number from 1 to {_MAX_FREQUENCY}"[:200])
    return frequency


def _read_assert(text: str) -> BookKey:
    """Read `import ..; assert expression == literal`.

    Raises:
        LiteralError: anything else.
    """
    if len(text) > _MAX_TEXT:
        raise LiteralError(f"longer than {_MAX_TEXT} characters")
    try:
        body = parse(text, "it").body
    except BrokenInput as error:
        raise LiteralError(str(error)[:200]) from error
    match body:
        case [*imports, ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]))]:
            kept = [node for node in imports if not _serves_only(node, left, right)]
            texts = tuple(ast.get_source_segment(text, node) or "" for node in kept)
            return BookKey(ast.get_source_segment(text, left) or "", texts, encoded_literal(right))
    raise LiteralError("not of the form `assert expression == value`")


def _serves_only(statement: ast.stmt, expression: ast.expr, value: ast.expr) -> bool:
    """Return whether only the value needs an import."""
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        raise LiteralError("not of the form `assert expression == value`")
    bound = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    return not bound & _names(expression) and bool(bound & _names(value))


def _names(node: ast.expr) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def _outermost_call(expression: str) -> str:
    match ast.parse(expression, mode="eval").body:
        case ast.Call(func=ast.Name(id=name)):
            return name
    return ""
