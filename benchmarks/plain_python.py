"""Plain Python as a simple oracle: one process per program and assert, without the sandbox.

A server, `python benchmarks/plain_python.py`, reads one question per line and forks a process that answers it. The
process executes program and assert in the same namespace, as a script does. Use it for trusted programs only (mutants
of our solutions): it limits time and memory but isolates nothing.

It also computes two rules of the judge with short code: `==` with a tolerance, and whether two programs answer the
calls of a test equally.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from queue import SimpleQueue
from typing import Any, NoReturn

TOLERANCE = 1e-9
"""Relative and absolute tolerance, if the expected value is a float or a complex number (docs/rules.md)."""
_MEMORY_BYTES = 2 << 30
_PLAIN = (int, float, complex, bool, str, bytes, bytearray, type(None), range)
_HOLDING = (list, tuple, set, frozenset, dict)


class Mode(StrEnum):
    """The kind of a question."""

    ASSERT = "assert"
    """Does the assert hold for the program?"""
    VALUE = "value"
    """What is the expression's value, as a literal?"""
    ANSWERS = "answers"
    """Does the program answer the calls of the assert as the solution does?"""


@dataclass(frozen=True)
class Question:
    """One program and one assert."""

    mode: Mode
    program: str
    """Source, with the imports of the problem."""
    entry_point: str
    text: str
    """Source of the asserted expression. The modules that it names are imported."""
    expected: str | None = None
    """Source of the expected value of an expression with one call; compared with tolerance."""
    before: tuple[str, ...] = ()
    """Expressions that the same process evaluates first; their exceptions are ignored."""
    solution: str = ""
    """Source of the solution, for ANSWERS."""
    cpu_s: float = 1.0


class Ended(StrEnum):
    """The result of a question."""

    PASSED = "passed"
    FAILED = "failed"
    RAISED = "raised"
    LIMIT = "limit"
    """The process exceeded its time or memory, or died."""


@dataclass(frozen=True)
class Answer:
    """The answer of plain Python."""

    ended: Ended
    detail: str = ""
    """For VALUE, the literal; otherwise a text for people."""
    cpu_s: float = 0.0
    opaque: str = ""
    """Type of a value returned by the program that is no plain data; empty if all are plain."""
    alike: bool = False
    """For ANSWERS: whether all calls that the assert makes on the solution are answered equally."""
    alike_exactly: bool = False
    """For ANSWERS: the same without tolerance."""


