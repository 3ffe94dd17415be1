"""Makes wrong variants of a program with one small fault each. Pure.

A mutant may be equivalent to its source (`<` in place of `<=` where equality cannot happen).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from codea1_agents.scripted.mutation_operators import Edit, Operator, Site, edits_of
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.problems.problem import Problem

# Mutated annotations and decorators change no result; mutated patterns, imports and names only break the program.
_SKIPPED_FIELDS = frozenset({"annotation", "returns", "decorator_list", "type_params", "format_spec"})
_SKIPPED_NODES = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong variant."""

    program: str
    """As `ast.unparse` writes it, without comments."""
    operator: Operator
    line: int
    """Line of the fault in the source, from 1."""
    note: str
    """The change, in one sentence."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """The position of a node in the tree."""

    parent: ast.AST
    field: str
    position: int | None
    """Index if the field is a list."""
    site: Site

    @property
    def node(self) -> ast.AST:
        held = getattr(self.parent, self.field)
        node: ast.AST = held if self.position is None else held[self.position]
        return node

    def write_with(self, edit: Edit, tree: ast.Module) -> str:
        """Return the whole program with the edit; the tree does not change."""
        held = getattr(self.parent, self.field)
        if self.position is None:
            changed: object = edit.node
        else:
            new = [edit.node] if edit.node else [ast.Pass()] if len(held) == 1 else []
            changed = [*held[: self.position], *new, *held[self.position + 1 :]]
        setattr(self.parent, self.field, changed)
        try:
            return ast.unparse(tree)
        finally:
            setattr(self.parent, self.field, held)


@lru_cache(maxsize=256)
def mutants(source: str, *, entry_point: str = "") -> tuple[Mutant, ...]:
    """Return all mutants with one fault, in the order of the source, no two with the same text.

    Args:
        source: a program; type hints, docstrings and imports in it are never mutated.
        entry_point: only code that this function can reach by name is mutated; all code if it is not defined.

    Returns:
        Programs that parse and whose text differs from `ast.unparse` of the source.

    Raises:
        SyntaxError: the source is not Python.
    """
    tree = ast.parse(source)
    seen = {ast.unparse(tree)}
    mutants: list[Mutant] = []
    for slot in _slots_of(tree, entry_point):
        for edit in edits_of(slot.node, slot.site):
            program = slot.write_with(edit, tree)
            if program not in seen and _parses(program):
                seen.add(program)
                mutants.append(Mutant(program, edit.operator, getattr(slot.node, "lineno", 1), _note(slot.node, edit)))
    return tuple(mutants)


def mutants_of(problem: Problem) -> tuple[Mutant, ...]:
    """Return the mutants of a problem's solution; all code of a program that defines nothing is mutated."""
    return mutants(problem.solution, entry_point=problem.defined)


def without_docstrings(source: str) -> str:
    """Return the program as `ast.unparse` writes it, without docstrings: the style of mutants.

    Raises:
        SyntaxError: the source is not Python.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if is_documented(node):
            node.body = node.body[1:] or [ast.Pass()]  # type: ignore[attr-defined]  # documented nodes have a body
    return ast.unparse(tree)


def _slots_of(tree: ast.Module, entry_point: str) -> Iterator[_Slot]:
    reachable = _reachable(tree, entry_point)
    for position, statement in enumerate(tree.body):
        if position in reachable:
            yield _Slot(tree, "body", position, Site(field="body"))
            yield from _slots_in(statement, Site())


def _slots_in(node: ast.AST, site: Site) -> Iterator[_Slot]:
    """Yield the slots below a node, depth first, in the order of the source."""
    if isinstance(node, _SKIPPED_NODES):
        return
    function = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else site.function
    in_while = site.in_while or isinstance(node, ast.While)
    for field, held in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS:
            continue
        inside = Site(function, field, in_while)
        start = 1 if field == "body" and is_documented(node) else 0
        children = list(enumerate(held))[start:] if isinstance(held, list) else [(None, held)]
        for position, child in children:
            if isinstance(child, ast.AST) and not isinstance(node, ast.JoinedStr | ast.MatchSingleton):
                yield _Slot(node, field, position, inside)
                yield from _slots_in(child, inside)


def is_documented(node: ast.AST) -> bool:
    """Whether the node's body begins with a docstring."""
    documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    return documented and ast.get_docstring(node, clean=False) is not None  # type: ignore[arg-type]  # just checked


def _reachable(tree: ast.Module, entry_point: str) -> set[int]:
    """Return the positions of the top-level statements that the entry point uses, directly or indirectly."""
    definers: dict[str, set[int]] = {}
    for position, statement in enumerate(tree.body):
        for name in _defined_names(statement):
            definers.setdefault(name, set()).add(position)
    name = read_entry_point(entry_point).name
    if name not in definers:
        return {i for i, statement in enumerate(tree.body) if not (i == 0 and is_documented(tree))}
    reachable: set[int] = set()
    pending = [name]
    while pending:
        for position in definers.get(pending.pop(), set()) - reachable:
            reachable.add(position)
            pending.extend(node.id for node in ast.walk(tree.body[position]) if isinstance(node, ast.Name))
    return reachable


def _defined_names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return set()
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _parses(program: str) -> bool:
    try:
        ast.parse(program)
    except (SyntaxError, ValueError):
        return False
    return True


def _note(node: ast.AST, edit: Edit) -> str:
    if edit.node is None:
        return f"`{_first_line(node)}` is left out"
    return f"`{_first_line(edit.node)}` stands for `{_first_line(node)}`"


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).split("\n", 1)[0][:80]
