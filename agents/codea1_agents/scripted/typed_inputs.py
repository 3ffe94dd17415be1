"""Enumerates edge inputs: extreme values of a type, small edits of a value that keep its structure, and whole calls.

Every function is a pure, ordered enumeration, from which callers choose. More classical inputs come first: the empty
list comes before the list of thirty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from codea1_agents.scripted.literals import call_text, effect_text, unique
from codea1_agents.scripted.signatures import Arguments, Interface, interface_of_problem
from codea1_agents.scripted.value_types import Kind, ValueType
from codea1_env.problems.problem import GoldenCase, Problem

_MAX_DEPTH = 3  # containers nested deeper than this get typical elements only
_N_NEAR = 8  # calls of each sort, for each guess at the types
_LONG = 30  # elements of a "long" input; longer ones make unreadable tests

_INTS = (0, 1, -1, 2, 3, 10, -5, 7, 100, 97, 8, -100, 1000)
_FLOATS = (0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1.5, 0.1, 100.0, -2.75, 1e-6, 1234.5678)
_STRINGS = (
    "",
    "a",
    "A",
    " ",
    "ab",
    "aa",
    "aba",
    "1",
    "Hello World",
    "a b  c",
    " x ",
    "a,b",
    "!?",
    "\u00e9\u4e16",
    "a\nb",
)


def typical(kind: ValueType) -> object:
    """Return one ordinary value of the type, one that was seen if possible."""
    match kind.kind:
        case Kind.LIST | Kind.TUPLE | Kind.SET:
            return _to_collection(kind, _ascending(kind.parts[0]))
        case Kind.RECORD:
            return tuple(map(typical, kind.parts))
        case Kind.DICT:
            keys = _ascending(kind.parts[0])
            return {hashable(key): typical(kind.parts[1]) for key in keys}
        case Kind.EITHER:
            return typical(kind.parts[0])
    return kind.seen[0] if kind.seen else _TYPICAL[kind.kind]


def edges(kind: ValueType, depth: int = 0) -> list[object]:
    """Return edge values of the type, the most classical first, none twice."""
    match kind.kind:
        case Kind.LIST | Kind.TUPLE | Kind.SET:
            return unique(_to_collection(kind, items) for items in _edge_items(kind.parts[0], depth))
        case Kind.RECORD:
            columns = [edges(part, depth + 1) for part in kind.parts]
            return unique(tuple(row) for row in _rows(columns, tuple(map(typical, kind.parts))))
        case Kind.DICT:
            return unique(_edge_dicts(kind, depth))
        case Kind.EITHER:
            rounds = zip_longest(*(edges(part, depth) for part in kind.parts), fillvalue=_MISSING)
            return unique(value for row in rounds for value in row if value is not _MISSING)
    near = (edit for value in kind.seen for edit in edits(value))
    return unique([*_SCALAR_EDGES[kind.kind], *kind.seen, *near] if kind.seen else _SCALAR_EDGES[kind.kind])


def edits(value: object) -> list[object]:
    """Return small changes of a value that keep its structure, without the value itself."""
    changed = [edit for type_, edit in _EDITS if isinstance(value, type_)]
    return unique([value, *changed[0](value)])[1:] if changed else []


def boundary_calls(interface: Interface) -> list[Arguments]:
    """Return calls with edge arguments, the most classical first, none twice.

    One kind of call changes one argument of an example call (of typical values if there is no example). The other gives
    all arguments their first edges, their second edges, and so on. Both kinds alternate.
    """
    if interface.inputs:
        return interface.inputs.edges(interface.examples)
    if not interface.parameters:
        return [()]
    bases = interface.examples or (tuple(typical(parameter.type) for parameter in interface.parameters),)
    columns = [edges(parameter.type) for parameter in interface.parameters]
    sequences: list[list[object]] = [list(_rows(columns, bases[0]))]
    for base in bases:
        for position, value in enumerate(base):
            moved = [*edits(value), *columns[position]]
            sequences.append([(*base[:position], new, *base[position + 1 :]) for new in moved])
    rounds = zip_longest(*sequences, fillvalue=_MISSING)
    return [call for call in unique(_calls(rounds)) if isinstance(call, tuple)]


def calls_near_tests(problem: Problem) -> list[str]:
    """Return calls of a problem's entry point as its tests and examples make them, then calls with edge arguments."""
    texts = (
        test.expression
        if isinstance(test, GoldenCase)
        else test.source.replace("candidate(", f"{problem.entry_point}(")
        for test in problem.golden
    )
    interface = interface_of_problem(replace(problem, examples=(*problem.examples, *texts)))
    write = effect_text if problem.calls.in_place else call_text
    calls = (
        write(problem.entry_point, arguments, guess.keywords)
        for guess in (interface.guesses() if interface else ())
        for arguments in (*guess.examples[:_N_NEAR], *boundary_calls(guess)[:_N_NEAR])
    )
    return [*dict.fromkeys(calls)]


