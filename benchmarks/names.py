"""Counts the names of the product that say what happened instead of what they do or are.

    python benchmarks/names.py          # the two counts
    python benchmarks/names.py --list   # the functions, each with its place

A function should be named by a verb (`read_rows`), a value by a noun. Counted are functions that are named by a lone
past participle, or by one and a preposition (`_taken`, `told_of`), but not properties, nor a participle before a noun
(`padded_batch`); and bindings of the name `found`, which says nothing about a value.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("codea1_env", "agents")
IRREGULAR = re.compile(
    "begun|bound|broken|brought|built|caught|chosen|done|drawn|driven|fed|felt|forgotten|found|frozen|given|gone|grown"
    "|heard|held|hidden|hung|kept|known|laid|led|lent|lost|made|meant|met|misled|overridden|paid|rewritten|said|seen|sent"
    "|shown|slept|sold|sought|spent|struck|stuck|swept|sworn|taken|taught|thought|thrown|told|torn|understood|withheld"
    "|woken|won|worn|written"
)
NO_PARTICIPLE = re.compile("bed|bleed|embed|exceed|feed|need|proceed|red|seed|shed|speed|succeed|testbed")
PREPOSITION = re.compile(
    "about|after|against|among|as|at|before|below|beside|between|beyond|by|for|from|in|inside|into|of|off|on|onto|out|over"
    "|past|per|since|than|through|to|under|until|up|upon|with|within|without"
)


def is_participle(word: str) -> bool:
    """Return whether a word is a past participle and no other word."""
    return bool(IRREGULAR.fullmatch(word)) or (word.endswith("ed") and not NO_PARTICIPLE.fullmatch(word))


def is_named_by_participle(name: str) -> bool:
    """Return whether a function's name is a participle, or begins with one and a preposition."""
    first, *others = name.strip("_").split("_")
    return is_participle(first) and (not others or PREPOSITION.fullmatch(others[0]) is not None)


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is read as a value."""
    names = {getattr(each, "attr", getattr(each, "id", "")) for each in function.decorator_list}
    return bool(names & {"property", "cached_property", "setter"})


def participles() -> Iterator[str]:
    """Yield the functions that are named by a participle, as `path:line name`."""
    for path, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_property(node):
                continue
            if is_named_by_participle(node.name):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def n_found() -> int:
    """Count the bindings of the name `found`: assignments, loops and parameters."""
    return sum(
        (isinstance(node, ast.Name) and node.id == "found" and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.arg) and node.arg == "found")
        for _, tree in modules()
        for node in ast.walk(tree)
    )


def modules() -> Iterator[tuple[Path, ast.Module]]:
    """Yield the product's modules."""
    for path in sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")):
        yield path, ast.parse(path.read_text())


def main() -> None:
    """Print the counts."""
    lone = list(participles())
    if "--list" in sys.argv[1:]:
        print("\n".join(lone))
    print(f"{len(lone)} functions are named by a lone participle; {n_found()} bindings of `found`")


if __name__ == "__main__":
    main()
