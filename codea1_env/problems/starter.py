"""The project's own problems, one TOML file each in `starter_data/`.

A file is named after its entry point and contains `difficulty`, `topics`, `entry_point`, `statement`, `solution`,
`golden` (asserts), optionally `imports`, and `[[wrong_programs]]` with `subtlety`, `note` and `program`. The examples
are the doctest lines of the statement. The files of programs on standard input are in `stdin/`: they have no
`entry_point`, `golden` and `examples` are pairs of `input` and `output`, and the examples are added to the statement.
Those of methods are in `methods/` and named after the method.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from doctest import DocTestParser
from functools import cache
from importlib.resources import files
from typing import Any

from codea1_env.errors import UnknownName
from codea1_env.facts.problem_kinds import RUN
from codea1_env.problems.own_rows import problem_from_row
from codea1_env.problems.problem import ProblemSet
from codea1_env.problems.python_source import parse
from codea1_env.records.faults import read_toml

DIFFICULTIES = ("easy", "medium", "hard")
FUNCTIONS = "functions"
PARTS = {FUNCTIONS: "", "methods": "methods", "stdin": "stdin"}
"""From the names of the parts to their folders."""


@cache
def load(part: str = FUNCTIONS) -> ProblemSet:
    """Problems written for this project, the easiest first; the parts are functions, methods and stdin.

    They are read once per process.

    Raises:
        UnknownName: the part does not exist.
        BrokenInput: a file of the installation is damaged.
    """
    if part not in PARTS:
        raise UnknownName.of("part of starter", part, PARTS)
    folder = files("codea1_env.problems").joinpath("starter_data", PARTS[part])
    paths = {path.name.removesuffix(".toml"): path for path in folder.iterdir() if path.name.endswith(".toml")}
    tables = {name: read_toml(name, path.read_bytes()) for name, path in paths.items()}
    names = sorted(tables, key=lambda name: (DIFFICULTIES.index(tables[name]["difficulty"]), name))
    prefix = "starter" if part == FUNCTIONS else f"starter:{part}"
    problems = []
    for name in names:
        fields = {key: value for key, value in tables[name].items() if key not in ("difficulty", "topics", "examples")}
        fields |= {"id": f"{prefix}/{name}", "source": "codea1-env", "licence": "Apache-2.0"}
        problems.append(problem_from_row(fields | _read_examples(tables[name])))
    return ProblemSet(prefix, tuple(problems))


def _read_examples(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the examples give."""
    statement, samples = table["statement"], table.get("examples")
    if samples is None:
        return {"examples": list(_examples(statement))}
    text = "".join(f"\nInput:\n{each['input']}\nOutput:\n{each['output']}" for each in samples)
    asserts = [f"assert {RUN}({each['input']!r}) == {each['output']!r}" for each in samples]
    return {"kind": "stdin", "statement": statement + text, "examples": asserts}


def _examples(statement: str) -> Iterator[str]:
    *_, definition = parse(statement, "the statement").body
    *_, function = (node for node in ast.walk(definition) if isinstance(node, ast.FunctionDef))
    for example in DocTestParser().get_examples(ast.get_docstring(function) or ""):
        expected = " ".join(example.want.split("\n")).strip() or "None"  # a prompt shows nothing for None
        yield f"assert {example.source.strip()} == {expected}"
