"""Books as files: what is written reads back as the same case, what cannot be read is named, nothing is executed."""

from __future__ import annotations

import ast
import collections
import datetime
import json
import os
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env import values
from codea1_env.book.files import ExportReport, assert_text, export_official, import_official, merge
from codea1_env.book.store import MergeReport, MistakeBook, StoredEntry
from codea1_env.errors import BrokenInput, UserError
from codea1_env.problems.problem import ProblemSet
from codea1_env.rules.mistake_book import BookKey, Provenance
from codea1_env.rules.reading.literals import LiteralError, encoded_literal
from tests.support.books import entry, filled, identity

NAN = b'{"f":"nan"}'


def counted(book: MistakeBook) -> dict[tuple[str, BookKey], int]:
    return {(one.problem_id, one.entry.key): one.entry.frequency for one in book.entries()}


def official(path: Path, *testcases: Any, question: str = "p", **fields: Any) -> Path:
    rows = [one if isinstance(one, dict) else {"testcase": one, "frequency": 1} for one in testcases]
    path.write_text(json.dumps({question: {"attack_testcases": rows, "blacklisted": False, **fields}}))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "book.json"


# -- the release's JSON --

AWKWARD = [
    entry(r"f('a\nb')", "line\nbreak", 3),  # D8: a newline, a backslash, both kinds of quote
    entry("f('back\\\\slash')", "\\n is not a line break"),
    entry("""f("it's", 'say "so"')""", """it's "so\""""),
    entry("f('''two\nlines''')", "\r\n\t\0\x1b"),
    entry("f('é', '\U0001f600')", "é\U0001f600\ud800"),
    entry("f(1)", float("nan")),  # D10
    entry("f(2)", [float("inf"), -float("inf"), {"x": float("nan")}]),
    entry("f(3)", {"pear", "fig", "plum"}),  # D11
    entry("f(4)", frozenset({frozenset(), frozenset({1})})),
    entry("f(5)", set()),
    entry("f(6)", (1,)),
    entry("f(Decimal('1.5'))", Decimal("2.50"), 2, "from decimal import Decimal"),
    entry("f(7)", Decimal("NaN")),
    entry("f(8)", Fraction(-1, 3)),
    entry("f(9)", 2**5000),
    entry("f(9.5)", -(2**50000)),
    entry("f(10)", complex(-0.0, float("inf"))),
    entry("f(11)", bytearray(b"\x00'")),
    entry("f(12)", collections.deque([1, 2])),
    entry("f(13)", datetime.datetime(2020, 2, 29, 1, 2, 3, 4, tzinfo=datetime.UTC)),
    entry("f(14)", [datetime.date(1, 1, 1), datetime.time(23, 59), datetime.timedelta(-1, 5)]),
    entry("f(15)", range(3, 9, -2)),
    entry("f(16)", np.arange(6.0).reshape(2, 3)),
    entry("bool(f(17) > 1)", True),
    entry("f(18) if True else 0", 1),
    entry("f(19) == f(20)", False),
    entry("lambda: f(21)", 0),
    entry("math.floor(f(22))", 1, 1, "import math", "from os import path as p"),
]


def test_every_awkward_case_survives_the_way_out_and_back(path):
    with filled(*AWKWARD) as book, MistakeBook() as back:
        exported = export_official(book, path)
        imported = import_official(back, path)
        assert (exported.written, exported.skipped, exported.n_nan) == (len(AWKWARD), (), 2)
        assert (imported.added, imported.combined, imported.skipped) == (len(AWKWARD), 0, ())
        assert counted(back) == counted(book)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(st.integers() | st.text() | st.floats(), max_size=3)
        | st.frozensets(st.text(), max_size=3)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(argument=st.text(), value=plain)
def test_any_text_and_any_plain_value_reads_back_as_the_same_case(argument, value):
    one = entry(f"f({argument!r})", value)
    text = assert_text(one.key)
    assert text is not None
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Assert)
    assert isinstance(statement.test, ast.Compare)
    assert encoded_literal(statement.test.comparators[0]) == one.key.expected


def test_the_file_has_the_releases_layout(path):
    with filled(entry("f(1)", 2, 3), entry("f('x')", [1.5])) as book:
        assert export_official(book, path) == ExportReport(2, ())
    assert json.loads(path.read_text()) == {
        "p": {
            "attack_testcases": [
                {"testcase": "assert f(1) == 2", "frequency": 3},
                {"testcase": "assert f('x') == [1.5]", "frequency": 1},
            ],
            "blacklisted": False,
        }
    }
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_what_no_assert_can_state_is_reported_and_the_rest_written(path):
    point = b'{"k":["Point",[["x",1]]]}'
    values.validate(point)
    stuck = entry("f(1)", 1)
    unreadable = entry("f(2) # text", 1)
    with filled(replace(stuck, key=replace(stuck.key, expected=point)), unreadable, entry("f(3)", 1)) as book:
        report = export_official(book, path)
    assert report.written == 1
    assert [one.place for one in report.skipped] == ["p entry 1", "p entry 2"]
    assert "f(1)" in report.skipped[0].reason


