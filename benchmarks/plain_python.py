"""Plain Python as a simple oracle: one process per program and assert, without the sandbox.

A server, `python benchmarks/plain_python.py`, reads one question per line and forks a process that answers it. The
process executes program and assert in the same namespace, as a script does; a program on standard input is a script of
its own, which a new interpreter runs. Use it for trusted programs only (mutants of our solutions): it limits time and
memory but isolates nothing.

It also computes some rules of the judge with short code: `==` with a tolerance, what a checker says, whether two
programs answer the calls of a test equally, and how values look after they have been copied between processes.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import inspect
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from queue import SimpleQueue
from typing import Any, NoReturn

from plain_copies import become, copied, is_array, opaque, unboxed

TOLERANCE = 1e-9
"""Relative and absolute tolerance, if the expected value is a float or a complex number (docs/rules.md)."""
_MEMORY_BYTES = 2 << 30
_MODULES = {"math": "math", "json": "json", "np": "numpy"}
"""Modules that tests may mention, by the names that they have there."""


class Mode(StrEnum):
    """The kind of a question."""

    ASSERT = "assert"
    """Does the assert hold for the program?"""
    VALUE = "value"
    """What is the expression's value, as a literal?"""
    ANSWERS = "answers"
    """Does the program answer the calls of the assert as the solution does?"""


class Copies(StrEnum):
    """Which of the judge's copies plain Python makes, too."""

    NONE = "none"
    ARGUMENTS = "arguments"
    """The program gets copies of its arguments."""
    BOTH_WAYS = "both ways"
    """So does it, and after a call the test's arguments become copies of these."""
    RESULTS = "results"
    """So does it, and the test gets copies of results, in which numbers of numpy are Python's."""


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
    harness: str = ""
    """Source that defines names of the test, such as `check`."""
    script: str = ""
    """For programs on standard input, what counts in their output: `words` or `exact`."""
    checker: str = ""
    """Source that defines `check(arguments, expected, answer)`, for answers that are not the expected ones."""
    copies: Copies = Copies.NONE
    """What is copied between program and test."""


class Ended(StrEnum):
    """The result of a question."""

    PASSED = "passed"
    FAILED = "failed"
    RAISED = "raised"
    LIMIT = "limit"
    """The process exceeded its time or memory, or died."""
    MASKED = "masked"
    """The checker fails on the expected answer as well."""


@dataclass(frozen=True)
class Answer:
    """The answer of plain Python."""

    ended: Ended
    detail: str = ""
    """For VALUE, the literal; otherwise a text for people."""
    cpu_s: float = 0.0
    opaque: str = ""
    """Type of a value returned by the program that is not plain data; empty if all are plain."""
    alike: bool = False
    """For ANSWERS: whether all calls that the assert makes on the solution are answered equally."""
    alike_exactly: bool = False
    """For ANSWERS: the same without tolerance."""


class PlainPython:
    """Several servers that answer questions at the same time."""

    def __init__(self, *modules: str) -> None:
        """Start one server per core; each imports `modules` beforehand."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONHASHSEED": "0",  # the order of sets is fixed, as in the sandbox
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._servers = [
            subprocess.Popen(
                [sys.executable, "-s", __file__, *modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                text=True,
            )
            for _ in os.sched_getaffinity(0)
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
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(asdict(_in_a_fork(lambda asked=question: _answer(asked), question["cpu_s"]))), flush=True)


def _in_a_fork(compute: Callable[[], Answer], cpu_s: float) -> Answer:
    """Return what a forked process computes within its limits."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _compute_and_exit(compute, cpu_s, theirs)
    os.close(theirs)
    with open(ours, "rb") as channel:
        data = channel.read()
    _, status, usage = os.wait4(child, 0)
    used_s = usage.ru_utime + usage.ru_stime
    if not data:
        return Answer(Ended.LIMIT, f"ended with status {status}", used_s)
    found = json.loads(data)
    return Answer(**found | {"ended": Ended(found["ended"]), "cpu_s": used_s})


def _compute_and_exit(compute: Callable[[], Answer], cpu_s: float, channel: int) -> NoReturn:
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.setitimer(signal.ITIMER_PROF, cpu_s)  # ends the process
        signal.setitimer(signal.ITIMER_REAL, 20 * cpu_s)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)
        sys.stdin, sys.stdout, sys.stderr = io.StringIO(), io.StringIO(), io.StringIO()
        data = json.dumps(asdict(compute())).encode()
        with open(channel, "wb") as out:
            out.write(data)
    finally:
        os._exit(0)


