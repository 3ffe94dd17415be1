"""The process of a candidate or a solution: loads the program, then answers calls one by one.

The job contains the direct calls, as expressions or as encoded arguments, if the program cannot see them there
(`local.reach`); else each arrives as a frame after the previous answer. So do the calls of a harness, with encoded
arguments. The body of a program, a direct call and a call of a harness start at the same stack depth, and each has as
many frames left as a script has.
"""

from __future__ import annotations

import builtins
import marshal
import sys
from time import process_time
from types import ModuleType
from typing import Any, NamedTuple

from codea1_env.sandbox.inside.channel import BUILTINS, AnswerFrame, Channel, as_answer, as_error_answer, describe_error
from codea1_env.sandbox.wire import APPLY, LOAD, OPERATIONS, Changed, Items, Tag, Truth
from codea1_env.values.decoding import decode
from codea1_env.values.encoding import Opaque, TooLarge, encode, mro_of, namespace_of

# As before any program ran.
_callable, _compile, _eval, _exec = callable, compile, eval, exec
_getattr, _iter, _len, _next = getattr, iter, len, next
_modules, _loads = sys.modules, marshal.loads
_NOT_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError)  # all that compile() raises for invalid text
_NEVER_CHANGED = frozenset({bool, bytes, complex, float, int, str, type(None)})
_MAX_NESTED = 4  # iterators in iterators
_INSTEAD = {
    "__reversed__": ({"__len__", "__getitem__"},),
    "__iter__": ({"__getitem__"},),
    "__contains__": ({"__iter__"}, {"__getitem__"}),
    "__int__": ({"__index__"}, {"__trunc__"}),
    "__float__": ({"__index__"},),
    "__complex__": ({"__float__"}, {"__index__"}),
}
"""The methods that Python calls where another one is missing."""
_MAX_ITEMS = 1 << 14  # that are read from a result that is not plain data


def run(channel: Channel, job: dict[str, Any]) -> None:
    """Load `job["program"]`, answer `job["calls"]`; then, if `job["serve"]`, the calls that arrive as frames."""
    entry = _load(channel, job)
    if entry is None:
        return
    channel.send(Tag.LOADED, LOAD)
    for index, call in job["calls"]:
        _answer_call(channel, index, entry, call, job)
    is_serving = job["serve"]
    while is_serving:
        frame = channel.receive()
        if frame.tag == Tag.CALL:  # only now, so that no earlier call could see it
            call, is_serving = _loads(frame.payload)
            _answer_call(channel, frame.call, entry, call, job)
            continue
        for encoded in _loads(frame.payload) if frame.tag == Tag.AHEAD else (frame.payload,):
            _apply(channel, APPLY, entry, encoded, job)


def _answer_call(channel: Channel, index: int, entry: Any, call: str | bytes, job: dict[str, Any]) -> None:
    """Answer a direct call, given as an expression or as encoded arguments."""
    if type(call) is bytes:
        _apply(channel, index, entry, call, job)
        return
    try:
        # A new namespace and new arguments for each call: only the program's own state persists.
        value = _eval(_compile(call, "<call>", "eval"), {"__builtins__": BUILTINS, job["entry"]: entry})
        channel.send_value(index, value, job["value_bytes"])
    except BaseException as error:  # noqa: BLE001  -- an untrusted program may raise anything
        channel.send_error(index, error)


