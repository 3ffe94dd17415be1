"""A job whose program prints its answers: each call runs the program in a new process.

The bytes that a process writes after its OUTPUT frame are its output. Its end becomes the answer to its call: the
output if its exit status is 0, otherwise an error.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from os import WEXITSTATUS, WIFSIGNALED

from codea1_env.facts.answers import in_form
from codea1_env.facts.problem_kinds import Script
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox.local.execution import Execution, Stage, Turn, number_calls
from codea1_env.sandbox.local.process import Process, as_outcome
from codea1_env.sandbox.wire import APPLY, LOAD, Frame, Notice, Tag, WireError, read_end_note
from codea1_env.values import TooLarge, encode

_NOTES = (Tag.ERROR, Tag.MEMORY)


class ScriptExecution(Execution):
    """A job that runs its program once per call."""

    _running: int | None = None
    """Index of the direct call for which the current process was started."""

    @property
    def needs_answers(self) -> bool:
        """Whether the processes' channels must be read while they run: always, since an output may be long."""
        return True

    # Processes

    def _start_program(self) -> None:
        self._stage, self._turn = Stage.LOADING, Turn.PROGRAM
        self._running = self._direct[0] if self._direct else None
        self._run_script(number_calls(self.job.calls, [*self._direct][:1]))

    def _run_script(self, calls: list[tuple[int, str | bytes]]) -> None:
        self._spending.begin()
        kind = (self.job.script or Script.WORDS).kind.value
        self._program = self._start(len(calls) + 1, role="script", **self._sources(), kind=kind, calls=calls)

    def _next_stage(self) -> None:
        if self._direct and self._direct[0] == self._running:
            return
        self._program.abandoned = True  # it has nothing left to do
        if not self._direct:
            super()._next_stage()
        else:
            self._start_again()

    def _may_start_again(self) -> bool:
        return super()._may_start_again() and not self._spending.is_all()

    # Calls of a harness

    def _has_unexpected_bytes(self) -> bool:
        return False  # the processes of earlier calls have ended

    def _call_program(self, calls: Sequence[bytes]) -> None:
        if self._may_start_again():
            self._run_script([(APPLY, arguments) for arguments in calls])
        else:
            self._end_exhausted()

    # Frames and output

    def _take_all(self, process: Process) -> None:
        super()._take_all(process)
        if process.output is not None and len(process.output) > self.job.limits.value_bytes:
            message = f"printed more than {self.job.limits.value_bytes:,} bytes"
            self._end_activity(Outcome(OutcomeKind.OUTPUT_LIMIT, message=message))

    @property
    def _is_called(self) -> bool:
        """Whether the current process answers a call of the harness."""
        return self._harness is not None and self._turn is Turn.PROGRAM

    def _take(self, process: Process, frame: Frame) -> None:
        if process is not self._program:
            super()._take(process, frame)
        elif frame.tag == Tag.OUTPUT:
            process.begin_after(frame)
            process.begin_output()
        elif self._is_called and frame.call == LOAD:
            if frame.tag != Tag.LOADED:
                self._end_activity(as_outcome(frame))
        else:
            is_answer = self._is_called
            super()._take(process, frame)
            process.abandoned |= is_answer  # a refused call: its process ends without output

    def _on_end(self, process: Process, notice: Notice) -> None:
        if process is not self._program or process.output is None or WIFSIGNALED(notice.status):
            super()._on_end(process, notice)
            return
        call = APPLY if self._is_called else self._direct[0]
        super()._take(process, self._answer(bytes(process.output), notice, call))

    def _answer(self, output: bytes, notice: Notice, call: int) -> Frame:
        """Return the frame that says what a script that has ended has answered."""
        form = (self.job.script or Script.WORDS).output
        status = WEXITSTATUS(notice.status)
        if status:
            return _error(output, status)._replace(call=call, cpu_us=notice.cpu_us)
        try:
            value = encode(in_form(output, form), max_bytes=self.job.limits.value_bytes)
            return Frame(Tag.VALUE, call, notice.cpu_us, value)
        except UnicodeDecodeError:
            return _error_frame("UnicodeDecodeError", "its output is not UTF-8")._replace(
                call=call, cpu_us=notice.cpu_us
            )
        except TooLarge:
            return Frame(Tag.TOO_LARGE, call, notice.cpu_us, b"")


def _error(output: bytes, status: int) -> Frame:
    """Return the error that a script claims at the end of its output, or one that states its exit status."""
    note = read_end_note(output)
    if note is not None and note.tag in _NOTES:
        with contextlib.suppress(WireError):
            as_outcome(note)  # raises if it is not a valid claim
            return note
    return _error_frame("SystemExit", f"exit status {status}")


def _error_frame(name: str, message: str) -> Frame:
    return Frame(Tag.ERROR, APPLY, 0, json.dumps([name, name, message, False]).encode())