def _answer(question: dict[str, Any]) -> Answer:
    sys.setrecursionlimit(1000 + 10)  # the frames of this server below the program, which a script does not have
    if question["mode"] == Mode.ANSWERS:
        return _compared_answers(question)
    watched = _Watched(question["copies"])
    try:
        namespace = _loaded(question, question["program"])
        entry_point = question["entry_point"]
        texts = f"({question['text']}, {question['expected']})"
        names = _names_of_test(question, texts, watched.around(namespace[entry_point]))
        for text in question["before"]:
            with contextlib.suppress(BaseException):
                eval(text, _names_of_test(question, text, namespace[entry_point]))
        value = eval(question["text"], names)
        if question["mode"] == Mode.VALUE:
            return Answer(Ended.PASSED, _literal(value))
        passed = bool(value) if question["expected"] is None else close(value, _expected(question, names))
    except MemoryError:
        return Answer(Ended.LIMIT, "MemoryError")
    except BaseException as error:  # noqa: BLE001  -- whatever the program raises
        return Answer(Ended.RAISED, f"{type(error).__name__}: {error}"[:200], opaque=watched.opaque)
    ended = Ended.PASSED if passed else Ended.FAILED
    if question["checker"] and question["expected"] is not None and not passed and not opaque(value):
        ended = _checked(question, watched.arguments, _expected(question, names), value)
    return Answer(ended, "" if passed else f"{value!r:.200}", opaque=watched.opaque)


def _expected(question: dict[str, Any], names: dict[str, Any]) -> Any:
    """Return the expected value; that of a program on standard input in the form in which outputs are compared."""
    value = eval(question["expected"], names)
    return in_form(value.encode(), question["script"]) if question["script"] and type(value) is str else value


def _loaded(question: dict[str, Any], program: str) -> dict[str, Any]:
    if question["script"]:
        return {question["entry_point"]: lambda text: _printed(program, text, question["script"])}
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(program, "program.py", "exec", dont_inherit=True), namespace)
    return namespace


def _names_of_test(question: dict[str, Any], text: str, function: Any) -> dict[str, Any]:
    """Return the namespace of a test: the function, those of a harness, and the modules that the test mentions."""
    names: dict[str, Any] = {question["entry_point"]: function, "candidate": function}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id in _MODULES:
            names[node.id] = importlib.import_module(_MODULES[node.id])
    exec(question["harness"], names)
    return names


def _printed(program: str, text: str, form: str) -> str:
    """Return what a new interpreter prints that runs a program on an input.

    Raises:
        RuntimeError: its status is not 0.
        UnicodeDecodeError: it prints other bytes than text.
    """
    given = text.replace("\r\n", "\n").encode()
    given += b"" if given.endswith(b"\n") or not given else b"\n"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        environment = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
        done = subprocess.run(
            [sys.executable, path],
            input=given,
            capture_output=True,
            env=environment,
            cwd=folder,
            timeout=10,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr[-200:].decode(errors='replace')}")
    return in_form(done.stdout, form)


def in_form(output: bytes, form: str) -> str:
    """Return an output as a problem compares it (docs/problems.md)."""
    if form == "words":
        return b" ".join(output.split()).decode()
    return output.decode().replace("\r\n", "\n").rstrip("\n")


def _literal(value: object) -> str:
    """Return a literal of the value with the same types; raise ValueError if there is none."""
    source = repr(value)
    again = ast.literal_eval(source)
    if repr(again) != source or again != value or opaque(value):
        raise ValueError("no literal")
    return source


