"""A small type model for the values of one argument, read from annotations and from examples.

`from_annotation` reads a declared type, `of_value` the type of one example, `join` the common type of several examples,
and `refine` fills the gaps of a declared type with observed ones. Leaves also store the scalars that were seen, because
alphabets, ranges and special words are the only sign of a problem's preconditions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

_MAX_SEEN = 32  # more would not change what is generated, only slow it down


Kind = Enum("Kind", "NONE BOOL INT FLOAT STR BYTES LIST TUPLE SET RECORD DICT EITHER UNKNOWN")
"""The outermost shape of a value. A TUPLE has any length, a RECORD is a tuple with one part per position."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """One type."""

    kind: Kind
    parts: tuple[ValueType, ...] = ()
    """The element of LIST, TUPLE and SET, one part per position of RECORD, key and value of DICT, options of EITHER."""
    seen: tuple[object, ...] = ()
    """Scalars seen in examples (leaves), or lengths seen in examples (LIST, TUPLE, SET, DICT)."""


UNKNOWN = ValueType(Kind.UNKNOWN)

_SCALARS = {
    "None": Kind.NONE,
    "bool": Kind.BOOL,
    "int": Kind.INT,
    "float": Kind.FLOAT,
    "complex": Kind.FLOAT,
    "str": Kind.STR,
    "bytes": Kind.BYTES,
}
_COLLECTIONS = {
    "list": Kind.LIST,
    "sequence": Kind.LIST,
    "mutablesequence": Kind.LIST,
    "iterable": Kind.LIST,
    "collection": Kind.LIST,
    "deque": Kind.LIST,
    "tuple": Kind.TUPLE,
    "set": Kind.SET,
    "frozenset": Kind.SET,
    "dict": Kind.DICT,
    "mapping": Kind.DICT,
    "defaultdict": Kind.DICT,
    "counter": Kind.DICT,
}
_LEAF_OF_TYPE = {
    type(None): Kind.NONE,
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    str: Kind.STR,
    bytes: Kind.BYTES,
}
_COLLECTION_OF_TYPE = {list: Kind.LIST, set: Kind.SET, frozenset: Kind.SET}


def from_annotation(node: ast.expr | None) -> ValueType:
    """Return the type of an annotation; UNKNOWN for types outside of the model (Callable, Any, classes)."""
    match node:
        case ast.Constant(value=None):
            return ValueType(Kind.NONE)
        case ast.Constant(value=str() as text):
            return _forward_reference(text)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _type_by_name(name)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return either((from_annotation(left), from_annotation(right)))
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inside):
            return _generic(name, inside.elts if isinstance(inside, ast.Tuple) else [inside])
        case _:
            return UNKNOWN


def of_value(value: object) -> ValueType:
    """Return the type of one example value."""
    if type(value) in _LEAF_OF_TYPE:
        return ValueType(_LEAF_OF_TYPE[type(value)], seen=(value,))
    if isinstance(value, dict):
        keys, values = join_all(map(of_value, value)), join_all(map(of_value, value.values()))
        return ValueType(Kind.DICT, (keys, values), (len(value),))
    if isinstance(value, tuple):
        return _of_tuple(value)
    if isinstance(value, list | set | frozenset):
        ordered = value if isinstance(value, list) else sorted(value, key=repr)
        return ValueType(_COLLECTION_OF_TYPE[type(value)], (join_all(map(of_value, ordered)),), (len(value),))
    return UNKNOWN


def join(a: ValueType, b: ValueType) -> ValueType:
    """Return the narrowest type of the model that includes both."""
    if Kind.UNKNOWN in (a.kind, b.kind):
        return b if a.kind is Kind.UNKNOWN else a
    if Kind.EITHER in (a.kind, b.kind):
        return either((a, b))
    if a.kind is b.kind and len(a.parts) == len(b.parts):
        parts = tuple(join(x, y) for x, y in zip(a.parts, b.parts, strict=True))
        return ValueType(a.kind, parts, _merge_values(a.seen, b.seen))
    if {a.kind, b.kind} == {Kind.INT, Kind.FLOAT}:
        return ValueType(Kind.FLOAT, seen=_merge_values(a.seen, b.seen))
    if {a.kind, b.kind} <= {Kind.RECORD, Kind.TUPLE}:
        lengths = [(len(t.parts),) if t.kind is Kind.RECORD else t.seen for t in (a, b)]
        return ValueType(Kind.TUPLE, (join_all((*a.parts, *b.parts)),), _merge_values(*lengths))
    return ValueType(Kind.EITHER, (a, b))


def join_all(types: Iterable[ValueType]) -> ValueType:
    """Return the join of all types; UNKNOWN for none."""
    return reduce(join, types, UNKNOWN)


def refine(declared: ValueType, observed: ValueType) -> ValueType:
    """Return the declared type with its gaps filled from the observed type.

    If the two contradict each other, the observed type wins: examples are executed, annotations are not.
    """
    if Kind.UNKNOWN in (declared.kind, observed.kind):
        return join(declared, observed)
    if declared.kind is Kind.EITHER:
        return _refine_either(declared, observed)
    if declared.kind is observed.kind and len(declared.parts) == len(observed.parts):
        parts = tuple(refine(x, y) for x, y in zip(declared.parts, observed.parts, strict=True))
        return replace(observed, parts=parts)
    return _reconcile(declared, observed)


def either(options: Iterable[ValueType]) -> ValueType:
    """Return the flattened union with options of one kind joined; UNKNOWN options are left out."""
    flat: list[ValueType] = []
    for option in options:
        flat.extend(option.parts if option.kind is Kind.EITHER else [option])
    by_kind: dict[Kind, ValueType] = {}
    for option in flat:
        known = by_kind.get(option.kind)
        by_kind[option.kind] = option if known is None else join(known, option)
    by_kind.pop(Kind.UNKNOWN, None)
    kept = tuple(by_kind.values())
    return kept[0] if len(kept) == 1 else ValueType(Kind.EITHER, kept) if kept else UNKNOWN


def with_unknown_as(kind: ValueType, guess: ValueType) -> ValueType:
    """Return the type with every UNKNOWN in it replaced."""
    if kind.kind is Kind.UNKNOWN:
        return guess
    return replace(kind, parts=tuple(with_unknown_as(part, guess) for part in kind.parts))


def _reconcile(declared: ValueType, observed: ValueType) -> ValueType:
    match declared.kind, observed.kind:
        case Kind.FLOAT, Kind.INT:
            return replace(declared, seen=observed.seen)
        case Kind.TUPLE, Kind.RECORD:
            return refine(declared, ValueType(Kind.TUPLE, (join_all(observed.parts),), (len(observed.parts),)))
        case Kind.RECORD, Kind.TUPLE:
            return replace(declared, parts=tuple(refine(part, observed.parts[0]) for part in declared.parts))
        case _:
            return observed


def _forward_reference(text: str) -> ValueType:
    try:
        return from_annotation(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        return UNKNOWN


def _type_by_name(name: str) -> ValueType:
    if name in _SCALARS:
        return ValueType(_SCALARS[name])
    kind = _COLLECTIONS.get(name.lower())
    if kind is None:
        return UNKNOWN
    return ValueType(kind, (UNKNOWN, UNKNOWN) if kind is Kind.DICT else (UNKNOWN,))


def _generic(name: str, arguments: list[ast.expr]) -> ValueType:
    types = [from_annotation(argument) for argument in arguments]
    match name:
        case "Literal":
            return join_all(of_value(argument.value) for argument in arguments if isinstance(argument, ast.Constant))
        case "Union" | "Optional":
            return either(types if name == "Union" else [*types, ValueType(Kind.NONE)])
        case "Annotated":
            return types[0]
    return _collection(_type_by_name(name), types, arguments)


def _collection(bare: ValueType, types: list[ValueType], arguments: list[ast.expr]) -> ValueType:
    if bare.kind is Kind.TUPLE:
        variadic = isinstance(arguments[-1], ast.Constant) and arguments[-1].value is Ellipsis if arguments else False
        return replace(bare, parts=(types[0],)) if variadic else ValueType(Kind.RECORD, tuple(types))
    if bare.kind is Kind.DICT and len(types) == 1:  # Counter[str]
        return replace(bare, parts=(types[0], ValueType(Kind.INT)))
    return replace(bare, parts=tuple(types)) if len(types) == len(bare.parts) else bare


def _of_tuple(value: tuple[object, ...]) -> ValueType:
    parts = tuple(map(of_value, value))
    if len({part.kind for part in parts}) > 1:
        return ValueType(Kind.RECORD, parts)
    return ValueType(Kind.TUPLE, (join_all(parts),), (len(value),))


def _refine_either(declared: ValueType, observed: ValueType) -> ValueType:
    by_kind = {option.kind: option for option in (observed.parts if observed.kind is Kind.EITHER else (observed,))}
    options = [refine(option, by_kind.pop(option.kind, UNKNOWN)) for option in declared.parts]
    return either([*options, *by_kind.values()])


def _merge_values(a: tuple[object, ...], b: tuple[object, ...]) -> tuple[object, ...]:
    both = {(type(value), value): value for value in (*a, *b)}  # 1, 1.0 and True are equal as keys without their types
    return tuple(both.values())[:_MAX_SEEN]
