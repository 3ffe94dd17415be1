"""The values of a test file's names at one point of the file."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.submissions import RejectionReason
from codea1_env.python_text import TextBudget, UnreadableError
from codea1_env.rules.reading.allowed_names import SAFE_BUILTINS
from codea1_env.rules.reading.statements import Partial, Statement

NOT_READ = RejectionReason.NOT_AN_ASSERT
"""The reason for what reading leaves out, which is never an invalid test."""
_OTHER_BUILTINS = frozenset(dir(builtins)) - SAFE_BUILTINS
RECEIVERS = ("self", "cls")
"""Names of the object of a test's method."""


class AliasGroup:
    """One group of names whose values may share mutable parts (a node of a union-find forest)."""

    __slots__ = ("_invalidated_by", "_parent")

    def __init__(self) -> None:
        self._parent: AliasGroup | None = None
        self._invalidated_by = ""

    def _root(self) -> AliasGroup:
        node = self
        while node._parent is not None:
            if node._parent._parent is not None:
                node._parent = node._parent._parent
            node = node._parent
        return node

    def merge(self, other: AliasGroup) -> None:
        """Merge two groups into one."""
        mine, theirs = self._root(), other._root()
        if mine is not theirs:
            mine._invalidated_by = mine._invalidated_by or theirs._invalidated_by
            theirs._parent = mine

    def is_merged_with(self, other: AliasGroup) -> bool:
        """Whether the two groups have been merged into one."""
        return self._root() is other._root()

    @property
    def invalidated_by(self) -> str:
        """The code that may have changed the values; empty if there is none."""
        return self._root()._invalidated_by

    def invalidate(self, by: str) -> None:
        """Mark every value of the group as unknown from now on."""
        self._root()._invalidated_by = by


@dataclass(frozen=True, slots=True)
class Inlined:
    """An expression whose names are inlined: no name of the file is left in it."""

    node: ast.expr
    calls_entry_point: bool
    bindings: Mapping[str, str]
    """From each free name to the import statement that binds it; to an empty text for a built-in."""
    size: int
    """Number of nodes; shared ones count each time."""
    n_inlined: int
    """How many of those nodes replace names."""
    depth: int
    formatted: bool
    """Whether the expression contains an f-string."""
    aliases: AliasGroup | None = None
    """None for a constant, which nothing can change."""
    has_state: bool = False
    """Whether its use changes it, as that of an iterator does."""
    is_reused: bool = False
    """Whether it holds one changeable value several times."""

    @property
    def imports(self) -> tuple[str, ...]:
        """Import statements that the expression needs, sorted."""
        return tuple(sorted({statement for statement in self.bindings.values() if statement}))


@dataclass(frozen=True, slots=True)
class Unusable:
    """A name without a known value; says why."""

    reason: RejectionReason
    detail: str

    @property
    def error(self) -> UnreadableError:
        """What refuses an expression that needs the name."""
        return UnreadableError(self.reason, self.detail)


@dataclass(frozen=True, slots=True)
class Unread(Unusable):
    """A name whose value was not read, and may share parts with the values of other names."""

    aliases: AliasGroup


@dataclass(frozen=True, slots=True)
class Helper(Unusable):
    """A function of the tester, which is read where it is called."""

    definition: Partial
    scope: Scope
    """The names around its definition: those of the module, or of a function."""
    defaults: Mapping[str, Inlined | Imported | Unusable]
    """The values of its parameters that have defaults."""
    is_fixture: bool = False

    @property
    def head(self) -> Statement:
        """Its first lines."""
        return self.definition.head


@dataclass(frozen=True, slots=True)
class OfFramework(Unusable):
    """A module of a test framework, or a member of one: only what it asserts is read."""

    full_name: str


@dataclass(frozen=True, slots=True)
class PartlyUsable(Unusable):
    """A table with parts that may not be used as they stand; its rows are read one by one."""

    node: ast.expr
    scope: Scope
    """As it was where the table was written."""
    aliases: AliasGroup = field(default_factory=AliasGroup)


@dataclass(frozen=True, slots=True)
class Imported:
    """A name that an import statement binds."""

    statement: str
    full_name: str
    """Dotted name of the imported object, e.g. `numpy.linalg`."""


def unknown(detail: str) -> Unusable:
    """Return the value of a name of which reading knows nothing more than `detail`."""
    return Unusable(NOT_READ, detail)


def not_read(detail: str) -> UnreadableError:
    """Return what refuses an expression that reading leaves out."""
    return UnreadableError(NOT_READ, detail)


ENTRY_POINT = Unusable(RejectionReason.FORBIDDEN_NAME, "a name of the entry point may only be called")
"""The value of a name that stands for the entry point, as `candidate` does in `check(candidate)`."""

