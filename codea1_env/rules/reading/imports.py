"""What import statements of tests and of rows bind, and which modules can only be the program's."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codea1_env.facts.submissions import RejectionReason
from codea1_env.python_text import UnreadableError, parse, remembered_up_to
from codea1_env.rules.reading.allowed_names import DRAWN, is_importable, may_be_imported_from
from codea1_env.rules.reading.scopes import Imported, OfFramework, Unusable
from codea1_env.rules.reading.statements import Piece, nodes_in, parsed, root_of

_OTHER_MODULES = sys.stdlib_module_names | {"hypothesis", "numpy", "pandas", "parameterized", "pytest", "scipy"}
_FRAMEWORKS = ("pytest", "unittest", "parameterized", "numpy.testing")


@dataclass(frozen=True, slots=True)
class NamedImport:
    """One name of an import statement: `import alias`, or `from module import alias`."""

    alias: ast.alias
    module: str | None
    """None for `import`; begins with dots where it is relative."""

    @property
    def name(self) -> str:
        """The name that is bound."""
        return self.alias.asname or (self.alias.name if self.module else self.alias.name.partition(".")[0])

    @property
    def full_name(self) -> str:
        """The dotted name of what it stands for."""
        return self.imported if self.module or self.alias.asname else self.name

    @property
    def imported(self) -> str:
        """The dotted name that the statement writes."""
        return f"{self.module}.{self.alias.name}" if self.module else self.alias.name

    @property
    def value(self) -> Imported | Unusable:
        """What the name stands for; unusable unless tests may use it."""
        is_allowed = is_importable(self.alias.name)
        node: ast.stmt = ast.Import([self.alias])
        if self.module is not None:
            is_allowed = may_be_imported_from(self.module, self.alias.name)
            node = ast.ImportFrom(self.module, [self.alias], 0)
        if is_allowed and not self.name.startswith("__"):
            return Imported(ast.unparse(node), self.full_name)
        detail = f"tests may not import {self.imported}"
        if self.imported.startswith(_FRAMEWORKS):
            return OfFramework(RejectionReason.FORBIDDEN_NAME, detail, self.full_name)
        if self.full_name.startswith(("random", "numpy.random")):
            return Unusable(RejectionReason.NOT_AN_ASSERT, DRAWN)
        return Unusable(RejectionReason.FORBIDDEN_NAME, detail)


def imports_of(node: ast.AST) -> Iterator[NamedImport]:
    """Yield the imports of a statement."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        module = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else None
        yield from (NamedImport(alias, module) for alias in node.names)


@remembered_up_to(4096)
def known_names(imports: str) -> Mapping[str, Imported]:
    """Return what import statements bind that tests may use."""
    try:
        body = parse(imports).body if imports else []
    except UnreadableError:
        return {}
    values = {named.name: named.value for node in body for named in imports_of(node)}
    return {name: value for name, value in values.items() if isinstance(value, Imported)}


def program_modules(pieces: Iterable[Piece]) -> set[str]:
    """Return the names of modules that are neither Python's nor those of tools: of the program's."""
    statements, names = [*parsed(pieces)], set[str]()
    for node in statements:
        statements += getattr(node, "body", ())
        for named in imports_of(node):
            if (named.module or named.alias.name).partition(".")[0] not in _OTHER_MODULES:
                names.add(named.name)
    return names


def call_members(trees: Sequence[ast.AST], member: str, modules: Collection[str]) -> set[str]:
    """Replace `module.f` by `f` in trees, for modules whose names are nothing else; return those that it replaces."""
    nodes, called = nodes_in(*trees), set[str]()
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    names = set(modules) - stored - {node.arg for node in nodes if isinstance(node, ast.arg)}

    def plain(part: ast.AST) -> ast.AST:
        if not (isinstance(part, ast.Attribute) and part.attr == member and root_of(part) in names):
            return part
        called.add(root_of(part))
        return ast.copy_location(ast.Name(part.attr, part.ctx), part)

    for node in nodes:
        vars(node).pop("effects", None)  # as they were before
        for name, held in ast.iter_fields(node):
            if isinstance(held, list):
                held[:] = map(plain, held)
            elif isinstance(held, ast.Attribute):
                setattr(node, name, plain(held))
    return called
