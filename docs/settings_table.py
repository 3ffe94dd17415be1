"""Writes the tables of `docs/training-settings.md` from the declarations of settings and rules.

python docs/settings_table.py
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from codea1_agents.train.settings.options import RULE_PARTS, AgentsOptions, GameOptions, TrainingConfig
from codea1_env.declared import Range
from codea1_env.rules.ruleset import Ruleset, preset

PAGE = Path(__file__).parent / "training-settings.md"
BEGIN, END = "<!-- begin: python docs/settings_table.py -->\n", "<!-- end -->\n"
HEAD = "| setting | values | default | |\n|---|---|---|---|\n"


def tables() -> str:
    """Return the tables of all settings of a training run, one per section."""
    found = []
    for section, field in TrainingConfig.model_fields.items():
        if section == "about":
            continue
        kind: Any = type(field.get_default(call_default_factory=True))
        rows = [*rows_of(kind(), f"{section}.")]
        if kind is AgentsOptions:  # the roles have the same settings
            of_both = [row for row in rows if row.startswith("| `agents.base`")]
            rows = [*of_both, *rows_of(kind().coder, "agents.ROLE.")]
        if section == "game":
            rows += rows_of(preset("fixed"), "game.")
        found.append(f"## `[{section}]`\n\n{inspect.getdoc(kind)}\n\n{HEAD}{''.join(rows)}")
    return "\n".join(found)


def rows_of(settings: Any, path: str) -> Iterator[str]:
    """Yield a row of the table for each setting with a meaning, also for those of its parts."""
    hints, meanings = get_type_hints(type(settings), include_extras=True), _meanings(type(settings))
    names = [each.name for each in fields(settings)] if is_dataclass(settings) else [*type(settings).model_fields]
    names = [name for name in names if not (isinstance(settings, GameOptions) and name in RULE_PARTS)]
    for name in names:
        value = getattr(settings, name)
        if is_dataclass(value):
            yield from rows_of(value, f"{path}{name}.")
        elif not (isinstance(settings, Ruleset) and name == "name"):
            yield f"| `{path}{name}` | {_values(hints.get(name, Any))} | {_text(value)} | {meanings.get(name, '')} |\n"


def _meanings(kind: type[Any]) -> dict[str, str]:
    """Return the sentence under each field of a class and of its bases."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("codea1") or base is GameOptions:  # which is made of others
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for declared, after in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(declared, ast.AnnAssign) and isinstance(after, ast.Expr):
                found[ast.unparse(declared.target)] = " ".join(ast.literal_eval(after.value).split())
    return found


def _values(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_values(part) for part in parts if part is not NoneType)
    if origin is Annotated:
        return _values(parts[0]) + "".join(map(_bounds, parts[1:]))
    if origin is Literal or (isinstance(hint, type) and issubclass(hint, Enum)):
        return ", ".join(f"`{each}`" for each in parts or hint if each)
    names = {bool: "bool", int: "int", float: "float", str: "text", dict: "table"}
    return names.get(origin or hint, "list" if origin in (list, tuple) else "table")


def _bounds(found: Any) -> str:
    """Return the range in the metadata of an annotation, which is the environment's or pydantic's."""
    if isinstance(found, Range):
        least = f" > {found.above:g}" if found.above > Range().above else f" ≥ {found.least:g}"
        return "" if found == Range() else least + (f", ≤ {found.most:g}" if found.most < Range().most else "")
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    bounds = {name: getattr(each, name) for each in found.metadata for name in signs if hasattr(each, name)}
    return "".join(f"{',' * n} {signs[name]} {bound:g}" for n, (name, bound) in enumerate(bounds.items()))


def _text(value: Any) -> str:
    if value in (None, "", (), [], {}):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{tables()}{END}{rest.partition(END)[2]}", "utf-8")
