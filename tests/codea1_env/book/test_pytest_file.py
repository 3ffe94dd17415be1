"""The exported pytest file, run under pytest against right, wrong and missing programs."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env import values
from codea1_env.book.pytest_file import export_pytest
from codea1_env.book.store import MistakeBook, StoredEntry
from codea1_env.problems.problem import GoldenCase, Problem, ProblemSet
from codea1_env.rules.mistake_book import BookEntry, BookKey


def entry(expression: str, value: Any, frequency: int = 1, *imports: str) -> BookEntry:
    key = BookKey(expression, imports, values.encode(value))
    return BookEntry(key, True, frequency, frequency, frequency, 0, 0, 1)


def filled(*entries: BookEntry, problem_id: str = "p") -> MistakeBook:
    book = MistakeBook()
    book.absorb((StoredEntry(problem_id, one) for one in entries), {})
    return book


def toy(problem_id: str, entry_point: str, imports: str = "") -> Problem:
    golden = (GoldenCase(f"{entry_point}(1)", "1"),)
    return Problem(problem_id, "statement", entry_point, f"def {entry_point}(x): return x", golden, imports)


PROBLEMS = ProblemSet("toys", (toy("toy/f", "f", "import math"), toy("toy f", "g"), toy("unplayed", "h")))


def run_pytest(file: Path, candidates: Path | None = None) -> dict[str, int]:
    """Run a file in a process of its own; return how many tests passed, failed, were skipped."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if candidates is not None:
        environment["CANDIDATES"] = str(candidates)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", file.name]
    done = subprocess.run(
        command, cwd=file.parent, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    words = done.stdout.splitlines()[-1].replace(",", "").split()
    return {word: int(n) for n, word in pairwise(words) if word in ("passed", "failed", "skipped")}


def test_the_pytest_file_runs_against_right_and_wrong_programs(tmp_path):
    same = [
        1,
        'it\'s "so"\n',
        [1, (2.0000000001,)],
        {"a": {1}},
        float("nan"),
        Decimal("1.5"),
        np.arange(4).reshape(2, 2),
    ]
    cases = [entry("f(1)", 1), *(entry(f"f({values.to_source(values.encode(v)).expression})", v) for v in same[1:5])]
    cases += [
        entry("f(Decimal('1.5'))", same[5], 1, "from decimal import Decimal"),
        entry("f(numpy.arange(4).reshape(2, 2))", same[6], 1, "import numpy"),
        entry("f(2) if True else 0", 2),
    ]
    suite = tmp_path / "test_book.py"
    with filled(*cases, problem_id="toy/f") as book:
        book.absorb([StoredEntry("toy f", entry("g(1)", 1)), StoredEntry("elsewhere", entry("f(1)", 1))], {})
        report = export_pytest(book, suite, PROBLEMS)
    assert report.written == len(cases) + 1
    assert [(one.place, one.reason) for one in report.skipped] == [("elsewhere", "not a problem of toys; 1 entries")]
    assert "toy_f.py defines f" in suite.read_text()
    assert "toy_f_2.py defines g" in suite.read_text()
    for folder, program in (("right", "return math.floor(0) or x"), ("wrong", "return [x]")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "toy_f.py").write_text(f"def f(x): {program}\n")
    (tmp_path / "right").rename(tmp_path / "candidates")
    assert run_pytest(suite) == {"passed": len(cases), "skipped": 1}
    assert run_pytest(suite, tmp_path / "wrong") == {"failed": len(cases), "skipped": 1}


def test_a_case_that_is_no_python_breaks_only_itself(tmp_path):
    suite = tmp_path / "test_book.py"
    with filled(entry("f(1)", 1), entry("f(<object>)", 1), entry("f('''\n\"\"\"')", 2), problem_id="toy/f") as book:
        export_pytest(book, suite, PROBLEMS)
    (tmp_path / "candidates").mkdir()
    (tmp_path / "candidates" / "toy_f.py").write_text("def f(x): return 1")
    assert run_pytest(suite) == {"passed": 1, "failed": 2}
