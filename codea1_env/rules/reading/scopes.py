"""What the names of a test file mean at one point of it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from codea1_env.facts.submissions import RejectionReason


class Sharing:
    """One group of names whose values may share mutable parts (union-find)."""

    __slots__ = ("_parent", "_spoilt_by")

    def __init__(self) -> None:
        self._parent: Sharing | None = None
        self._spoilt_by = ""

    def _root(self) -> Sharing:
        node = self
        while node._parent is not None:
            if node._parent._parent is not None:
                node._parent = node._parent._parent
            node = node._parent
        return node

    def join(self, other: Sharing) -> None:
        """Make one group of two."""
        mine, theirs = self._root(), other._root()
        if mine is not theirs:
            mine._spoilt_by = mine._spoilt_by or theirs._spoilt_by
            theirs._parent = mine

    @property
    def spoilt_by(self) -> str:
        """Which dropped statement may have changed the values; empty if none."""
        return self._root()._spoilt_by

    def spoil(self, by: str) -> None:
        """Mark every value of the group as unknown from here on."""
        self._root()._spoilt_by = by


@dataclass(frozen=True, slots=True)
class Filled:
    """An expression without names of the file."""

    node: ast.expr
    calls_entry_point: bool
    meanings: Mapping[str, str]
    """Free name to the import statement that binds it; empty text for a built-in."""
    size: int
    """Nodes, shared ones counted each time."""
    inlined: int
    """How many of those stand for names."""
    depth: int
    formatted: bool
    """Whether an f-string is in it."""
    sharing: Sharing | None = None
    """None for a constant, which nothing can change."""

    @property
    def imports(self) -> tuple[str, ...]:
        """Import statements that the expression needs, sorted."""
        return tuple(sorted({statement for statement in self.meanings.values() if statement}))


@dataclass(frozen=True, slots=True)
class Imported:
    """A name that an import statement binds."""

    statement: str
    full_name: str
    """Dotted name of what it binds, e.g. `numpy.linalg`."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A name whose value is not known, and why."""

    reason: RejectionReason
    detail: str


@dataclass(slots=True)
class Scope:
    """What the names of a file mean at one point of it."""

    entry_point: str
    names: dict[str, Filled | Imported | Unusable] = field(default_factory=dict)

    def child(self) -> Scope:
        """Return a scope that begins with the names of this one and does not change it."""
        return Scope(self.entry_point, dict(self.names))

    def bind(self, name: str, value: Filled | Imported | Unusable) -> None:
        """Let `name` mean `value` from here on."""
        self.names[name] = value

    def spoil(self, name: str, *, rebound: bool, by: str) -> None:
        """Note that a dropped statement mentions `name` and may have changed or (`rebound`) replaced its value."""
        value = self.names.get(name)
        if isinstance(value, Filled) and value.sharing is not None:
            value.sharing.spoil(by)
        if rebound:
            detail = f"{name!r} depends on a statement that was dropped: {by}"
            self.names[name] = Unusable(RejectionReason.FORBIDDEN_NAME, detail)

    def look_up(self, name: str) -> Filled | Imported | Unusable | None:
        """Return what `name` means; None if the file does not say."""
        value = self.names.get(name)
        if isinstance(value, Filled) and value.sharing is not None and value.sharing.spoilt_by:
            detail = f"{name!r} may have been changed by a statement that was dropped: {value.sharing.spoilt_by}"
            return Unusable(RejectionReason.FORBIDDEN_NAME, detail)
        return value
