"""The process of a test harness. The program under test runs in another process; a stand-in function calls it.

The stand-in sends its arguments as plain data and returns or raises what the program answers. So the program works on
copies. If a tester wrote the harness, the answer contains the changes that the program made to its arguments, and this
module makes the same changes. A result that is not plain data becomes an object that is equal to nothing: it has the
result's truth value, yields the result's items, and fails where the result's class lacks a special method; any other
use of it is refused.

If the job has records of a program's answers, no program is called: the entry point returns changed versions of these
answers.
"""

from __future__ import annotations

import collections
import json
import marshal
import os
import sys
from _thread import allocate_lock
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any, NoReturn

from codea1_env.sandbox.inside.channel import BUILTINS, AnswerFrame, Channel
from codea1_env.sandbox.wire import APPLY, LOAD, N_UNARY, OPERATIONS, Changed, Items, Tag, Truth
from codea1_env.values.decoding import decode
from codea1_env.values.encoding import Opaque, TooLarge, encode
from codea1_env.values.tree import Malformed

_CONTAINERS = frozenset({bytearray, collections.deque, dict, list, set, tuple})
_MAX_CHANGED_BYTES = 1 << 24  # a change may make a recorded answer larger


def _code_of(name: str) -> bytes:
    return marshal.dumps(SourceFileLoader(name, os.path.join(os.path.dirname(__file__), f"{name}.py")).get_code(name))


# As bytes, because few children need the objects and every fork would copy their memory.
_CHANGES, _PYTEST = _code_of("changes"), _code_of("pytest_stand_in")
_HANDLER_KEYWORD = "except"  # a source with it may catch the program's exceptions; an expression cannot


def run(channel: Channel, job: dict[str, Any]) -> None:
    """Execute the harness's source once; then evaluate each call in a copy of its namespace."""
    stand_in = _StandIn(channel, job["value_bytes"], job["expected"])
    named = _Named(job["entry"], job["method"])
    function = named.function(stand_in.call, stand_in.call_source)
    entry: Any = _Records(job["records"], named, job["words"]) if job["records"] else named.entry(function)
    names = {"raises": stand_in.raises, "candidate": function, job["entry"]: entry}
    module = ModuleType("harness")
    sys.modules["harness"] = sys.modules["__main__"] = module
    namespace = vars(module)
    namespace.update(names)
    if "pytest" in job["source"] or any("pytest" in line for _, _, imports in job["calls"] for line in imports):
        sys.modules["pytest"] = _load_module("pytest", _PYTEST)
    scope_of = (lambda: dict(namespace)) if job["trusted"] else (lambda: {**namespace, **names})
    try:
        exec(compile(job["source"], "<harness>", "exec", dont_inherit=True), namespace)
    except BaseException as error:  # noqa: BLE001  -- a tester's text may raise anything
        channel.send_error(LOAD, error, stand_in.has_raised(error))
        return
    channel.send(Tag.LOADED, LOAD)
    for number, expression, imports in job["calls"]:
        stand_in.start_call()
        try:
            value = _evaluate(expression, imports, scope_of())
            stand_in.raise_swallowed(may_be_caught=_HANDLER_KEYWORD in job["source"])
            stand_in.leave_answers()
            channel.send_value(number, value, job["value_bytes"])
        except BaseException as error:  # noqa: BLE001  -- a tester's text may raise anything
            stand_in.leave_answers()
            channel.send_error(number, error, stand_in.has_raised(error))
        value = None


def _evaluate(expression: str, imports: list[str], scope: dict[str, Any]) -> Any:
    for statement in imports:
        exec(compile(statement, "<imports>", "exec", dont_inherit=True), scope)
    return eval(compile(expression, "<call>", "eval", dont_inherit=True), scope)


class OpaqueArgument(TypeError):
    """The harness passed something that is not plain data."""


class OversizedArgument(ValueError):
    """The harness passed plain data that is too large or nested too deeply."""


class ResultTooLarge(ValueError):
    """The program returned a value larger than `value_bytes`."""


class OpaqueResultUse(TypeError):
    """The harness used a result that is not plain data."""