class _Watched:
    """Records what a program gets and whether it returns values that are not plain data; copies both, if asked."""

    def __init__(self, copies: str) -> None:
        self.opaque = ""
        self.arguments: tuple[Any, Any] = (), {}
        self._copies = copies

    def around(self, function: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.arguments = copy.deepcopy((args, kwargs))
            given = args, kwargs
            if self._copies != Copies.NONE:
                args, kwargs = copy.deepcopy(given)
            value = function(*args, **kwargs)
            self.opaque = self.opaque or opaque((args, kwargs)) or opaque(value)
            if self._copies == Copies.BOTH_WAYS:
                become((*given[0], *given[1].values()), copy.deepcopy((*args, *kwargs.values())))
            return copied(value) if self._copies == Copies.RESULTS else value

        return watched


def close(value: Any, expected: Any, tolerance: float = TOLERANCE) -> bool:
    """Whether `value == expected`, with the tolerance where floats are expected."""
    value, expected = unboxed(value), unboxed(expected)
    if isinstance(expected, float | complex) and isinstance(value, int | float | complex):
        return _near(value, expected, tolerance)
    if isinstance(value, list | tuple) and type(value) is type(expected):
        same_length = len(value) == len(expected)
        return same_length and all(close(*pair, tolerance) for pair in zip(value, expected, strict=True))
    if is_array(value) or is_array(expected):
        if not (is_array(value) and is_array(expected)):
            return False
        return value.shape == expected.shape and close(value.ravel().tolist(), expected.ravel().tolist(), tolerance)
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(close(value[key], expected[key], tolerance) for key in expected)
    return _equal(value, expected)


def _near(value: complex, expected: complex, tolerance: float) -> bool:
    if value == expected or (value != value and expected != expected):
        return True
    try:
        difference, size = abs(value - expected), max(abs(value), abs(expected))
    except OverflowError:
        return False
    return tolerance > 0 and size != float("inf") and difference <= max(tolerance * size, tolerance)


def _equal(value: Any, expected: Any) -> bool:
    try:
        return bool(value == expected or (value != value and expected != expected))
    except (ArithmeticError, ValueError):  # a signalling nan; an array of several numbers
        return False


# -- the rule for tests that are not plain calls --


@dataclass
class _Use:
    """One call of a test, and its result."""

    args: Any
    kwargs: Any
    value: Any = None
    error: type[BaseException] | None = None
    args_after: Any = None

    def answered_like(self, other: _Use, tolerance: float, question: dict[str, Any]) -> bool:
        """Whether the solution answered equally, or so that a checker accepts this, and left equal arguments."""
        return (
            self.error is other.error
            and (close(self.value, other.value, tolerance) or self._is_accepted(other, question))
            and close(self.args_after, other.args_after, tolerance)
        )

    def _is_accepted(self, other: _Use, question: dict[str, Any]) -> bool:
        given = other.args, other.kwargs
        return bool(question["checker"]) and _checked(question, given, other.value, self.value) is Ended.PASSED


def _called(function: Any, args: Any, kwargs: Any) -> _Use:
    use = _Use(copy.deepcopy(args), copy.deepcopy(kwargs))
    try:
        # A copy, because the program may change the value later.
        use.value = copied(function(*args, **kwargs))
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
        value = eval(question["text"], _names_of_test(question, question["text"], recorded))
        for _ in value if isinstance(value, Iterator) else ():
            pass
    return uses


def _is_masked(mine: _Use, theirs: _Use, question: dict[str, Any]) -> bool:
    given = theirs.args, theirs.kwargs
    return not close(mine.value, theirs.value) and _checked(question, given, theirs.value, mine.value) is Ended.MASKED


def _compared_answers(question: dict[str, Any]) -> Answer:
    """Apply the rule: a fresh process of the program answers all calls of the solution equally, in order."""
    expected = _uses(_loaded(question, question["solution"]), question)
    own = _uses(_loaded(question, question["program"]), question)
    fresh = _loaded(question, question["program"])[question["entry_point"]]
    replayed = [_called(fresh, *copy.deepcopy((use.args, use.kwargs))) for use in expected]

    if question["checker"] and any(
        _is_masked(mine, theirs, question) for mine, theirs in zip(replayed, expected, strict=True)
    ):
        return Answer(Ended.MASKED)

    def is_alike(tolerance: float) -> bool:
        for mine, theirs in zip(own, expected, strict=False):
            if not close((mine.args, mine.kwargs), (theirs.args, theirs.kwargs), tolerance):
                break
            if not mine.answered_like(theirs, tolerance, question):
                return False
        pairs = zip(replayed, expected, strict=True)
        return bool(expected) and all(mine.answered_like(theirs, tolerance, question) for mine, theirs in pairs)

    return Answer(Ended.PASSED, alike=is_alike(TOLERANCE), alike_exactly=is_alike(0.0))


# -- what a checker says --


def _checked(question: dict[str, Any], given: tuple[Any, Any], expected: Any, value: Any) -> Ended:
    """Return whether a checker accepts an answer; one on which it fails is wrong if it knows the expected one."""
    function = _loaded(question, question["solution"])[question["entry_point"]]

    def said(answer: Any) -> Ended:
        return _in_a_fork(
            lambda: _said(question["checker"], function, *given, expected, answer), question["cpu_s"]
        ).ended

    known = (Ended.PASSED, Ended.FAILED)
    first = said(copied(value))
    if first in known:
        return first
    return Ended.FAILED if said(expected) in known else Ended.MASKED


def _said(checker: str, function: Any, args: Any, kwargs: Any, expected: Any, answer: Any) -> Answer:
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        arguments: list[Any] = []
        for name, value in bound.arguments.items():
            kind = inspect.signature(function).parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                arguments += value
            else:
                arguments += value.values() if kind is inspect.Parameter.VAR_KEYWORD else [value]
        namespace: dict[str, Any] = {"__name__": "program"}
        exec(compile(checker, "checker.py", "exec", dont_inherit=True), namespace)
        found = namespace["check"](tuple(arguments), expected, answer)
    except BaseException as error:  # noqa: BLE001  -- whatever the checker raises
        return Answer(Ended.RAISED, type(error).__name__)
    if type(found) is not bool:
        return Answer(Ended.RAISED, "neither True nor False")
    return Answer(Ended.PASSED if found else Ended.FAILED)


if __name__ == "__main__":
    serve()
