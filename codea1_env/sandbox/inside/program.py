"""The process of a candidate or a solution: loads the program, then answers calls one by one.

Direct calls stand in the job; calls of a harness arrive later as frames, one at a time, with encoded arguments.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from codea1_env.sandbox.inside.channel import BUILTINS, Channel, describe_error
from codea1_env.sandbox.wire import APPLY, LOAD, Tag
from codea1_env.values.decoding import decode

__all__ = ["run"]

_compile, _eval, _exec = compile, eval, exec  # as they were before any program ran
_modules = sys.modules
_NOT_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError)  # all that compile() raises for odd text


def run(channel: Channel, job: dict[str, Any]) -> None:
    """Load `job["program"]`, evaluate `job["calls"]`, then serve stand-in calls if asked to."""
    entry = _load(channel, job)
    if entry is None:
        return
    max_bytes = job["value_bytes"]
    channel.send(Tag.LOADED, LOAD)
    for index, expression in job["calls"]:
        try:
            # A new namespace and newly made arguments for each call: nothing carries over but the program's own state.
            value = _eval(_compile(expression, "<call>", "eval"), {"__builtins__": BUILTINS, job["entry"]: entry})
            channel.send_value(index, value, max_bytes)
        except BaseException as error:  # noqa: BLE001  -- whatever a stranger raises is a result
            channel.send_error(index, error)
        value = None
    while job["serve"]:
        _apply(channel, entry, channel.receive().payload, max_bytes)


def _apply(channel: Channel, entry: Any, arguments: bytes, max_bytes: int) -> None:
    try:
        args, kwargs = decode(arguments)
        channel.send_value(APPLY, entry(*args, **kwargs), max_bytes)
    except BaseException as error:  # noqa: BLE001  -- whatever a stranger raises is a result
        channel.send_error(APPLY, error)


def _load(channel: Channel, job: dict[str, Any]) -> Any:
    """Return the entry point, or None after a report of why there is none."""
    module = ModuleType("program")  # dataclasses, pickle and typing look for a class's module by name
    _modules["program"] = _modules["__main__"] = module
    namespace = vars(module)
    try:
        for name in ("preamble", "program"):
            code = _compiled(channel, job[name])
            if code is None:
                return None
            _exec(code, namespace)
        entry = namespace.get(job["entry"])
    except BaseException as error:  # noqa: BLE001  -- whatever a stranger raises is a result
        channel.send_error(LOAD, error)
        return None
    if not callable(entry):
        fault = NameError(f"{job['entry']} is {'not callable' if entry is not None else 'not defined'}")
        channel.send(Tag.ERROR, LOAD, describe_error(fault, name="NoEntryPoint"))
        return None
    return entry


def _compiled(channel: Channel, source: str) -> Any:
    try:
        return _compile(source, "<program>", "exec", dont_inherit=True)
    except _NOT_PYTHON as error:
        channel.send(Tag.ERROR, LOAD, describe_error(error, name="SyntaxError"))
        return None