class OpaqueResult:
    """Represents a result of the program that is not plain data.

    Its truth value is the result's. A special method that the result's class lacks fails as it would fail on the
    result; any other use is refused, since what it would do is not known here.
    """

    def __init__(self, stated: Items, refuse: Callable[..., NoReturn]) -> None:
        self.__stated = stated
        self.__description = stated.description.decode("utf-8", "replace")
        self.__refuse = refuse

    def __repr__(self) -> NoReturn:  # else a test of the text would hold for each result of a class with this name
        self.__refuse(self.__description)

    def __getattr__(self, name: str) -> NoReturn:
        self.__refuse(self.__description)

    def __format__(self, spec: str) -> NoReturn:
        self.__refuse(self.__description)

    def __bool__(self) -> bool:
        if self.__stated.truth not in (Truth.FALSE, Truth.TRUE):
            self.__refuse(self.__description)
        return self.__stated.truth == Truth.TRUE

    def _refuse_operation(self, number: int) -> Any:
        """Refuse a special method, by its position in `OPERATIONS`, unless the class lacks it."""
        if self.__stated.operations >> number & 1:
            self.__refuse(self.__description)
        if number < N_UNARY:
            raise TypeError(f"{self.__description} does not support {OPERATIONS[number]}")
        return NotImplemented


def _operation(number: int) -> Callable[..., Any]:
    def use(self: OpaqueResult, *_: Any, **__: Any) -> Any:
        return self._refuse_operation(number)

    return use


for _number, _name in enumerate(OPERATIONS):
    if _name != "__call__":  # `callable` asks the class
        setattr(OpaqueResult, _name, _operation(_number))


class IterableResult(OpaqueResult):
    """Represents a result that is not plain data but can be iterated: a generator, a view, a custom iterator."""

    def __init__(self, items: Items, refuse: Callable[..., NoReturn]) -> None:
        super().__init__(items, refuse)
        self.__stated, self.__values = items, decode(items.items)
        self.__refuse = refuse
        self.__iterator = self.__yielding()

    def __getattr__(self, name: str) -> NoReturn:
        if name == "keys":  # `dict` distinguishes a mapping from pairs by this attribute
            raise AttributeError(name)
        super().__getattr__(name)

    def __yielding(self) -> Iterator[Any]:
        yield from self.__values
        if self.__stated.is_cut:
            self.__refuse("more than the first items", self.__stated.error)

    def __iter__(self) -> Iterator[Any]:
        return self.__yielding() if self.__stated.can_repeat else self

    def __next__(self) -> Any:
        return self._refuse_operation(_NEXT) if self.__stated.can_repeat else next(self.__iterator)

    def __len__(self) -> int:
        return int(self._refuse_operation(_LEN)) if self.__stated.length < 0 else self.__stated.length

    def __contains__(self, item: object) -> bool:
        return any(item is each or item == each for each in self)


_CALL = OPERATIONS.index("__call__")
_CALLABLE: dict[type[OpaqueResult], Any] = {
    kind: type(kind.__name__, (kind,), {"__call__": _operation(_CALL)}) for kind in (OpaqueResult, IterableResult)
}
_NEXT, _LEN = OPERATIONS.index("__next__"), OPERATIONS.index("__len__")
_NOTHING_KNOWN = Items(Truth.UNKNOWN, -1, False, -1, False, b"what an argument holds", b"")  # -1: it has every method
_MAX_UNKNOWN = 1 << 14  # objects in the place of those that an argument holds
_RESULTS = frozenset(f"a {kind.__name__}" for kind in (OpaqueResult, IterableResult))
"""Messages of `encode` about these classes."""


_OURS = (OpaqueArgument, OversizedArgument, ResultTooLarge, OpaqueResultUse, Malformed)