_MISSING = object()


def _calls(rounds: Iterator[tuple[object, ...]]) -> Iterator[object]:
    return (call for row in rounds for call in row if call is not _MISSING)


def _rows(columns: list[list[object]], base: Arguments) -> Iterator[Arguments]:
    """Yield the columns' first values, their second values ...; after its end, a column repeats the base's value."""
    for row in zip_longest(*columns, fillvalue=_MISSING):
        filled = (base[i] if i < len(base) and value is _MISSING else value for i, value in enumerate(row))
        yield tuple(None if value is _MISSING else value for value in filled)


def _to_collection(kind: ValueType, items: list[object]) -> object:
    if kind.kind is Kind.LIST:
        return items
    if kind.kind is Kind.TUPLE:
        return tuple(items)
    return set(map(hashable, items))


def hashable(value: object) -> object:
    """Return the value with its lists, sets and dicts converted to tuples."""
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    if isinstance(value, set | dict):
        return tuple(map(hashable, sorted(value, key=repr)))
    return value


def _ascending(item: ValueType) -> list[object]:
    """Return two or three ordinary elements, in ascending order if they have one."""
    match item.kind:
        case Kind.INT | Kind.UNKNOWN:
            return list(item.seen[:3]) if len(item.seen) > 2 else [1, 2, 3]
        case Kind.FLOAT:
            return list(item.seen[:3]) if len(item.seen) > 2 else [1.0, 2.5, 4.0]
        case Kind.STR:
            return list(item.seen[:3]) if len(item.seen) > 2 else ["a", "bc", "def"]
        case Kind.BOOL:
            return [False, True, True]
    return [typical(item)] * 2


def _edge_items(item: ValueType, depth: int) -> Iterator[list[object]]:
    """Yield the elements of edge containers: empty, singletons, equal, sorted, reversed, long."""
    elements = edges(item, depth + 1) if depth < _MAX_DEPTH else [typical(item)]
    first, last, some = elements[0], elements[-1], _ascending(item)
    yield []
    yield [some[0]]
    yield [some[0], some[0]]
    yield some
    yield some[::-1]
    yield [first]
    yield [*some, *some]
    yield elements[:5]
    yield elements[4::-1]
    for element in elements[1:6]:
        yield [element]
        yield [element, *some]
        yield [*some, element]
    yield [first, first, first]
    yield [first, last]
    if depth == 0:
        yield [elements[i % len(elements)] for i in range(_LONG)]


def _edge_dicts(kind: ValueType, depth: int) -> Iterator[object]:
    keys = [hashable(key) for key in edges(kind.parts[0], depth + 1)]
    values = edges(kind.parts[1], depth + 1) if depth < _MAX_DEPTH else [typical(kind.parts[1])]
    yield {}
    yield {keys[0]: values[0]}
    yield typical(kind)
    yield dict.fromkeys(keys[:3], values[0])
    yield dict(zip(keys[:5], values, strict=False))
    yield dict(zip(keys[:5], values[4::-1], strict=False))
    for value in values[1:6]:
        yield {keys[1 % len(keys)]: value}


