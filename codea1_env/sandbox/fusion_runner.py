"""What runs on a SandboxFusion server: the sandboxed side of `fusion_execution`.

The source of this file and of the modules that it imports is part of every request. Standard library only, Python 3.9
or newer. A request is one process with one role:

* *program*: loads a program, evaluates direct calls, then applies the entry point to given arguments;
* *harness*: loads a harness and evaluates calls in it, where the stand-in replays recorded answers of the program. From
  the first question without a recorded answer on, it *guesses*: the stand-in returns something that agrees with
  everything, so that the questions which probably follow are found as well. Nothing computed from a guess is reported;
* *scout*: the same without any answers, where moreover no assert fails. Reports questions only.

Answers are frames of `wire`, each on a line of its own with the request's nonce and a checksum, written as soon as they
are known, so that a hang or a crash loses only what was under way. The nonce tells our lines from others, the checksum
whole lines from cut or mixed ones. They are no secret from the program, which shares the process and can find the
nonce: what arrives is a claim about the program's own calls, no more.
"""

from __future__ import annotations

import ast
import base64
import json
import os
import random
import signal
import sys
import time
import zlib
from collections.abc import Callable
from io import TextIOBase
from typing import Any, NoReturn

from codea1_env.sandbox.inside import program
from codea1_env.sandbox.inside.channel import Channel
from codea1_env.sandbox.wire import APPLY, Frame, Tag, frame_bytes
from codea1_env.values.decoding import decode

__all__ = ["Mark", "checksum", "run"]

_exit = os._exit
_RESERVED_BYTES = 1024  # of the output, for the last words
_A_GUESS = Frame(Tag.VALUE, APPLY, 0, b"guess")
_MAX_QUESTIONS = 4096
_QUESTIONS_AT_ONCE = 256
_SLACK_S = 0.05  # a call within its limit must not be stopped for the time that measuring takes
_C_CODE_SLACK_S = 1.0  # after which the kernel stops what does not let Python stop it


class Mark:
    """First byte of the frames that no other back end has."""

    HELLO = b"h"  # the process has begun; from here on, processor time is the program's
    END = b"z"  # everything was answered
    TIME = b"t"  # the present activity has used up its processor time
    WALL = b"w"  # the present activity has used up its wall-clock time
    FULL = b"f"  # the next answer does not fit into the output any more
    QUESTIONS = b"q"  # JSON list: arguments that the stand-in was called with and no answer is recorded for
    COUNT = b"c"  # how often the stand-in has been called so far
    LOST = b"l"  # the stand-in was called with what makes the program hang or die


def run(task: dict[str, Any]) -> NoReturn:
    """Do what a request asks for.

    Args:
        task: `role`, `job` (as in `inside.program` and `inside.harness`), `nonce`, `max_output_bytes`, `cpu_s`,
            `wall_s`, `memory_mb`, `life_s` (processor seconds of the whole process) and what the role needs: `applies`
            and `quiet`, or `answers` and `may_guess`, or nothing.
    """
    voice = _Voice(task["nonce"], task["max_output_bytes"])
    _seed(task["numpy"])
    _limit(task["memory_mb"], task["life_s"])
    clocks = _Clocks(task["cpu_s"], task["wall_s"], voice)
    channel = (_ProgramChannel if task["role"] == "program" else _HarnessChannel)(task, voice, clocks)
    for name in [name for name in sys.modules if name.startswith("codea1_env")]:
        del sys.modules[name]  # what is in use stays in use, but no program can import it
    voice.say(Mark.HELLO)
    clocks.begin()
    channel.run(task["job"])
    channel.finish(Mark.END)


def checksum(nonce: str, text: str) -> str:
    """Return what stands at the end of a line, which is `nonce:text:checksum`, to tell whole lines from cut ones."""
    return f"{zlib.crc32(f'{nonce}:{text}'.encode()):08x}"


