"""Changed versions of the solution's recorded answers. A test must distinguish them from the true answers.

A changed answer is a function of the arguments: equal arguments (by their encoding) get equal answers. Arguments that
are not in the record get the answer of some recorded ones, changed. Most changes give different arguments different
answers; some give all the same, as some wrong programs do.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NamedTuple


class Recorded(NamedTuple):
    """One recorded call."""

    arguments: bytes
    """Encoded pair of positional and keyword arguments."""
    answer: bytes
    """Encoded answer; if the answer can only be iterated, the encoded list of its items."""
    is_iterator: bool
    after: bytes
    """The arguments after the call; empty if they have not changed."""


class Answered(NamedTuple):
    """One answer."""

    value: Any
    after: bytes
    """As in `Recorded`."""


class NoChange(Exception):
    """This change leaves all recorded answers as they are."""


class _CallContext(NamedTuple):
    """What a change can use to make its answer to one call."""

    answer: Any
    """The recorded answer; for arguments that are not in the record, the answer of some recorded ones."""
    number: int
    """Number of the arguments, from 0, in the order in which they first occur."""
    given: list[Any]
    """All arguments, positional and keyword."""
    recorded: Callable[[int], Any]
    """Number -> a new copy of a recorded answer; the number is taken modulo the number of recorded answers."""


def changed_answers(
    record: list[Recorded], number: int, decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]
) -> Callable[[Any], Answered]:
    """Return an entry point that takes (positional, keyword) arguments and returns the answer under a change.

    For a call that was sent as text, it takes the text.

    Args:
        record: the solution's calls, at least one.
        number: number of the change, from 0, below `N_CHANGES`.
        decode: canonical encoding to value.
        encode: value to canonical encoding; answers may be larger than the recorded ones.

    Raises:
        NoChange: the change leaves all recorded answers as they are.
        Exception: the change does not apply to the type of a recorded answer.
    """
    known: dict[bytes, Recorded] = {}
    for call in record:
        known.setdefault(call.arguments, call)
    in_order = list(known.values())
    numbers = dict(zip(known, range(len(known)), strict=True))

    def copy_of_record(position: int) -> Any:
        return decode(in_order[position % len(in_order)].answer)

    def answer_to(arguments: bytes) -> tuple[Any, bytes]:
        position = numbers.setdefault(arguments, len(numbers))
        call = known.get(arguments) or in_order[position % len(in_order)]._replace(arguments=arguments, after=b"")
        if number < len(_CHANGES):
            given = decode(arguments)
            args, kwargs = ((), {}) if type(given) is str else given
            context = _CallContext(decode(call.answer), position, [*args, *kwargs.values()], copy_of_record)
            return _CHANGES[number](context), call.after
        change = _OF_ARGUMENTS[number - len(_CHANGES)]
        return decode(call.answer), encode(change(decode(arguments), decode(call.after or arguments)))

    def is_changed(call: Recorded) -> bool:
        value, after = answer_to(call.arguments)
        return encode(value) != call.answer or (after or call.arguments) != (call.after or call.arguments)

    if not any(is_changed(call) for call in in_order):
        raise NoChange

    def entry_point(given: Any) -> Answered:
        value, after = answer_to(encode(given))
        return Answered(iter(value) if in_order[0].is_iterator and type(value) is list else value, after)

    return entry_point


# -- changes of one value: `number` makes answers to different arguments differ ---------------------

_Change = Callable[[Any, int], Any]

_NUMBERS = frozenset({"int", "float", "complex", "Decimal", "Fraction"})
_SETS = (set, frozenset)
_IN_ORDER = (list, tuple, collections.deque)
_ITEMS = (*_IN_ORDER, *_SETS)
_HUGE = {int: 1 << 64, float: 2.0**40}  # powers of two: no digit of an answer is lost
_LONG = 1000
_CHARACTERS = "\u00e9  " + "".join(map(chr, range(33, 127))) + "\t\n"
_ODD_ITEMS: list[Any] = [None, 0, 1, -1, 0.5, "", "a", (), 0]


def _is_number(value: Any) -> bool:
    return type(value).__name__ in _NUMBERS


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bytes | bytearray)


def _character(value: Any, number: int) -> Any:
    """Return a character of the same kind of text."""
    letter = chr(97 + number % 26)
    return letter if isinstance(value, str) else type(value)(letter.encode())


def _more(value: Any, number: int) -> Any:
    if isinstance(value, bool):
        return not value
    if _is_number(value):
        return value + 1 + number
    if _is_text(value):
        return value + _character(value, number)
    return number if value is None else value


def _less(value: Any, number: int) -> Any:
    if _is_number(value):
        return value - 1 - number
    return value[:-1] if _is_text(value) else value


def _opposite(value: Any, number: int) -> Any:
    if isinstance(value, bool):
        return not value
    if _is_number(value):
        return -value - 1
    return value[::-1].swapcase() if _is_text(value) else value


def _half(value: Any, number: int) -> Any:
    if _is_number(value) or isinstance(value, bool):
        return value + 0.5
    return value.upper() + _character(value, number).upper() if _is_text(value) else value


def _huge(value: Any, number: int) -> Any:
    if _is_number(value):
        return (abs(value) + 1 + number) * _HUGE.get(type(value), 1 << 40)
    return value + _character(value, number) * _LONG if _is_text(value) else value


def _hugely_negative(value: Any, number: int) -> Any:
    return -_huge(value, number) if _is_number(value) else value


def _none(value: Any, number: int) -> Any:
    return None


def _infinite(value: Any, number: int) -> Any:
    return float("inf") if type(value) is float else value


def _zero(value: Any, number: int) -> Any:
    return type(value)() if value is not None and (_is_number(value) or _is_text(value)) else value


def _in_leaves(change: _Change) -> _Change:
    """Return a change that applies `change` to a value, or to everything inside a container."""

    def change_leaves(value: Any, number: int) -> Any:
        if isinstance(value, dict):
            return {key: change_leaves(item, number) for key, item in value.items()}
        if isinstance(value, _ITEMS):
            return type(value)([change_leaves(item, number) for item in value])
        if hasattr(value, "__dataclass_fields__"):
            return type(value)(*[change_leaves(getattr(value, field), number) for field in value.__dataclass_fields__])
        return change(value, number)

    return change_leaves


def _empty(value: Any, number: int) -> Any:
    return None if value is None else type(value)()


def _reverse(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return dict(reversed(value.items()))
    if _is_text(value):
        return value[::-1]
    return type(value)(reversed(value)) if isinstance(value, _IN_ORDER) else value


def _shorter(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return dict([*value.items()][:-1])
    return type(value)([*value][:-1]) if isinstance(value, _ITEMS) else _less(value, number)


def _with_front(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {_more(next(reversed(value), 0), number): next(iter(value.values()), -1 - number), **value}
    if isinstance(value, str):
        return _CHARACTERS + value
    if isinstance(value, _ITEMS):
        items = [*value] or [0]
        return type(value)([_in_leaves(_more)(items[-1], number), *value])
    return _more(value, number)


def _with_back(value: Any, number: int) -> Any:
    if isinstance(value, str):
        return value + _CHARACTERS[::-1]
    if isinstance(value, _ITEMS):
        items = [*value] or [2 + number, 1]
        return type(value)([*items, _in_leaves(_opposite)(items[0], number), items[-1]])
    return _more(value, number)


def _with_odd_items(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {**value, **dict.fromkeys([*_ODD_ITEMS, *_CHARACTERS], -1 - number)}
    if isinstance(value, str):
        return f"\n {value} \t"
    return type(value)([*value, *_ODD_ITEMS, number]) if isinstance(value, _ITEMS) else -1


def _double(value: Any, number: int) -> Any:
    if _is_number(value) or isinstance(value, bool):
        return value + value + 1
    if isinstance(value, _IN_ORDER):
        return type(value)([*value, *value])
    return value + value if _is_text(value) else _with_back(value, number)


def _long(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {**value, **dict.fromkeys(range(number, number + _LONG), next(iter(value.values()), number))}
    if isinstance(value, _SETS):
        return type(value)([*value, *range(number, number + _LONG)])
    if isinstance(value, _IN_ORDER):
        items = [*value] or [number]
        return type(value)(items * (_LONG // len(items) + 2))
    return _huge(value, number)


def _first_changed(value: Any, number: int) -> Any:
    if isinstance(value, _IN_ORDER) and value:
        first, *others = value
        return type(value)([_in_leaves(_more)(first, number), *others])
    return _more(value, number)


def _keys_changed(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {_in_leaves(_half)(key, number): item for key, item in value.items()} or {"Z": number}
    return _opposite(value, number)


def _in_items(change: _Change) -> _Change:
    """Return a change that applies `change` to each item of a container as a whole; an empty one gets one item."""

    def change_items(value: Any, number: int) -> Any:
        if isinstance(value, dict):
            return {key: change(item, number) for key, item in (value or {"Z": ""}).items()}
        return type(value)([change(item, number) for item in value or [""]]) if isinstance(value, _IN_ORDER) else value

    return change_items


def _of_answer(change: _Change) -> Callable[[_CallContext], Any]:
    return lambda context: change(context.answer, context.number)


_CHANGES: tuple[Callable[[_CallContext], Any], ...] = (
    # Most tests fail under one of the first four (`N_DECISIVE`), so the others need not run.
    _of_answer(_in_leaves(_more)),
    _of_answer(_in_leaves(_opposite)),
    lambda context: chr(97 + context.number % 26) * (context.number + 1),
    lambda context: None,
    # Another type.
    lambda context: 7 + context.number,
    lambda context: [context.number] * (context.number + 1),
    lambda context: context.number % 2 == 0,
    lambda context: ("", 7, None)[context.number % 3],
    # The same type.
    *map(_of_answer, (_empty, _reverse, _shorter, _with_front, _with_back, _with_odd_items, _double)),
    *map(_of_answer, (_in_leaves(_zero), _in_leaves(_less), _in_leaves(_half), _first_changed, _keys_changed)),
    *map(_of_answer, (_in_items(_empty), _in_items(_none))),
    # Another call's answer, or an argument.
    lambda context: context.recorded(0),
    lambda context: context.recorded(context.number + 1),
    lambda context: context.given[0],
    lambda context: context.given[-1],
    # Large values: last, since a test may take long with them.
    *map(_of_answer, (_in_leaves(_infinite), _in_leaves(_hugely_negative), _in_leaves(_huge), _long)),
)


# -- changes of arguments: (before, after) -> after -------------------------------------------------

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_MUTABLE = frozenset({list, dict, set, bytearray, collections.deque})


def _each(change: _Change) -> Callable[[Arguments, Arguments], Arguments]:
    def change_arguments(before: Arguments, after: Arguments) -> Arguments:
        args, kwargs = after
        return tuple(each(value) for value in args), {name: each(value) for name, value in kwargs.items()}

    def each(value: Any) -> Any:
        return change(value, 0) if type(value) in _MUTABLE else value

    return change_arguments


_OF_ARGUMENTS: tuple[Callable[[Arguments, Arguments], Arguments], ...] = (
    lambda before, after: before,
    *map(_each, (_empty, _reverse, _with_back, _in_leaves(_more))),
    _each(_with_odd_items),
)

N_CHANGES = len(_CHANGES) + len(_OF_ARGUMENTS) - 1
"""Number of changes; each is identified by its index."""
N_CHANGES_IN_PLACE = N_CHANGES + 1
"""The same for an entry point that works in place: the last change adds items to empty dicts and sets, too."""
CHANGES_OF_ARGUMENTS = range(len(_CHANGES), N_CHANGES)
"""Indices of the changes that change only the arguments, not the answers."""
N_DECISIVE = 4
"""Most tests fail under one of the first `N_DECISIVE` changes."""