class _StandIn:
    """Calls into the program's process."""

    def __init__(self, channel: Channel, max_bytes: int, expected: list[bytes]) -> None:
        self._channel = channel
        self._max_bytes = max_bytes
        self._expected = expected
        self._n_made = 0
        self._ahead: collections.deque[bytes] = collections.deque()  # values of the next expected calls
        self._lock = allocate_lock()  # harnesses may have threads
        self._raised: list[BaseException] = []

    def start_call(self) -> None:
        """Forget the exceptions and the calls of the previous call."""
        self._raised.clear()
        self._n_made = 0

    def raise_swallowed(self, *, may_be_caught: bool) -> None:
        """Raise what code of a library has caught: for `map` a StopIteration of the program is its own end, and for
        `numpy.array_equal` a result that it may not use is one that differs."""
        for error in self._raised:
            if isinstance(error, StopIteration | OpaqueResultUse) and not (may_be_caught and _reached_a_handler(error)):
                raise error

    def has_raised(self, error: BaseException) -> bool:
        """Return whether the stand-in raised this exception."""
        return any(error is raised for raised in self._raised)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return or raise what the program answers."""
        try:
            arguments = encode((args, kwargs), max_bytes=self._max_bytes)
        except TooLarge as error:
            self._raise(OversizedArgument(str(error)))
        except Opaque as error:
            is_result = str(error) in _RESULTS  # a result of the program: not a fault of the harness
            self._raise((OpaqueResultUse if is_result else OpaqueArgument)(str(error)))
        answer = self._answer_to(arguments)
        try:
            if answer.tag == Tag.CHANGED:
                changed = Changed.unpack(answer.payload)
                answer = AnswerFrame(changed.tag, changed.payload)
                for lost, length in _update_arguments(args, kwargs, changed.arguments):
                    self._fill_with_opaque(lost, length)
            return self._result(answer)
        except Malformed as error:
            return self._raise(error)

    def raises(self, expected: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> bool:
        """Return whether a call of the program raises one of the expected exceptions; raise any other one.

        An exception that only says that something could not be sent is not the program's. A RecursionError is a
        RuntimeError, but any fault may raise it.
        """
        try:
            function(*args, **kwargs)
        except expected as error:
            if isinstance(error, (*_OURS, RecursionError)) or not self.has_raised(error):
                raise
            self._raised.clear()
            return True
        return False

    def call_source(self, text: str) -> Any:
        """Return or raise what the program answers to an expression."""
        try:
            return self._result(self._answer_to(encode(text, max_bytes=self._max_bytes)))
        except Malformed as error:
            return self._raise(error)

    def _answer_to(self, arguments: bytes) -> AnswerFrame:
        with self._lock:
            self._n_made += 1
            if self._ahead and arguments == self._expected[self._n_made - 1]:
                return AnswerFrame(Tag.VALUE, self._ahead.popleft())
            self.leave_answers()
            self._channel.send(Tag.APPLY, APPLY, arguments)
            frame = self._channel.receive()
            if frame.tag != Tag.AHEAD:
                return AnswerFrame(frame.tag, frame.payload)
            self._ahead.extend(marshal.loads(frame.payload))
            return AnswerFrame(Tag.VALUE, self._ahead.popleft())

    def leave_answers(self) -> None:
        """Say how many of the answers that came ahead are not needed."""
        if self._ahead:
            self._channel.send(Tag.AHEAD, len(self._ahead))
            self._ahead.clear()

    def _result(self, answer: AnswerFrame) -> Any:
        if answer.tag == Tag.VALUE:
            return decode(answer.payload)
        if answer.tag == Tag.ITEMS:
            stated = Items.unpack(answer.payload)
            kind = IterableResult if stated.items else OpaqueResult
            return (_CALLABLE[kind] if stated.operations >> _CALL & 1 else kind)(stated, self._refuse_use)
        if answer.tag == Tag.OPAQUE:
            return OpaqueResult(_NOTHING_KNOWN._replace(description=answer.payload), self._refuse_use)
        return self._raise(_as_exception(answer))

    def _fill_with_opaque(self, argument: Any, length: int) -> None:
        """Fill an argument with opaque objects, after the program has put something into it that is not plain data."""
        unknown = [OpaqueResult(_NOTHING_KNOWN, self._refuse_use) for _ in range(min(length, _MAX_UNKNOWN))]
        if isinstance(argument, tuple):
            for each in argument:
                self._fill_with_opaque(each, _n_items(each) + 1)
        elif isinstance(argument, dict):
            argument.clear()
            argument.update(zip(unknown, unknown, strict=True))
        elif isinstance(argument, set):
            argument.clear()
            argument.update(unknown)
        elif isinstance(argument, list | collections.deque):
            argument.clear()
            argument.extend(unknown)

    def _refuse_use(self, description: str, error: bytes = b"") -> NoReturn:
        """Raise what a result raises in this use, or else that what it would do is not known."""
        refusal = OpaqueResultUse(f"{description} is not plain data")
        self._raise(_as_exception(AnswerFrame(Tag.ERROR, error)) if error else refusal)

    def _raise(self, error: BaseException) -> NoReturn:
        self._raised.append(error)
        raise error


class _Named:
    """The names under which a harness sees the entry point: a function's, or a class's and its method's."""

    def __init__(self, name: str, method: str) -> None:
        self._name = name
        self._method = method

    def function(
        self, call: Callable[[tuple[Any, ...], dict[str, Any]], Any], call_source: Callable[[str], Any]
    ) -> Callable[..., Any]:
        """Return the function that has the name of the function or the method.

        It has `source_call` for calls that are sent as text.
        """

        def candidate(*args: Any, **kwargs: Any) -> Any:
            return call(args, kwargs)

        candidate.__name__ = candidate.__qualname__ = self._method or self._name
        candidate.source_call = call_source  # type: ignore[attr-defined]
        return candidate

    def entry(self, function: Callable[..., Any]) -> Any:
        """Return what the entry point's name refers to: a function, or a class with it as its only method."""
        return type(self._name, (), {self._method: staticmethod(function)}) if self._method else function