def test_the_releases_own_spelling_of_floats_is_understood(path):
    official(path, "assert f(1) == nan", "assert f(2) == [inf, -inf]", "assert f(3) == -1.5e-07", "assert f(4) == 1+2j")
    with MistakeBook() as book:
        assert import_official(book, path).skipped == ()
        found = [one.entry.key.expected for one in book.entries()]
    assert found == [NAN, b'[{"f":"inf"},{"f":"-inf"}]', b"-1.5e-07", values.encode(1 + 2j)]


POISON = [
    # D9: what has no literal, and what is no Python at all
    "assert f(1) == <N object at 0x7f>",
    "assert f(1) == defaultdict(<class 'int'>, {1: 2})",
    "assert f(1) == N(1)",
    "assert f(1) == [x for x in range(3)]",
    "assert f(1) == x",
    "assert f(1) == ...",
    "assert f(1) == {**{}}",
    "assert f(1) == {[]: 1}",
    "assert f(1) == -'a'",
    "assert f(1) == -True",
    "assert f(1) == 1 + 2",
    "assert f(1) == f'{1}'",
    "assert f(1) == not 1",
    "assert f(1) == Fraction(1, 0)",
    "assert f(1) == Fraction('1e1000000000')",
    "assert f(1) == float('12')",
    "assert f(1) == bytearray(10000000000)",
    "assert f(1) == set(range(10000000000))",
    "assert f(1) == set(range(10000000000), *[1])",
    "assert f(1) == deque('ab', maxlen=1)",
    "assert f(1) == numpy.array([1], dtype='S100000000000')",
    "assert f(1) == numpy.array([1] , dtype='S999999').reshape((1, -5))",
    "assert f(1) == numpy.array(range(9), dtype='<i8')",
    "assert f(1) == 'a'.reshape(1)",
    "assert f(1) == datetime.date(0, 0, 0)",
    "assert f(1) == Decimal('x')",
    "assert f(1) == Decimal(**{'value': '1'})",
    f"assert f(1) == {'(' * 500}{')' * 500}",
    f"assert f(1) == {'-' * 5000}1",
    f"assert f(1) == {'9' * 5000}",
    f"assert f(1) == '{'x' * 70_000}'",
    f"assert f(1) == '{'x' * 300_000}'",
    "assert f(1) != 2",
    "assert f(1) == 2 == 2",
    "assert f(1)",
    "x = 1; assert f(x) == 2",
    "assert f(1) == 2; assert f(2) == 3",
    "",
    "\0",
    "assert f('\ud800') == 1",
    "assert f(1) ==",
]


@pytest.mark.parametrize("text", POISON, ids=range(len(POISON)))
def test_what_is_no_case_is_skipped_with_its_place_and_a_reason(path, text):
    official(path, "assert f(0) == 0", text)
    with MistakeBook() as book:
        report = import_official(book, path)
        assert (report.added, book.size()) == (1, 1)
    (skipped,) = report.skipped
    assert skipped.place == f"{path} p testcase 2"
    assert 0 < len(skipped.reason) <= 300


def test_nothing_is_executed(path, tmp_path):
    trap = tmp_path / "sprung"
    touch = f"__import__('pathlib').Path({str(trap)!r}).touch()"
    official(path, f"assert f(1) == {touch}", f"assert f({touch}) == 1", f"import this; assert f({touch}) == 2")
    with MistakeBook() as book:
        assert (import_official(book, path).added, book.size()) == (2, 2)
        assert [one.entry.direct for one in book.entries()] == [False, False]
    assert not trap.exists()
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "row", [1, None, {}, {"testcase": 1, "frequency": 1}, {"testcase": "assert f(1) == 1"}]
    + [{"testcase": "assert f(1) == 1", "frequency": n} for n in (0, -1, 1.5, "1", True, 10**30)],
)  # fmt: skip
def test_broken_rows_are_skipped(path, row):
    path.write_text(json.dumps({"p": {"attack_testcases": [row, {"testcase": "assert f(2) == 2", "frequency": 2}]}}))
    with MistakeBook() as book:
        report = import_official(book, path)
        assert list(counted(book).values()) == [2]
    assert [one.place for one in report.skipped] == [f"{path} p testcase 1"]