class _Voice:
    """The way out: the process's standard output, which the program no longer has."""

    def __init__(self, nonce: str, max_bytes: int) -> None:
        self._nonce = nonce
        self._left = max_bytes - _RESERVED_BYTES
        self._write = _taken_output()

    def say(self, tag: bytes, call: int = 0, payload: bytes = b"") -> bool:
        """Print a frame; return whether it fits."""
        frame = frame_bytes(tag, call, payload, time.process_time_ns() // 1000)
        text = base64.b64encode(zlib.compress(frame, 1)).decode()
        line = f"\n{self._nonce}:{text}:{checksum(self._nonce, text)}\n"
        if len(line) > self._left:
            return False
        self._left -= len(line)
        self._write(line)
        return True

    def end(self, tag: bytes) -> NoReturn:
        """Print a last word and end the process, threads and exit handlers included."""
        self._left += _RESERVED_BYTES
        self.say(tag)
        self._left = 0
        _exit(0)


def _taken_output() -> Callable[[str], object]:
    """Return a function that writes to what was standard output; what others print from now on goes nowhere."""
    stream = sys.stdout
    try:
        fd = os.dup(stream.fileno())
        null = os.open(os.devnull, os.O_RDWR)
    except OSError:  # a server that runs us as text in a process of its own
        sys.stdout = sys.stderr = _Nowhere()
        return lambda text: (stream.write(text), stream.flush())
    for taken in (0, 1, 2):
        os.dup2(null, taken)

    def write(text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(fd, data) :]

    return write


class _Nowhere(TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def _limit(memory_mb: int, life_s: int) -> None:
    """Lower what the server allows; where it has lower limits of its own, or none can be had, so be it."""
    _lower("RLIMIT_CORE", 0, 0)
    _lower("RLIMIT_CPU", life_s, life_s + 1)
    try:
        with open("/proc/self/statm") as file:
            own_bytes = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return
    limit = own_bytes + (memory_mb << 20)
    _lower("RLIMIT_AS", limit, limit)


def _lower(name: str, soft: int, hard: int) -> None:
    try:
        import resource  # noqa: PLC0415  -- not on every system

        resource.setrlimit(getattr(resource, name), (soft, hard))
    except (ImportError, OSError, ValueError):
        return


def _seed(wants_numpy: bool) -> None:
    random.seed(0)
    if wants_numpy:
        try:
            import numpy  # noqa: PLC0415  -- the server may not have it
        except ImportError:
            return
        numpy.random.seed(0)


class _Clocks:
    """Time limits of the present activity. A hostile program can stop them; the server's own limit comes after."""

    def __init__(self, cpu_s: float, wall_s: float, voice: _Voice) -> None:
        self._limits_s = cpu_s, wall_s
        self.before_end: Callable[[], object] = lambda: None
        for number, mark in ((signal.SIGPROF, Mark.TIME), (signal.SIGALRM, Mark.WALL)):
            signal.signal(number, self._end_with(voice, mark))

    def _end_with(self, voice: _Voice, mark: bytes) -> Callable[..., object]:
        def end(*_: object) -> None:
            self.before_end()
            voice.end(mark)

        return end

    def begin(self) -> None:
        """Start on another activity."""
        cpu_s, wall_s = self._limits_s
        signal.setitimer(signal.ITIMER_PROF, cpu_s + _SLACK_S, 0.1)
        signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s + _C_CODE_SLACK_S)
        signal.setitimer(signal.ITIMER_REAL, wall_s, 1.0)


class _ProgramChannel(Channel):
    """Of a program: every outcome is printed; the arguments to apply stand in the task."""

    def __init__(self, task: dict[str, Any], voice: _Voice, clocks: _Clocks) -> None:
        self._voice = voice
        self._clocks = clocks
        self._applies = [text.encode("latin-1") for text in task["applies"]]
        self._n_quiet = task["quiet"]
        self._n_applied = 0

    def run(self, job: dict[str, Any]) -> None:
        program.run(self, job)

    def send(self, tag: bytes, call: int = 0, payload: bytes = b"") -> None:
        if call == APPLY:
            call = self._n_applied - 1
            if call < self._n_quiet:
                self._clocks.begin()
                return
        if not self._voice.say(tag, call, payload):
            self.finish(Mark.FULL)
        self._clocks.begin()

    def receive(self) -> Frame:
        if self._n_applied == len(self._applies):
            self.finish(Mark.END)
        self._n_applied += 1
        return Frame(Tag.APPLY, APPLY, 0, self._applies[self._n_applied - 1])

    def finish(self, mark: bytes) -> NoReturn:
        """End the process."""
        self._voice.end(mark)


class _HarnessChannel(Channel):
    """Of a harness: outcomes are printed until it guesses, questions from then on."""

    def __init__(self, task: dict[str, Any], voice: _Voice, clocks: _Clocks) -> None:
        self._voice = voice
        self._clocks = clocks
        self._clocks.before_end = self._tell_questions
        is_scout = task["role"] == "scout"
        self._answers = [[text.encode("latin-1") for text in answer] for answer in task.get("answers", [])]
        self._may_guess = is_scout or task["may_guess"]
        self._is_guessing = is_scout
        self._max_questions = max(_MAX_QUESTIONS, len(self._answers))  # doubles what is known: few rounds, small waste
        self._n_asked = 0
        self._n_right = 0
        self._untold: list[str] = []
        self._reply = _A_GUESS
        from codea1_env.sandbox.inside import harness  # noqa: PLC0415  -- only sent to where it is needed

        # So that the stand-in returns what agrees with everything where it would decode an answer that nobody knows.
        vars(harness)["decode"] = lambda data: _Agreeable() if data is _A_GUESS.payload else decode(data)
        if is_scout:
            vars(harness)["compile"] = _compiled_without_asserts
        self._run = harness.run

    def run(self, job: dict[str, Any]) -> None:
        self._run(self, job)

    def send(self, tag: bytes, call: int = 0, payload: bytes = b"") -> None:
        if tag == Tag.APPLY:
            self._reply = self._answer(payload)
            return
        if self._is_guessing:
            self._tell_questions()
        else:
            count = str(self._n_asked).encode()
            if not (self._voice.say(Mark.COUNT, call, count) and self._voice.say(tag, call, payload)):
                self.finish(Mark.FULL)
        self._clocks.begin()

    def receive(self) -> Frame:
        return self._reply

    def finish(self, mark: bytes) -> NoReturn:
        """End the process."""
        self._tell_questions()
        self._voice.end(mark)

    def _answer(self, arguments: bytes) -> Frame:
        number = self._n_asked
        self._n_asked += 1
        if not self._is_guessing:
            self._n_right = number
            if number < len(self._answers) and self._answers[number][0] == arguments:
                _, tag, payload = self._answers[number]
                if tag == Mark.LOST:
                    self.finish(Mark.LOST)
                return Frame(tag, APPLY, 0, payload)
            self._is_guessing = True
            self._voice.say(Mark.COUNT, APPLY, str(number).encode())
            self._untold.append(arguments.decode("latin-1"))
            self._tell_questions()  # at once: should guessing end badly, this much is certain
        else:
            self._untold.append(arguments.decode("latin-1"))
        if not self._may_guess or self._n_asked - self._n_right >= self._max_questions:
            self.finish(Mark.END)
        if len(self._untold) >= _QUESTIONS_AT_ONCE:
            self._tell_questions()
        return _A_GUESS

    def _tell_questions(self) -> None:
        untold, self._untold = self._untold, []
        if untold and not self._voice.say(Mark.QUESTIONS, payload=json.dumps(untold).encode()):
            self._voice.end(Mark.FULL)


def _compiled_without_asserts(source: str, filename: str, mode: str, **_: Any) -> Any:
    tree = ast.fix_missing_locations(_Lenient().visit(ast.parse(source, filename, mode)))
    return compile(tree, filename, mode, dont_inherit=True)


class _Lenient(ast.NodeTransformer):
    """Turns `assert x` into `x`, whose exceptions do not count."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        condition: ast.stmt = ast.Expr(node.test)
        ignored = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [ast.Pass()])
        return ast.copy_location(ast.Try([condition], [ignored], [], []), node)


class _Agreeable:
    """What the stand-in returns when it does not know: true, equal to everything, and otherwise itself or nothing."""

    def __agrees(self, *_: Any, **__: Any) -> bool:
        return True

    def __itself(self, *_: Any, **__: Any) -> _Agreeable:
        return self

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = __agrees
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __itself
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __itself
    __and__ = __or__ = __xor__ = __round__ = __getitem__ = __call__ = __enter__ = __itself

    def __ne__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __int__(self) -> int:
        return 0

    __index__ = __int__

    def __float__(self) -> float:
        return 0.0

    def __getattr__(self, name: str) -> _Agreeable:
        if name.startswith("__"):  # how numpy and copy look for what it does not have
            raise AttributeError(name)
        return self

    def __exit__(self, *_: object) -> None:
        return