def _load_module(name: str, code: bytes) -> Any:
    """Return a module of this folder."""
    module = ModuleType(name)
    exec(marshal.loads(code), vars(module))
    return module


def _encode(value: Any) -> bytes:
    return encode(value, max_bytes=_MAX_CHANGED_BYTES)


def _decoded_words(data: bytes) -> Any:
    """Return the output of a program as its words, whole numbers among them as integers; other values as they are."""
    value = decode(data)
    if type(value) is not str:
        return value
    return [int(word) if word.isdecimal() and str(int(word)) == word else word for word in value.split()]


def _text_of(words: Any) -> str:
    return " ".join(map(str, words)) if type(words) is list else str(words)


def _encoded_words(value: Any) -> bytes:
    return _encode(value if type(value) is tuple else _text_of(value))


class _Records:
    """Replaces the entry point if answers are recorded; a call selects one record and one change of it."""

    def __init__(self, records: list[list[tuple[bytes, bytes, bool, bytes]]], named: _Named, are_words: bool) -> None:
        self._changes = _load_module("changes", _CHANGES)
        self._are_words = are_words
        self._records = [[self._changes.Recorded(*call) for call in record] for record in records]
        self._named = named

    def changed(self, record: int, change: int) -> Any:
        """Return the entry point that returns the changed answers of a record; see `changed_answers`."""
        codec = (_decoded_words, _encoded_words) if self._are_words else (decode, _encode)
        answered = self._changes.changed_answers(self._records[record], change, *codec)

        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            value, after = answered((args, kwargs))
            value = _text_of(value) if self._are_words else value
            if after:
                _update_arguments(args, kwargs, after)
            return value

        return self._named.entry(self._named.function(call, lambda text: answered(text)[0]))


def _as_exception(reply: AnswerFrame) -> BaseException:
    if reply.tag == Tag.MEMORY:
        return MemoryError()
    if reply.tag == Tag.TOO_LARGE:
        return ResultTooLarge("more than may travel")
    name, base_name, message, _ = json.loads(reply.payload)
    base: Any = BUILTINS.get(base_name)
    if not (isinstance(base, type) and issubclass(base, BaseException)):
        base = Exception
    kind: type[BaseException] = base if name == base_name else type(name, (base,), {})
    try:
        return kind(message)
    except TypeError:  # some classes, such as UnicodeDecodeError, take other arguments
        return _without_arguments(kind, name, message)


