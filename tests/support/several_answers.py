"""Problems of the project's tests that are not one pure function with one right answer, and programs for them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from codea1_env.problems import Problem
from codea1_env.problems.layouts import read_row

_STYLES = (
    "{program}",
    "{program}\n_inner = {name}\n\ndef {name}(*args, **kwargs):\n    return _inner(*args, **kwargs)\n",
    "{program}\n_inner = {name}\n{name} = lambda *args, **kwargs: _inner(*args, **kwargs)\n",
    "{program}\n_inner = {name}\n\nclass Solver:\n    def __call__(self, *args, **kwargs):\n"
    "        return _inner(*args, **kwargs)\n\n{name} = Solver()\n",
    "import functools\n{program}\n\ndef plain(function):\n    @functools.wraps(function)\n"
    "    def called(*args, **kwargs):\n        return function(*args, **kwargs)\n    return called\n\n{name} = plain({name})\n",
)


@dataclass(frozen=True)
class Example:
    """One problem with right programs in several styles; the wrong ones are in `problem.wrong_programs`."""

    problem: Problem
    other: str
    """A right program whose answers or ways differ from the solution's."""
    golden: tuple[str, ...]
    """The golden tests as text."""

    @property
    def right(self) -> list[str]:
        """The other program in five styles."""
        name = self.problem.entry_point
        return [style.format(program=self.other, name=name) for style in _STYLES]


def examples_of(path: Path) -> list[Example]:
    """Return the problems of a TOML file."""
    rows = tomllib.loads(path.read_text("utf-8"))["problem"]
    return [_example(row) for row in rows]


def _example(row: dict[str, object]) -> Example:
    other, wrong = str(row.pop("other")), row.pop("wrong")
    assert isinstance(wrong, list)
    notes = [{"program": program, "note": f"wrong program {n}", "subtlety": 2} for n, program in enumerate(wrong)]
    golden = row["golden"]
    assert isinstance(golden, list)
    return Example(read_row(row | {"wrong_programs": notes}), other, tuple(golden))
