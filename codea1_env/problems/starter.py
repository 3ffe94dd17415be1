"""The project's own problems, one TOML file each in `starter_data/`, from easy to subtle.

A file is named after its entry point and holds `difficulty`, `topics`, `entry_point`, `statement`, `solution`,
`golden` (asserts), optionally `imports`, and `[[wrong_programs]]` with `subtlety`, `note` and `program`. The examples
are not written twice: they are the doctest lines of the statement.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from doctest import DocTestParser
from functools import cache
from importlib.resources import files
from typing import Any

from codea1_env.problems.own_rows import problem_from_row
from codea1_env.problems.problem import Problem, ProblemSet

DIFFICULTIES = ("easy", "medium", "hard")


@cache
def load() -> ProblemSet:
    """Return the shipped problems, easy ones first and by name within a difficulty; read once per process.

    Raises:
        BrokenInput: a file of the installation is damaged.
    """
    folder = files("codea1_env.problems").joinpath("starter_data")
    texts = [path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith(".toml")]
    tables = sorted(map(tomllib.loads, texts), key=lambda table: (_rank(table), table["entry_point"]))
    return ProblemSet("starter", tuple(map(_problem, tables)))


def _rank(table: Mapping[str, Any]) -> int:
    return DIFFICULTIES.index(table["difficulty"])


def _problem(table: Mapping[str, Any]) -> Problem:
    fields = {name: value for name, value in table.items() if name not in ("difficulty", "topics")}
    described = {"id": f"starter/{table['entry_point']}", "source": "codea1-env", "licence": "Apache-2.0"}
    return problem_from_row(fields | described | {"examples": list(_examples(table["statement"]))})


def _examples(statement: str) -> Iterator[str]:
    *_, function = ast.parse(statement).body
    assert isinstance(function, ast.FunctionDef)
    for example in DocTestParser().get_examples(ast.get_docstring(function) or ""):
        expected = " ".join(example.want.split("\n")).strip() or "None"  # a prompt shows nothing for None
        yield f"assert {example.source.strip()} == {expected}"