def _without_arguments(kind: type[BaseException], name: str, message: str) -> BaseException:
    """Return an exception that an `except` of its class finds, made without the arguments that the class asks for."""
    try:
        made: type[BaseException] = type(name, (kind,), {"__init__": lambda *_: None, "__str__": lambda _: message})
        return made()
    except TypeError:  # groups of exceptions
        substitute: type[BaseException] = type(name, (Exception,), {})
        return substitute(message)


def _reached_a_handler(error: BaseException) -> bool:
    """Return whether the outermost function that an exception has reached is the harness's and has a handler."""
    if error.__traceback__ is None:
        return False
    code = error.__traceback__.tb_frame.f_code
    return code.co_filename != run.__code__.co_filename and bool(code.co_exceptiontable)


# Changes that a program has made to its arguments


def _update_arguments(args: tuple[Any, ...], kwargs: dict[str, Any], after: bytes) -> list[tuple[Any, int]]:
    """Make the changes in `args` and `kwargs` that a call has made in its copies of them.

    Returns:
        The arguments that are no longer plain data, each with its length: that is what is sent instead of them.
    """
    new_args, new_kwargs = decode(after)
    lost = []
    for old, new in [*zip(args, new_args, strict=False), *((kwargs[name], new_kwargs[name]) for name in kwargs)]:
        if type(old) is type(new):
            _update(old, new)
        elif type(new) is int:
            lost.append((old, new))
    return lost


def _n_items(value: Any) -> int:
    return len(value) if type(value) in _CONTAINERS else 0


def _update(old: Any, new: Any) -> None:
    """Make a container equal to another one of its type, and keep the objects in it that remain."""
    if isinstance(old, tuple):
        for here, value in zip(old, new, strict=False):
            if type(here) is type(value):
                _update(here, value)
    elif isinstance(old, dict):
        keep = _Keeper([(old.get(key), value) for key, value in new.items()], old.values())
        items = {key: keep(old.get(key), value) for key, value in new.items()}
        old.clear()
        old.update(items)
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray):
        old[:] = new
    elif type(old).__name__ == "ndarray":
        if old.shape == new.shape and old.dtype == new.dtype:
            old[...] = new
    elif isinstance(old, list | collections.deque):
        pairs = list(zip([*old, *[None] * len(new)], new, strict=False))
        keep = _Keeper(pairs, old)
        kept = [keep(here, value) for here, value in pairs]
        old.clear()
        old.extend(kept)


class _Keeper:
    """Finds for a copy in the changed container the original object of which it is a copy, each at most once."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]], objects: Iterable[Any]) -> None:
        """Note which objects are as they were, at their places or elsewhere, so that they must not be changed.

        Args:
            pairs: what was at a place of the container, and the copy that is there now.
            objects: all that were in the container.
        """
        copies = [(id(here), _encode(here), _encode(value)) for here, value in pairs if type(value) in _CONTAINERS]
        self._fixed = {place for place, before, data in copies if before == data}
        changed = {data for _, before, data in copies if before != data}
        self._moved: dict[bytes, list[Any]] = {}
        for each in objects:
            if type(each) in _CONTAINERS and id(each) not in self._fixed and (data := _encode(each)) in changed:
                self._moved.setdefault(data, []).append(each)
        self._fixed |= {id(each) for moved in self._moved.values() for each in moved}

    def __call__(self, here: Any, value: Any) -> Any:
        """Return the object of which `value` is a copy: the object at its place, or one that moved there, if any."""
        if type(value) not in _CONTAINERS:
            return value
        encoded = _encode(value)
        if type(here) is type(value) and _encode(here) == encoded:
            return here
        if self._moved.get(encoded):
            return self._moved[encoded].pop()
        if type(here) is not type(value) or id(here) in self._fixed:
            return value
        self._fixed.add(id(here))
        _update(here, value)
        return here if type(here) is not tuple or _encode(here) == encoded else value