class PlainPython:
    """Several servers that answer questions at the same time."""

    def __init__(self, n_servers: int | None = None) -> None:
        n_servers = n_servers or len(os.sched_getaffinity(0))
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONHASHSEED": "0",
        }  # the order of sets is fixed, as in the sandbox
        self._servers = [
            subprocess.Popen(
                [sys.executable, "-I", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                text=True,
            )
            for _ in range(n_servers)
        ]
        self._free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for server in self._servers:
            self._free.put(server)

    def __enter__(self) -> PlainPython:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.kill()
            server.communicate()

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Return one answer per question."""
        with ThreadPoolExecutor(len(self._servers)) as pool:
            return list(pool.map(self._answer, questions))

    def _answer(self, question: Question) -> Answer:
        server = self._free.get()
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            server.stdin.write(json.dumps(asdict(question)) + "\n")
            server.stdin.flush()
            found = json.loads(server.stdout.readline())
        finally:
            self._free.put(server)
        return Answer(**found | {"ended": Ended(found["ended"])})


# -- the server --


def serve() -> None:
    """Answer questions until the input ends."""
    for line in sys.stdin:
        print(json.dumps(asdict(_answered_in_a_fork(json.loads(line)))), flush=True)


def _answered_in_a_fork(question: dict[str, Any]) -> Answer:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _answer_and_exit(question, theirs)
    os.close(theirs)
    with open(ours, "rb") as channel:
        data = channel.read()
    _, status, usage = os.wait4(child, 0)
    cpu_s = usage.ru_utime + usage.ru_stime
    if not data:
        return Answer(Ended.LIMIT, f"ended with status {status}", cpu_s)
    found = json.loads(data)
    return Answer(**found | {"ended": Ended(found["ended"]), "cpu_s": cpu_s})


def _answer_and_exit(question: dict[str, Any], channel: int) -> NoReturn:
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.setitimer(signal.ITIMER_PROF, question["cpu_s"])  # ends the process
        signal.setitimer(signal.ITIMER_REAL, 20 * question["cpu_s"])
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)
        sys.stdin, sys.stdout, sys.stderr = io.StringIO(), io.StringIO(), io.StringIO()
        data = json.dumps(asdict(_answer(question))).encode()
        with open(channel, "wb") as out:
            out.write(data)
    finally:
        os._exit(0)


def _answer(question: dict[str, Any]) -> Answer:
    sys.setrecursionlimit(1000 + 10)  # the frames of this server below the program, which a script does not have
    if question["mode"] == Mode.ANSWERS:
        return _compared_answers(question)
    watched = _Watched()
    try:
        namespace = _loaded(question["program"])
        entry_point = question["entry_point"]
        names = _names_of_test(question["text"], watched.around(namespace[entry_point]), entry_point)
        for text in question["before"]:
            with contextlib.suppress(BaseException):
                eval(text, _names_of_test(text, namespace[entry_point], entry_point))
        value = eval(question["text"], names)
        if question["mode"] == Mode.VALUE:
            return Answer(Ended.PASSED, _literal(value))
        passed = bool(value) if question["expected"] is None else close(value, eval(question["expected"]))
    except MemoryError:
        return Answer(Ended.LIMIT, "MemoryError")
    except BaseException as error:  # noqa: BLE001  -- whatever the program raises
        return Answer(Ended.RAISED, f"{type(error).__name__}: {error}"[:200], opaque=watched.opaque)
    shown = "" if passed else f"{value!r:.200}"
    return Answer(Ended.PASSED if passed else Ended.FAILED, shown, opaque=watched.opaque)


def _loaded(program: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(program, "program.py", "exec", dont_inherit=True), namespace)
    return namespace


def _names_of_test(text: str, function: Any, entry_point: str) -> dict[str, Any]:
    """Return the namespace of a test: the function, and the modules that the test mentions."""
    names: dict[str, Any] = {entry_point: function}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id in ("math", "json"):
            names[node.id] = __import__(node.id)
    return names


def _literal(value: object) -> str:
    """Return a literal of the value with the same types; raise ValueError if there is none."""
    source = repr(value)
    again = ast.literal_eval(source)
    if repr(again) != source or again != value or _opaque(value):
        raise ValueError("no literal")
    return source


class _Watched:
    """Records whether a program returns values that are no plain data."""

    def __init__(self) -> None:
        self.opaque = ""

    def around(self, function: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            value = function(*args, **kwargs)
            self.opaque = self.opaque or _opaque(value)
            return value

        return watched


def _opaque(value: object) -> str:
    """Return the type of the first part that has no plain builtin type; empty if all have."""
    if type(value) in _PLAIN:
        return ""
    if type(value) not in _HOLDING:
        return type(value).__name__
    parts = [*value, *value.values()] if isinstance(value, dict) else value  # type: ignore[call-overload]
    return next((found for part in parts if (found := _opaque(part))), "")


def close(value: Any, expected: Any, tolerance: float = TOLERANCE) -> bool:
    """Whether `value == expected`, with the tolerance where floats are expected."""
    if isinstance(expected, float | complex) and isinstance(value, int | float | complex):
        if value == expected or (value != value and expected != expected):
            return True
        try:
            difference, size = abs(value - expected), max(abs(value), abs(expected))
        except OverflowError:
            return False
        return tolerance > 0 and size != float("inf") and difference <= max(tolerance * size, tolerance)
    if isinstance(value, list | tuple) and type(value) is type(expected):
        same_length = len(value) == len(expected)
        return same_length and all(close(*pair, tolerance) for pair in zip(value, expected, strict=True))
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(close(value[key], expected[key], tolerance) for key in expected)
    return bool(value == expected)


# -- the rule for tests that are no plain calls --


@dataclass
class _Use:
    """One call of a test, and its result."""

    args: Any
    kwargs: Any
    value: Any = None
    error: type[BaseException] | None = None
    args_after: Any = None

    def answered_like(self, other: _Use, tolerance: float) -> bool:
        """Whether another program answered this call equally and left equal arguments."""
        return (
            self.error is other.error
            and close(self.value, other.value, tolerance)
            and close(self.args_after, other.args_after, tolerance)
        )


def _called(function: Any, args: Any, kwargs: Any) -> _Use:
    use = _Use(copy.deepcopy(args), copy.deepcopy(kwargs))
    try:
        # A copy, because the program may change the value later.
        use.value = copy.deepcopy(function(*args, **kwargs))
    except Exception as error:  # noqa: BLE001  -- an exception is an answer, too
        use.error = type(error)
    use.args_after = copy.deepcopy((args, kwargs))
    return use


def _uses(namespace: dict[str, Any], question: dict[str, Any]) -> list[_Use]:
    """Return the calls that the assert makes on a program, in order."""
    uses: list[_Use] = []

    def recorded(*args: Any, **kwargs: Any) -> Any:
        uses.append(_called(namespace[question["entry_point"]], args, kwargs))
        if error := uses[-1].error:
            raise error
        return copy.deepcopy(uses[-1].value)

    with contextlib.suppress(Exception):
        value = eval(question["text"], _names_of_test(question["text"], recorded, question["entry_point"]))
        for _ in value if isinstance(value, Iterator) else ():
            pass
    return uses


def _compared_answers(question: dict[str, Any]) -> Answer:
    """Apply the rule: a fresh process of the program answers all calls of the solution equally, in order."""
    expected = _uses(_loaded(question["solution"]), question)
    own = _uses(_loaded(question["program"]), question)
    fresh = _loaded(question["program"])[question["entry_point"]]
    replayed = [_called(fresh, *copy.deepcopy((use.args, use.kwargs))) for use in expected]

    def is_alike(tolerance: float) -> bool:
        for mine, theirs in zip(own, expected, strict=False):
            if not close((mine.args, mine.kwargs), (theirs.args, theirs.kwargs), tolerance):
                break
            if not mine.answered_like(theirs, tolerance):
                return False
        pairs = zip(replayed, expected, strict=True)
        return bool(expected) and all(mine.answered_like(theirs, tolerance) for mine, theirs in pairs)

    return Answer(Ended.PASSED, alike=is_alike(TOLERANCE), alike_exactly=is_alike(0.0))


if __name__ == "__main__":
    serve()