def test_blacklisted_and_broken_questions_are_skipped(path):
    official(path, "assert f(1) == 1", blacklisted=True)
    broken = {"q": {"attack_testcases": "no"}, "r": [], "s": {"attack_testcases": []}}
    path.write_text(json.dumps(json.loads(path.read_text()) | broken))
    with MistakeBook() as book:
        report = import_official(book, path)
        assert book.size() == 0
    assert [one.place for one in report.skipped] == [f"{path} p", f"{path} q", f"{path} r"]
    assert report.skipped[0].reason == "blacklisted, with 1 testcases"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_book_changes_nothing(path, content):
    path.write_bytes(content)
    with MistakeBook() as book, pytest.raises(BrokenInput, match=str(path)):
        import_official(book, path)
    with MistakeBook() as book, pytest.raises(BrokenInput, match="No such file"):
        import_official(book, path.parent / "missing")


def test_one_set_in_many_spellings_becomes_one_entry(path):
    spellings = ["{'a', 'b'}", "{'b', 'a'}", "set(['b', 'a', 'b'])"]
    official(path, *({"testcase": f"assert f(1) == {one}", "frequency": 2} for one in spellings))
    with MistakeBook() as book:
        report = import_official(book, path)
        assert (report.added, report.combined, list(counted(book).values())) == (1, 2, [6])


def test_an_import_adds_to_what_is_there_and_says_where_it_came_from(path):
    official(path, "assert f(1) == 1", "assert g(f(2)) == 2", "assert f(*x) == 3", question="toy/f")
    problems = ProblemSet("toys", (identity("toy/f", "g"),))
    with filled(entry("f(1)", 1, 4), problem_id="toy/f") as book:
        import_official(book, path, problems)
        first, second, third = (one.entry for one in book.entries())
    assert (first.frequency, first.provenance, first.direct) == (5, Provenance(), True)
    assert (second.provenance, second.direct) == (Provenance(run="import of book.json"), False)
    assert third.direct is False
    with MistakeBook() as book:
        import_official(book, path, problems)
        assert [one.entry.direct for one in book.entries()] == [False, False, False]  # f is not the entry point
    with MistakeBook() as book:
        import_official(book, path)
        assert [one.entry.direct for one in book.entries()] == [True, False, False]


def test_a_file_that_cannot_be_written_leaves_the_old_one(path, tmp_path):
    path.write_text("old")
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    with filled(entry("f(1)", 1)) as book:
        for target in (tmp_path / "no" / "folder.json", tmp_path):
            with pytest.raises(UserError, match="cannot be written"):
                export_official(book, target)
        draft.mkdir()
        with pytest.raises(UserError, match="cannot be written"):
            export_official(book, path)
    draft.rmdir()
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_literals_in_other_forms_are_refused_by_name():
    with pytest.raises(LiteralError, match=r"not a literal: open\('x'\)"):
        encoded_literal(ast.parse("[1, open('x')]", mode="eval").body)


# -- merging --


def test_merging_adds_up_counts_and_continues_rounds(tmp_path):
    old = replace(entry("f(1)", 1, 2), added_round=1, provenance=Provenance(run="old"))
    new = replace(entry("f(1)", 1, 3), added_round=4, last_replayed_round=5, provenance=Provenance(run="new"))
    with MistakeBook(tmp_path / "a.sqlite") as into, MistakeBook(tmp_path / "b.sqlite") as other:
        into.absorb([StoredEntry("p", new), StoredEntry("p", entry("f(2)", 2))], {"p": 6})
        other.absorb(
            [StoredEntry("p", old), StoredEntry("p", entry("f(3)", 3)), StoredEntry("q", old)], {"p": 2, "r": 9}
        )
        assert merge(into, other) == MergeReport(added=2, combined=1)
        merged = {one.entry.expression: one.entry for one in into.entries("p")}
        assert list(merged) == ["f(1)", "f(2)", "f(3)"]
        both = merged["f(1)"]
        assert (both.frequency, both.added_round, both.last_replayed_round) == (5, 1, 5)
        assert (both.provenance.run, both.n_failed) == ("old", 5)
        assert [into.round_of(problem_id) for problem_id in "pqr"] == [6, 0, 9]
        assert (into.size(), into.size("q"), other.size()) == (4, 1, 3)


def test_a_book_is_not_merged_into_itself(tmp_path):
    with (
        MistakeBook(tmp_path / "a.sqlite") as book,
        MistakeBook(tmp_path / "a.sqlite") as same,
        MistakeBook() as memory,
    ):
        for into, other in ((book, book), (book, same), (memory, memory)):
            with pytest.raises(UserError, match="into itself"):
                merge(into, other)
