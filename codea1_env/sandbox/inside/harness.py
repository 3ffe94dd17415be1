"""The process of a test harness: the program under test is elsewhere, behind a stand-in.

The stand-in sends its arguments as plain data and returns what comes back, or raises it. So the program sees copies:
what it does to its arguments is not visible to the harness. A result that is not plain data comes back as an object
that is true, equal to nothing, and good for nothing else.
"""

from __future__ import annotations

import json
import sys
from _thread import allocate_lock
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from codea1_env.sandbox.inside.channel import BUILTINS, Channel
from codea1_env.sandbox.wire import APPLY, LOAD, Frame, Tag
from codea1_env.values.decoding import decode
from codea1_env.values.encoding import Opaque, TooLarge, encode
from codea1_env.values.tree import Malformed

__all__ = ["run"]

_CATCHES = "except"  # in a source that can mean to catch what the program raises; an expression cannot


def run(channel: Channel, job: dict[str, Any]) -> None:
    """Execute the harness's source once, then evaluate each call in a copy of its namespace."""
    stand_in = _StandIn(channel, job["value_bytes"])
    names = dict.fromkeys((job["entry"], "candidate"), stand_in.as_function(job["entry"]))
    module = ModuleType("harness")
    sys.modules["harness"] = sys.modules["__main__"] = module
    namespace = vars(module)
    namespace.update(names)
    try:
        exec(compile(job["source"], "<harness>", "exec", dont_inherit=True), namespace)
    except BaseException as error:  # noqa: BLE001  -- a tester's text may raise anything
        channel.send_error(LOAD, error, stand_in.has_raised(error))
        return
    channel.send(Tag.LOADED, LOAD)
    for number, expression, imports in job["calls"]:
        stand_in.forget()
        try:
            value = _evaluated(expression, imports, {**namespace, **names})
            if _CATCHES not in job["source"]:
                stand_in.raise_lost()
            channel.send_value(number, value, job["value_bytes"])
        except BaseException as error:  # noqa: BLE001  -- a tester's text may raise anything
            channel.send_error(number, error, stand_in.has_raised(error))
        value = None


def _evaluated(expression: str, imports: list[str], scope: dict[str, Any]) -> Any:
    for statement in imports:
        exec(compile(statement, "<imports>", "exec", dont_inherit=True), scope)
    return eval(compile(expression, "<call>", "eval", dont_inherit=True), scope)


class OpaqueArgument(TypeError):
    """The harness passed something that is not plain data, or too much of it."""


class ResultTooLarge(ValueError):
    """The program returned more than may travel."""


class OpaqueResultUse(TypeError):
    """The harness used a result that is not plain data."""


class OpaqueResult:
    """What the program returned is not plain data: it is something, and nothing else can be said of it."""

    def __init__(self, description: str, refuse: Callable[[str], NoReturn]) -> None:
        self.__description = description
        self.__refuse = refuse

    def __repr__(self) -> str:
        return f"<{self.__description} that cannot be carried>"

    def __getattr__(self, name: str) -> NoReturn:
        self.__refuse(self.__description)

    def __refused(self, *_: Any, **__: Any) -> NoReturn:
        self.__refuse(self.__description)

    __call__ = __iter__ = __next__ = __len__ = __getitem__ = __setitem__ = __contains__ = __refused
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __refused
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __neg__ = __abs__ = __int__ = __float__ = __refused
    __index__ = __round__ = __enter__ = __exit__ = __refused

    def __bool__(self) -> bool:
        return True


class _StandIn:
    """Calls into the program's process."""

    def __init__(self, channel: Channel, max_bytes: int) -> None:
        self._channel = channel
        self._max_bytes = max_bytes
        self._lock = allocate_lock()  # harnesses may have threads
        self._raised: list[BaseException] = []

    def as_function(self, name: str) -> Callable[..., Any]:
        def candidate(*args: Any, **kwargs: Any) -> Any:
            return self._call(args, kwargs)

        candidate.__name__ = candidate.__qualname__ = name
        return candidate

    def forget(self) -> None:
        """Start on another call."""
        self._raised.clear()

    def raise_lost(self) -> None:
        """Raise the StopIteration that the program has raised, if any: `map` and the like took it for their own end."""
        for error in self._raised:
            if isinstance(error, StopIteration):
                raise error

    def has_raised(self, error: BaseException) -> bool:
        """Whether it was the program that raised this."""
        return any(error is raised for raised in self._raised)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            arguments = encode((args, kwargs), max_bytes=self._max_bytes)
        except (Opaque, TooLarge) as error:
            raise OpaqueArgument(str(error)) from None
        with self._lock:
            self._channel.send(Tag.APPLY, APPLY, arguments)
            reply = self._channel.receive()
        if reply.tag == Tag.VALUE:
            return self._decoded(reply.payload)
        if reply.tag == Tag.OPAQUE:
            return OpaqueResult(reply.payload.decode("utf-8", "replace"), self._refuse_use)
        return self._raise(_as_exception(reply))

    def _decoded(self, payload: bytes) -> Any:
        try:
            return decode(payload)
        except Malformed as error:
            return self._raise(error)

    def _refuse_use(self, description: str) -> NoReturn:
        self._raise(OpaqueResultUse(f"{description} is not plain data"))

    def _raise(self, error: BaseException) -> NoReturn:
        self._raised.append(error)
        raise error


def _as_exception(reply: Frame) -> BaseException:
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
    except TypeError:  # UnicodeDecodeError and the like take other arguments
        substitute: type[BaseException] = type(name, (Exception,), {})
        return substitute(message)
