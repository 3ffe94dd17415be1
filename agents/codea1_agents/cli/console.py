"""Where output goes: results to stdout, everything else to stderr; with `--json` stdout holds one object only."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from math import isnan
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from codea1_agents.checks.sandbox_check import SandboxPromise
from codea1_agents.statistics import Estimate
from codea1_env.errors import UserError
from codea1_env.problems.problem import SkippedRow
from codea1_env.rendering import harmless
from codea1_env.sandbox.interface import Guarantee

_WIDEST = 120
_MAX_SKIPPED_SHOWN = 5
_WITHOUT_TERMINAL = 100


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the boundary; rich would exit with 1."""
        raise BrokenPipeError


@dataclass(slots=True)
class Page:
    """Output of one command."""

    as_json: bool = False
    quiet: bool = False
    _kept: TextIO | None = field(default=None, init=False, repr=False)
    """Where stdout led before `apart`; None outside of it."""

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within, whatever anybody else prints on stdout lands on stderr; this page's own results stay on stdout.

        That goes for Python's `print` and, where stdout is the process's own, for libraries and child processes too.
        """
        sys.stdout.flush()
        with ExitStack() as stack:
            self._kept = stack.enter_context(_kept_stdout())
            stack.callback(setattr, self, "_kept", None)
            stack.enter_context(redirect_stdout(sys.stderr))
            yield

    @property
    def is_live(self) -> bool:
        """Whether somebody watches: stderr is a terminal, and not to be quiet."""
        return not self.quiet and _console(sys.stderr).is_terminal

    @property
    def width(self) -> int:
        """Columns for pictures and tables: the terminal's, at most 120; 100 where there is none."""
        return min(self._for_people().width, _WIDEST)

    def show(self, what: RenderableType) -> None:
        """Print something for people: on stdout, or on stderr where stdout is for machines."""
        with _explained():
            self._for_people().print(what, width=self.width, highlight=False, soft_wrap=isinstance(what, Text))

    def say(self, text: str) -> None:
        """Print one line for people."""
        self.show(Text(harmless(text)))

    def note(self, text: str, *, even_if_quiet: bool = False) -> None:
        """Print a remark on stderr."""
        if even_if_quiet or not self.quiet:
            self._remark("note", text)

    def note_skipped(self, rows: Sequence[SkippedRow]) -> None:
        """Print the first few rows that could not be used on stderr, and how many there are."""
        for row in rows[:_MAX_SKIPPED_SHOWN]:
            self.note(f"skipped {row.place}: {row.reason}")
        if len(rows) > _MAX_SKIPPED_SHOWN:
            self.note(f"skipped {len(rows)} rows in all")

    def warn(self, text: str) -> None:
        """Print a remark on stderr, also if quiet."""
        self._remark("warning", text)

    def warn_if_weak(self, promise: SandboxPromise) -> None:
        """Print a remark if programs are not isolated."""
        if promise.guarantee is not Guarantee.ISOLATED:
            self.warn(f"weak sandbox: {promise.sentence()}")

    def finish(self, data: object) -> None:
        """Print the one JSON object, if that was asked for."""
        if self.as_json:
            with _explained():
                self._stdout.write(json.dumps(data, allow_nan=False) + "\n")
                self._stdout.flush()

    @property
    def _stdout(self) -> TextIO:
        return self._kept or sys.stdout

    def _for_people(self) -> Console:
        return _console(sys.stderr if self.as_json else self._stdout)

    def _remark(self, kind: str, text: str) -> None:
        _console(sys.stderr).print(Text(f"{kind}: {harmless(text)}", style="yellow"), soft_wrap=True)


def say_error(sentence: str) -> None:
    """Print one sentence on stderr, on one line."""
    _console(sys.stderr).print(Text(f"error: {harmless(' '.join(sentence.split()))}", style="red"), soft_wrap=True)


def new_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = (), whole: Sequence[int] = ()
) -> Table:
    """Return a table whose cells are plain text, however strange.

    Args:
        columns: headings.
        rows: one text per column.
        right: positions of the columns with numbers.
        whole: positions of the columns that are never broken into lines.
    """
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for position, heading in enumerate(columns):
        justify: JustifyMethod = "right" if position in right else "left"
        table.add_column(heading, justify=justify, no_wrap=position in whole, overflow="fold")
    for row in rows:
        table.add_row(*(Text(harmless(cell)) for cell in row))
    return table


def estimate_cells(estimate: Estimate) -> tuple[str, str, str]:
    """Return mean, interval and count as text."""
    interval = "" if isnan(estimate.low) else f"{estimate.low:z.3f} to {estimate.high:z.3f}"
    return number(estimate.mean), interval, str(estimate.n)


def tally(counts: Iterable[tuple[str, int]]) -> str:
    """Return counts by name in one line, as in "3 passed, 1 wrong answer"."""
    return ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts)


def number(value: float) -> str:
    """Return three digits, or a dash for nan."""
    return "-" if isnan(value) else f"{value:z.3f}"


def _console(stream: TextIO) -> Console:
    console = _Console(file=stream)
    return console if console.is_terminal else _Console(file=stream, width=_WITHOUT_TERMINAL)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn a full disk behind stdout into one sentence; that nobody reads any more is no error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"cannot write to standard output: {error.strerror or error}") from error


@contextmanager
def _kept_stdout() -> Iterator[TextIO]:
    """Give a stream to where stdout leads now; within, descriptor 1 leads to stderr."""
    try:
        if sys.stdout.fileno() != 1:
            raise OSError("not the process's own")
        kept = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError):  # someone has put another object there, as tests do: print goes through that
        yield sys.stdout
        return
    stream = os.fdopen(kept, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    try:
        yield stream
    finally:
        os.dup2(kept, 1)
        with suppress(OSError):  # what it still held could not be written; that has been told
            stream.close()