def _edited_str(value: str) -> Iterator[object]:
    half = len(value) // 2
    yield from ("", value[:1], value[1:], value[:-1], value + value, value[::-1], value.upper(), value.lower())
    yield from (value[:half], value[half:], value + value[:1], value[:half] + value[half : half + 1] + value[half:])
    yield from (f" {value}", f"{value} ", value.replace(" ", "  "), value.replace(" ", ""), value.swapcase())
    yield from ("".join(sorted(value)), value[half:] + value[:half], value[:1] * 2 + value[1:], value[:1] * len(value))


def _edited_list(value: list[object]) -> Iterator[object]:
    half = len(value) // 2
    yield from ([], value[:1], value[1:], value[:-1], value[::-1], value + value, value + value[:1])
    yield from (
        value[:half],
        value[half:],
        value[:1] * 2 + value[1:],
        value[:1] * len(value),
        value[half:] + value[:half],
    )
    try:
        ordered = sorted(value)  # type: ignore[type-var]  # mixed elements raise, which is the answer
    except TypeError:
        ordered = []
    yield from (ordered, ordered[::-1]) if ordered else ()
    for position in dict.fromkeys((0, len(value) - 1, half)) if value else ():
        for new in edits(value[position])[:6]:
            yield [*value[:position], new, *value[position + 1 :]]
    moved = [edits(item) for item in value]
    for step in range(4):  # the same edit on every element, e.g. all negated
        yield [(options[step] if step < len(options) else item) for item, options in zip(value, moved, strict=True)]


def _edited_tuple(value: tuple[object, ...]) -> Iterator[object]:
    alike = len({type(item) for item in value}) <= 1  # else the positions have meanings: keep the length
    for new in _edited_list(list(value)):
        if isinstance(new, list) and (alike or len(new) == len(value)):
            yield tuple(new)


def _edited_set(value: set[object]) -> Iterator[object]:
    ordered = sorted(value, key=repr)
    yield from (set(), set(ordered[:1]), set(ordered[1:]))
    yield from (set(map(hashable, [*ordered, *edits(item)[:1]])) for item in ordered[:3])


def _edited_dict(value: dict[object, object]) -> Iterator[object]:
    pairs = list(value.items())
    yield from ({}, dict(pairs[:1]), dict(pairs[1:]), dict(pairs[:-1]), dict(pairs[::-1]))
    for position, (key, item) in enumerate(pairs[:3]):
        for new in edits(item)[:4]:
            yield {**value, key: new}
        for renamed in edits(key)[:4]:
            yield dict([*pairs[:position], (hashable(renamed), item), *pairs[position + 1 :]])


_SCALAR_EDGES: dict[Kind, list[object]] = {
    Kind.NONE: [None],
    Kind.BOOL: [True, False],
    Kind.INT: list(_INTS),
    Kind.UNKNOWN: list(_INTS),
    Kind.FLOAT: list(_FLOATS),
    Kind.STR: list(_STRINGS),
    Kind.BYTES: [b"", b"a", b"\x00", b"abc"],
}
_TYPICAL: dict[Kind, object] = {
    Kind.NONE: None,
    Kind.BOOL: True,
    Kind.INT: 3,
    Kind.UNKNOWN: 3,
    Kind.FLOAT: 2.5,
    Kind.STR: "abc",
    Kind.BYTES: b"abc",
}
# In this order: a bool is an int too.
_EDITS: tuple[tuple[type, Callable[[Any], Iterable[object]]], ...] = (
    (bool, lambda value: [not value]),
    (int, lambda value: (value + 1, value - 1, 0, -value, value * 2, value // 2, value + 10, value * 10 + value % 10)),
    (float, lambda value: (0.0, -value, value + 1.0, value - 1.0, value / 2, float(round(value)), value + 0.5)),
    (str, _edited_str),
    (bytes, lambda value: (b"", value[:1], value[1:], value + value, value[::-1])),
    (list, _edited_list),
    (tuple, _edited_tuple),
    (set, _edited_set),
    (dict, _edited_dict),
)
