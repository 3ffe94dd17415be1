"""Exports a Mistake Book as a pytest file, a regression suite for programs that you trust."""

from __future__ import annotations

import re
from pathlib import Path

from codea1_env import values
from codea1_env.book.files import ExportReport
from codea1_env.book.store import MistakeBook
from codea1_env.problems.problem import Problem, ProblemSet, SkippedRow
from codea1_env.records.whole_files import write_text
from codea1_env.rules.mistake_book import BookEntry

_HEADER = '''\
"""Cases that a program once failed, from a Mistake Book.

    CANDIDATES=folder python -m pytest {file_name}

The folder (by default `candidates` beside this file) contains one program per problem, with the name in the comment
above each test. A problem without a program is skipped.

Programs run inside pytest's own process without a sandbox: test only programs that you trust.
"""

import math
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
{imports}
CANDIDATES = Path(os.environ.get("CANDIDATES") or Path(__file__).parent / "candidates")


def case(expression, expected, *imports):
    return pytest.param(expression, expected, imports)


def run(path, preamble, form, text):
    """Return what a program prints for an input: its words, or its lines as they are."""
    program = "\\n".join([preamble, path.read_text(encoding="utf-8")])
    given = text if text.endswith("\\n") or not text else text + "\\n"
    done = subprocess.run(
        [sys.executable, "-c", program], input=given, capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    return " ".join(done.stdout.split()) if form == "words" else done.stdout.rstrip("\\n")


def value_of(expression, imports, file_name, preamble, form=None):
    """Run the problem's program and evaluate one expression in its namespace; `form` is that of a program's output."""
    path = CANDIDATES / file_name
    if not path.exists():
        pytest.skip(f"no program {{path}}")
    namespace = {{"__name__": path.stem, "__file__": str(path)}}
    if form:
        namespace["run"] = partial(run, path, preamble, form)
    sources = () if form else (preamble, path.read_text(encoding="utf-8"))
    for source in (*sources, *imports):
        exec(compile(source, str(path), "exec"), namespace)
    return eval(expression, namespace)


def fits(number):
    """Return whether a float can represent the number."""
    try:
        float(number)
    except OverflowError:
        return False
    return True


def same(actual, expected):
    """Equal as plain data; a float equals a number to nine digits, nan equals nan."""
    if hasattr(expected, "tolist"):
        return same(actual.tolist() if hasattr(actual, "tolist") else actual, expected.tolist())
    if isinstance(expected, (list, tuple)):
        kinds_agree = isinstance(actual, type(expected)) and len(actual) == len(expected)
        return kinds_agree and all(same(a, e) for a, e in zip(actual, expected))
    if isinstance(expected, dict):
        keys_agree = isinstance(actual, dict) and actual.keys() == expected.keys()
        return keys_agree and all(same(actual[key], expected[key]) for key in expected)
    pair = (actual, expected)
    are_numbers = all(isinstance(one, (int, float)) for one in pair)
    if are_numbers and any(isinstance(one, float) for one in pair) and all(map(fits, pair)):
        return math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-9) or (actual != actual and expected != expected)
    return actual == expected
'''

_TEST = """

# {problem_id!r}: {file_name} defines {entry_point}
@pytest.mark.parametrize(
    ("expression", "expected", "imports"),
    [
{cases}
    ],
)
def test_{slug}(expression, expected, imports):
    assert same(value_of(expression, imports, {file_name!r}, {preamble!r}{form}), expected)
"""


def export_pytest(book: MistakeBook, path: str | Path, problems: ProblemSet) -> ExportReport:
    """Write one pytest file with one parametrised test per problem, completely or not at all.

    The top of the file says how programs are found. The file contains the expressions as text and evaluates them one by
    one, so that a broken expression does not affect the others.

    Args:
        book: the cases.
        path: the file.
        problems: give entry points and imports; entries of other problems, and of problems with several right answers,
            are reported as skipped.

    Raises:
        UserError: the file cannot be written.
    """
    export = _PytestFile()
    for problem in problems:
        export.add(problem, [stored.entry for stored in book.entries(problem.id)])
    known = {problem.id for problem in problems}
    for problem_id in book.problem_ids():
        if problem_id not in known and (size := book.size(problem_id)):
            export.skipped.append(SkippedRow(problem_id, f"not a problem of {problems.name}; {size} entries"))
    target = Path(path)
    write_text(target, export.text(target.name))
    return ExportReport(export.written, tuple(export.skipped), export.n_nan)


class _PytestFile:
    """Builds the text of the file."""

    def __init__(self) -> None:
        self.written = 0
        self.n_nan = 0
        self.skipped: list[SkippedRow] = []
        self._imports: set[str] = set()
        self._tests: list[str] = []
        self._slugs: set[str] = set()

    def add(self, problem: Problem, entries: list[BookEntry]) -> None:
        """Add the test of one problem, if it has cases."""
        if entries and problem.answers.accepts_others:
            self.skipped.append(
                SkippedRow(problem.id, f"a case cannot state several right answers; {len(entries)} entries")
            )
            return
        cases = [text for entry in entries if (text := self._case(problem, entry)) is not None]
        if not cases:
            return
        slug = self._slug(problem.id)
        self._tests.append(
            _TEST.format(
                problem_id=problem.id,
                slug=slug,
                file_name=f"{slug}.py",
                entry_point=problem.entry_point,
                preamble=problem.imports,
                form="" if problem.script is None else f", {problem.script.value!r}",
                cases="\n".join(f"        {text}," for text in cases),
            )
        )

    def text(self, file_name: str) -> str:
        """Return the whole file."""
        imports = "".join(f"{statement}\n" for statement in sorted(self._imports))
        return _HEADER.format(file_name=file_name, imports=imports) + "".join(self._tests)

    def _case(self, problem: Problem, entry: BookEntry) -> str | None:
        expected = values.to_source(entry.key.expected)
        if expected is None:
            place = f"{problem.id} entry {entry.sequence}"
            self.skipped.append(SkippedRow(place, f"no Python source gives its value: {entry.key.expression}"[:300]))
            return None
        self._imports.update(expected.imports)
        self.written += 1
        return f"case({', '.join([repr(entry.key.expression), expected.expression, *map(repr, entry.key.imports)])})"

    def _slug(self, problem_id: str) -> str:
        stem = slug = re.sub(r"\W+", "_", problem_id, flags=re.ASCII)[:100]
        number = 1
        while slug in self._slugs:
            number += 1
            slug = f"{stem}_{number}"
        self._slugs.add(slug)
        return slug