def _apply(channel: Channel, number: int, entry: Any, encoded: bytes, job: dict[str, Any]) -> None:
    """Call the entry point with encoded arguments; send its answer and, if `job["changes"]`, the changed arguments.

    An encoded text is an expression that is evaluated instead.
    """
    max_bytes = job["value_bytes"]
    args: Any = ()
    kwargs: Any = {}
    answer, value = None, None
    until = process_time() + job["items_s"]
    try:
        arguments = decode(encoded)
        if type(arguments) is str:
            value = _eval(_compile(arguments, "<call>", "eval"), {"__builtins__": BUILTINS, job["entry"]: entry})
        else:
            args, kwargs = arguments
            # A method is called on a new instance each time.
            value = (_getattr(entry(), job["method"]) if job["method"] else entry)(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001  -- an untrusted program may raise anything
        answer = as_error_answer(error)
    after = encoded
    if job["changes"] and not _NEVER_CHANGED.issuperset(map(type, (*args, *kwargs.values()))):
        after = _encode_after(args, kwargs, max_bytes)  # before a result's items are read, which may run the program
    try:
        answer = answer or _answer(value, max_bytes, until)
    except BaseException as error:  # noqa: BLE001  -- an untrusted program may raise anything
        answer = as_error_answer(error)
    if after != encoded:
        answer = AnswerFrame(Tag.CHANGED, Changed(after, *answer).pack())
    channel.send(answer.tag, number, answer.payload)


def _encode_after(args: Any, kwargs: Any, max_bytes: int) -> bytes:
    """Return the encoding of arguments as they are now, with its length for each that is no longer plain data."""
    try:
        return encode((args, kwargs), max_bytes=max_bytes)
    except (Opaque, TooLarge):
        room = max_bytes // (2 * _len((*args, *kwargs)))
        sent = [_or_length(each, room) for each in (*args, *kwargs.values())]
        return encode(
            (tuple(sent[: _len(args)]), dict(zip(kwargs, sent[_len(args) :], strict=True))), max_bytes=max_bytes
        )


def _or_length(argument: Any, max_bytes: int) -> Any:
    try:
        encode(argument, max_bytes=max_bytes)
    except (Opaque, TooLarge):
        return _length_of(argument)
    return argument


class _Yielded(NamedTuple):
    """What an iterator yields."""

    items: list[Any]
    is_cut: bool
    """Whether it may yield more."""
    error: bytes = b""
    """What it raises then, as in `Items`."""


def _answer(value: Any, max_bytes: int, until: float) -> AnswerFrame:
    """Return the answer for a result: its value, or what Python sees of it if it is not plain data."""
    answer = as_answer(value, max_bytes)
    if answer.tag != Tag.OPAQUE:
        return answer
    stated = Items(
        _truth_of(value), _operations_of(type(value)), False, _length_of(value), False, answer.payload[:200], b""
    )
    try:
        iterator = _iter(value)
    except TypeError:
        return AnswerFrame(Tag.ITEMS, stated.pack())
    yielded = _first_items(iterator, until, _MAX_NESTED)
    encoded = b""
    while not encoded:
        try:
            encoded = encode(yielded.items, max_bytes=max_bytes // 2)
        except TooLarge:
            yielded = _Yielded(yielded.items[: len(yielded.items) // 2], True)
    if yielded.items or yielded.error or not yielded.is_cut:
        can_repeat = _iter(value) is not value
        stated = stated._replace(can_repeat=can_repeat, is_cut=yielded.is_cut, items=encoded, error=yielded.error)
    return AnswerFrame(Tag.ITEMS, stated.pack())


def _truth_of(value: Any) -> int:
    try:
        return Truth.TRUE if value else Truth.FALSE
    except Exception:  # noqa: BLE001  -- as an array of several elements does
        return Truth.UNKNOWN


def _length_of(value: Any) -> int:
    try:
        return _len(value)
    except Exception:  # noqa: BLE001  -- it has none
        return -1


def _operations_of(kind: type) -> int:
    has = {name for cls in mro_of(kind)[:-1] for name in namespace_of(cls)}
    for name, others in _INSTEAD.items():
        if any(each <= has for each in others):
            has.add(name)
    return sum(1 << number for number, name in enumerate(OPERATIONS) if name in has)


def _first_items(iterator: Any, until: float, n_nested: int) -> _Yielded:
    """Return what an iterator yields until it ends or fails, or the process has used `until` processor seconds.

    An item that is not plain data is read at once, since the next one may end it, as in `groupby`. One that cannot be
    read ends the items. The call that returned the iterator has raised nothing, even if the first step fails.
    """
    items: list[Any] = []
    while len(items) < _MAX_ITEMS and process_time() < until:
        try:
            items.append(_as_plain(_next(iterator), until, n_nested))
        except StopIteration:
            return _Yielded(items, False)
        except Opaque:
            break
        except BaseException as error:
            failed = as_error_answer(error)
            if failed.tag == Tag.ERROR:
                return _Yielded(items, True, failed.payload)
            if not items:
                raise
            break  # a harness that reads only these items does not see it
    return _Yielded(items, True)


def _as_plain(item: Any, until: float, n_nested: int) -> Any:
    """Return an item, or what it yields if it is not plain data itself: a tuple for a tuple, else a list.

    Raises:
        Opaque: it cannot be read whole.
    """
    try:
        encode(item)
    except Opaque:
        try:
            iterator = _iter(item) if n_nested else None
        except TypeError:
            iterator = None
        if iterator is None:
            raise
        yielded = _first_items(iterator, until, n_nested - 1)
        if yielded.is_cut:
            raise
        return tuple(yielded.items) if type(item) is tuple else yielded.items
    except TooLarge:
        return item
    return item


def _load(channel: Channel, job: dict[str, Any]) -> Any:
    """Return the entry point; if there is none, send why and return None."""
    module = main_module("program")
    _modules["program"] = module  # dataclasses, pickle and typing find a class's module by name
    namespace = vars(module)
    try:
        for name in ("preamble", "program"):
            code = compile_program(channel, job[name])
            if code is None:
                return None
            _exec(code, namespace)
        entry = namespace.get(job["entry"])
        method = _getattr(entry, job["method"], None) if job["method"] else entry
        if _callable(entry) and not _can_be_called(method):  # only its instances may have it
            method = _getattr(entry(), job["method"], None)
    except BaseException as error:  # noqa: BLE001  -- an untrusted program may raise anything
        channel.send_error(LOAD, error)
        return None
    if not (_callable(entry) and _can_be_called(method)):
        name, function = (job["entry"], entry) if entry is None or method is entry else (job["method"], method)
        fault = NameError(f"{name} is {'not callable' if function is not None else 'not defined'}")
        channel.send(Tag.ERROR, LOAD, describe_error(fault, name="NoEntryPoint"))
        return None
    return entry


def _can_be_called(method: Any) -> bool:
    """Return whether an attribute of a class is a method, or a property: its calls show what that is on an instance."""
    return _callable(method) or hasattr(method, "__get__")


def main_module(name: str) -> ModuleType:
    """Return a new main module with the attributes of a script's; its file does not exist."""
    module = _modules["__main__"] = ModuleType(name)
    vars(module).update(__file__="program.py", __builtins__=builtins, __cached__=None)
    return module


def compile_program(channel: Channel, source: str) -> Any:
    """Return the code of a program; if it is not Python, send why and return None."""
    try:
        return _compile(source.removeprefix("\ufeff"), "<program>", "exec", dont_inherit=True)
    except _NOT_PYTHON as error:
        channel.send(Tag.ERROR, LOAD, describe_error(error, name="SyntaxError"))
        return None