INSTANCE = Unusable(
    RejectionReason.FORBIDDEN_NAME, "an instance of the program's class may only be used to call the method"
)
"""The value of a name to which a test assigns a new instance of the class under test."""


@dataclass(slots=True)
class Unsettled:
    """What holds of a name in all scopes of a reply, at any time."""

    names: dict[str, str] = field(default_factory=dict)
    """Names that functions bind outside of themselves, each with the code that does so."""
    all_by: str = ""
    """What may have bound every name; empty if nothing has."""
    captured: dict[str, AliasGroup] = field(default_factory=dict)
    """For each name the values that look it up whenever they are used."""


@dataclass(slots=True)
class Scope:
    """The values of a file's names at one point of the file."""

    entry_point: str
    names: dict[str, Inlined | Imported | Unusable] = field(default_factory=dict)
    functions: bool = False
    """Whether arguments of the entry point may hold functions (`CallForms.functions`)."""
    budget: TextBudget = field(default_factory=TextBudget)
    """What the reply may still spend; all its scopes share it."""
    receiver: str = ""
    """`self` in a method, whose attributes are names such as `self.cases`; empty elsewhere."""
    unsettled: Unsettled = field(default_factory=Unsettled)
    around: Scope | None = None
    """The scope of which this one was a copy."""
    is_class: bool = False
    """Whether it is that of a class, whose names its functions do not see."""

    def child(self, receiver: str = "") -> Scope:
        """Return a copy of this scope; changes of the copy do not reach this one."""
        return Scope(self.entry_point, dict(self.names), self.functions, self.budget, receiver, self.unsettled, self)

    @property
    def for_functions(self) -> Scope:
        """What functions see that are defined here."""
        return self.around if self.is_class and self.around is not None else self

    def bind(self, name: str, value: Inlined | Imported | Unusable) -> None:
        """Set the value of `name` from now on."""
        self.names[name] = value
        if self.unsettled.captured and name in self.unsettled.captured:
            self.unsettled.captured.pop(name).invalidate(f"a new value of {name!r}")

    def unbind(self, names: Iterable[str], by: str, aliases: AliasGroup) -> None:
        """Record that code (`by`) may have bound names here, to what shares parts with a group of values."""
        for name in names:
            detail = f"{name!r} depends on something that was not read: {by}"
            self.bind(name, Unread(NOT_READ, detail, aliases))

    def chain(self) -> Iterator[Scope]:
        """Yield this scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.around

    def invalidate(self, names: Collection[str], by: str, *, only_state: bool = False) -> AliasGroup:
        """Mark the values of names, here and in the scopes around, as unknown; return the group of those that stay.

        Args:
            names: of this scope.
            by: the code that may have changed the values.
            only_state: whether it has used the values at most, which changes those that have state.
        """
        found = (scope.names[name] for scope in self.chain() for name in scope.names.keys() & names)
        values = [value for value in found if isinstance(value, Inlined | PartlyUsable | Unread) and value.aliases]
        for value in values:
            if not only_state or getattr(value, "has_state", False):
                value.aliases.invalidate(by)  # type: ignore[union-attr]
        shared = AliasGroup()
        for value in values:
            if not value.aliases.invalidated_by:  # type: ignore[union-attr]
                shared.merge(value.aliases)  # type: ignore[arg-type]
        return shared

    def forget(self, names: Collection[str], by: str) -> None:
        """Record that code (`by`) may have changed the values of names here, or bound them anew."""
        self.invalidate(names, by)
        self.unbind(names, by, AliasGroup())

    def look_up(self, name: str) -> Inlined | Imported | Unusable | None:
        """Return the value of `name`; None if the file does not define it."""
        value, unsettled = self.names.get(name), self.unsettled
        if isinstance(value, Inlined | PartlyUsable) and value.aliases is not None and value.aliases.invalidated_by:
            return unknown(f"{name!r} may have been changed by something else: {value.aliases.invalidated_by}")
        if value is None and name in _OTHER_BUILTINS:
            return None  # what a test may not use in any case; that something may have bound it is no excuse
        if (unsettled.all_by or name in unsettled.names) and name and type(value) is not Unusable:
            return unknown(f"{name!r} may have been bound by {unsettled.all_by or unsettled.names[name]}")
        return value

    @property
    def shadow(self) -> Inlined | Imported | Unusable | None:
        """What the name of the entry point stands for if that is something else: a loop's variable, a parameter."""
        name = read_entry_point(self.entry_point).name
        value = self.look_up(name) if name in self.names or name in self.unsettled.names else None
        return None if value is ENTRY_POINT else value

    def place_of(self, node: ast.expr) -> str:
        """Return the name under which this scope knows what `node` refers to; empty if it is not a name."""
        match node:
            case ast.Name(id=name):
                return name
            case ast.Attribute(value=ast.Name(id=receiver), attr=name) if receiver == self.receiver:
                return f"{receiver}.{name}"
        return ""
