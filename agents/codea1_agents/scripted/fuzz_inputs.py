"""Draws random inputs with hypothesis from the type model, close to the examples.

Theory of operation: a hypothesis strategy defines the inputs. `fuzz_one_input`, hypothesis' public entry for external
fuzzers, turns bytes into draws from the strategy; the bytes come from the caller's generator. So one seed gives the
same inputs in every process. `@seed` would not: hypothesis' own engine mixes in constants from the modules that are
imported. This also avoids the engine's set-up, about half a millisecond per input.

Importing this module imports hypothesis; import it where it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from codea1_agents.scripted.literals import literal
from codea1_agents.scripted.signatures import Arguments, Interface
from codea1_agents.scripted.typed_inputs import edges, edits, hashable
from codea1_agents.scripted.value_types import Kind, ValueType

_LETTERS = "abcxyzABZ019 .,-_()"
_BUFFER = 1024  # bytes for one draw; most draws use under 200, and a draw that needs more is dropped
_PER_DRAW = 4  # calls per draw, to share its fixed cost
_DEPTH = 2  # containers nested deeper than this stay small
_SPLICE_RANGE = 5039  # positions are taken modulo the length; 5040 has all small divisors, so none is favoured
_SPLICES = ((1, 1), (0, 1), (1, 0))  # elements removed and inserted: replace, insert, delete


class InputSource:
    """Draws argument tuples for one interface. Its strategy is costly to build, so make one source per problem.

    Inside your own hypothesis test, making one triggers the health check `nested_given`, which you can suppress.
    """

    def __init__(self, interface: Interface) -> None:
        self._known = {literal(arguments) for arguments in interface.examples}
        self._drawn: list[Arguments] = []
        several = st.lists(arguments_like(interface), min_size=_PER_DRAW, max_size=_PER_DRAW)

        @settings(database=None, derandomize=True, deadline=None)
        @given(several)
        def collect(batch: list[Arguments]) -> None:
            self._drawn.extend(batch)

        self._feed = collect.hypothesis.fuzz_one_input  # type: ignore[attr-defined]  # documented, not typed

    def draw(self, rng: np.random.Generator, n: int) -> list[Arguments]:
        """Return the arguments of at most n different calls, none an example; fewer if the types allow no more."""
        fresh: dict[str, Arguments] = {}
        for _ in range(n):
            self._drawn.clear()
            self._feed(rng.bytes(_BUFFER * _PER_DRAW))
            fresh.update((literal(arguments), arguments) for arguments in self._drawn)
            if len(fresh.keys() - self._known) >= n:
                break
        return [arguments for text, arguments in fresh.items() if text not in self._known][:n]


def arguments_like(interface: Interface) -> SearchStrategy[Arguments]:
    """Return a strategy for one call: an example with some arguments changed, or (one in four) all new."""
    fresh = st.tuples(*(values_of(parameter.type) for parameter in interface.parameters))
    if not interface.examples:
        return fresh
    near = st.one_of(*(_near(example, interface) for example in interface.examples))
    return _weighted_choice((3, near), (1, fresh))


def _near(example: Arguments, interface: Interface) -> SearchStrategy[Arguments]:
    columns = []
    for value, parameter in zip(example, interface.parameters, strict=False):
        changed = changes_of(value, parameter.type)
        columns.append(_weighted_choice((2, changed), (1, st.just(value))) if len(example) > 1 else changed)
    return st.tuples(*columns)


def values_of(kind: ValueType, depth: int = 0) -> SearchStrategy[Any]:
    """Return a strategy for values of a type: near the seen values, plus edges; deeply nested values are small."""
    match kind.kind:
        case Kind.LIST | Kind.TUPLE:
            items = st.lists(values_of(kind.parts[0], depth + 1), max_size=_longest(kind, depth))
            return items if kind.kind is Kind.LIST else items.map(tuple)
        case Kind.SET:
            return st.lists(values_of(kind.parts[0], depth + 1).map(hashable), max_size=_longest(kind, depth)).map(set)
        case Kind.RECORD:
            return st.tuples(*(values_of(part, depth + 1) for part in kind.parts))
        case Kind.DICT:
            key, value = (values_of(part, depth + 1) for part in kind.parts)
            return st.lists(st.tuples(key.map(hashable), value), max_size=_longest(kind, depth)).map(dict)
        case Kind.EITHER:
            return st.one_of(*(values_of(part, depth) for part in kind.parts))
    return _scalars(kind)


def _weighted_choice(*choices: tuple[int, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    """Return a strategy that takes each branch in proportion to its weight (`one_of` drops repeated branches)."""
    table = [strategy for weight, strategy in choices for _ in range(weight)]
    return st.integers(0, len(table) - 1).flatmap(table.__getitem__)


def _longest(kind: ValueType, depth: int) -> int:
    seen = [size for size in kind.seen if isinstance(size, int)]
    return max([*seen, 4]) + 2 if depth < _DEPTH else 2


def _scalars(kind: ValueType) -> SearchStrategy[Any]:
    match kind.kind:
        case Kind.INT | Kind.UNKNOWN:
            return _numbers([value for value in kind.seen if isinstance(value, int)])
        case Kind.FLOAT:
            seen = [value for value in kind.seen if isinstance(value, int | float)]
            quarters = st.integers(-40, 80).map(lambda n: n / 4)
            return quarters | _numbers([int(value) for value in seen]).map(float) | st.sampled_from(edges(kind))
        case Kind.STR:
            return _texts([value for value in kind.seen if isinstance(value, str)])
    return st.sampled_from(edges(kind))


def _numbers(seen: Sequence[int]) -> SearchStrategy[int]:
    """Return integers of the seen range, a little beyond it, and of either sign unless all seen are positive."""
    low, high = min([*seen, 0]), max([*seen, 10])
    span = st.integers(low, high + max(2, high // 4))
    anywhere = st.integers(-10, 20) if low < 0 or len(seen) < 2 else st.integers(-1, 20)
    return st.one_of(span, st.integers(low, low + 8), anywhere)


def _texts(seen: Sequence[str]) -> SearchStrategy[str]:
    """Return strings of seen characters, of seen words, and of a general alphabet."""
    longest = max([*map(len, seen), 4]) + 2
    general = st.lists(st.sampled_from(_LETTERS), max_size=8).map("".join)
    characters = sorted({character for text in seen for character in text})
    words = sorted({word for text in seen for word in text.split()})
    if not characters:
        return general
    own = st.lists(st.sampled_from(characters), max_size=min(longest, 24)).map("".join)
    if len(words) <= 1:
        return _weighted_choice((2, own), (1, general))
    return own | st.lists(st.sampled_from(words), max_size=6).map(" ".join) | general


def changes_of(value: object, kind: ValueType) -> SearchStrategy[Any]:
    """Return a strategy for values near `value`: at most one structural edit, then up to two spliced elements."""
    starts = st.sampled_from([value, *edits(value)])
    element = _elements(value, kind)
    if element is None:
        return starts | values_of(kind)
    splice = st.tuples(st.integers(0, _SPLICE_RANGE), st.sampled_from(_SPLICES), element)
    return st.tuples(starts, st.lists(splice, max_size=2)).map(lambda drawn: _splice(*drawn))


def _elements(value: object, kind: ValueType) -> SearchStrategy[Any] | None:
    """Return a strategy for elements to splice into the value; None if it is empty or cannot have elements."""
    match value, kind.kind:
        case str(), _:
            seen = sorted({character for text in kind.seen if isinstance(text, str) for character in text})
            return st.sampled_from([*seen, *seen, *_LETTERS])
        case (list(), Kind.LIST) | (tuple(), Kind.TUPLE):
            return values_of(kind.parts[0], 1)
        case set(), Kind.SET:
            return values_of(kind.parts[0], 1).map(hashable)
        case dict(), Kind.DICT:
            key, item = (values_of(part, 1) for part in kind.parts)
            return st.tuples(key.map(hashable), item)
        case _:
            return None


def _splice(value: Any, splices: Sequence[tuple[int, tuple[int, int], Any]]) -> object:
    """Return the value after all splices; each removes and inserts elements at a position."""
    if isinstance(value, str):
        return "".join(_spliced_items(list(value), splices))
    if isinstance(value, dict):
        return dict(_spliced_items(list(value.items()), splices))
    ordered = sorted(value, key=literal) if isinstance(value, set) else list(value)
    items = _spliced_items(ordered, splices)
    return items if isinstance(value, list) else type(value)(items)


def _spliced_items(items: list[Any], splices: Sequence[tuple[int, tuple[int, int], Any]]) -> list[Any]:
    for where, (n_removed, n_inserted), element in splices:
        position = where % (len(items) + 1)
        items = [*items[:position], *[element] * n_inserted, *items[position + n_removed :]]
    return items
