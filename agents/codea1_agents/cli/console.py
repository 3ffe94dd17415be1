"""Prints results to stdout and everything else to stderr; with `--json`, stdout gets exactly one object."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from math import isnan
from pathlib import Path
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from codea1_agents.checks.sandbox_check import SandboxPromise
from codea1_agents.statistics import Estimate
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.problems import ProblemSet
from codea1_env.problems.problem import SkippedRow
from codea1_env.rendering import harmless
from codea1_env.runs.config import problems_digest
from codea1_env.sandbox.interface import Guarantee

_WIDEST = 120
_MAX_SKIPPED_SHOWN = 5
_WITHOUT_TERMINAL = 100


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise, so that `boundary` sets the exit code; rich would exit with 1."""
        raise BrokenPipeError


@dataclass(slots=True)
class Page:
    """Output of one command."""

    as_json: bool = False
    quiet: bool = False
    _original: TextIO | None = field(default=None, init=False, repr=False)
    """The original stdout inside `apart`; None outside."""

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Send what other code prints to stdout to stderr; this page's own results still go to stdout.

        This covers Python's `print` and, if stdout is the process's own, also libraries and child processes.
        """
        sys.stdout.flush()
        with ExitStack() as stack:
            self._original = stack.enter_context(_original_stdout())
            stack.callback(setattr, self, "_original", None)
            stack.enter_context(redirect_stdout(sys.stderr))
            yield

    @property
    def is_live(self) -> bool:
        """Whether to draw live output: stderr is a terminal, and the page is not quiet."""
        return not self.quiet and _console(sys.stderr).is_terminal

    @property
    def width(self) -> int:
        """Columns for pictures and tables: the terminal's width, at most 120; 100 without a terminal."""
        return min(self._text_console().width, _WIDEST)

    def show(self, what: RenderableType) -> None:
        """Print text output: on stdout, or on stderr if stdout gets JSON."""
        with _write_errors():
            self._text_console().print(what, width=self.width, highlight=False, soft_wrap=isinstance(what, Text))

    def say(self, text: str) -> None:
        """Print one line of text output."""
        self.show(Text(harmless(text)))

    def note(self, text: str, *, even_if_quiet: bool = False) -> None:
        """Print a note on stderr."""
        if even_if_quiet or not self.quiet:
            self._remark("note", text)

    def note_skipped(self, rows: Sequence[SkippedRow]) -> None:
        """Print the first few skipped rows and their number on stderr."""
        for row in rows[:_MAX_SKIPPED_SHOWN]:
            self.note(f"skipped {row.place}: {row.reason}")
        if len(rows) > _MAX_SKIPPED_SHOWN:
            self.note(f"skipped {len(rows)} rows in total")

    def warn(self, text: str) -> None:
        """Print a warning on stderr, even if quiet."""
        self._remark("warning", text)

    def warn_if_weak(self, promise: SandboxPromise) -> None:
        """Print a warning if the sandbox does not isolate programs."""
        if promise.guarantee is not Guarantee.ISOLATED:
            self.warn(f"weak sandbox: {promise.sentence()}")

    def finish(self, /, **data: object) -> None:
        """Print the one JSON object if the page is `as_json`; `documents.json` describes it for every command.

        Args:
            data: the keys of the object with their values; `versions` is added.
        """
        if self.as_json:
            versions = {"codea1-env": version("codea1-env"), "judge": JUDGE_VERSION}
            with _write_errors():
                self._stdout.write(json.dumps({**data, "versions": versions}, allow_nan=False) + "\n")
                self._stdout.flush()

    @property
    def _stdout(self) -> TextIO:
        return self._original or sys.stdout

    def _text_console(self) -> Console:
        return _console(sys.stderr if self.as_json else self._stdout)

    def _remark(self, kind: str, text: str) -> None:
        _console(sys.stderr).print(Text(f"{kind}: {harmless(text)}", style="yellow"), soft_wrap=True)


def say_error(sentence: str) -> None:
    """Print one sentence on stderr, on one line."""
    _console(sys.stderr).print(Text(f"error: {harmless(' '.join(sentence.split()))}", style="red"), soft_wrap=True)


def new_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = (), whole: Sequence[int] = ()
) -> Table:
    """Return a table whose cells are plain text, without markup or control characters.

    Args:
        columns: headings.
        rows: one text per column.
        right: positions of the columns with numbers.
        whole: positions of the columns whose cells are never wrapped.
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


def pluralize(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def tally(counts: Iterable[tuple[str, int]]) -> str:
    """Return counts by name in one line, as in "3 passed, 1 wrong answer"."""
    return ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts)


def number(value: float) -> str:
    """Return the number with three decimals, or a dash for nan."""
    return "-" if isnan(value) else f"{value:z.3f}"


def _console(stream: TextIO) -> Console:
    console = _Console(file=stream)
    is_wide = console.is_terminal or os.environ.get("COLUMNS", "").isdigit()  # rich takes the variable's width
    return console if is_wide else _Console(file=stream, width=_WITHOUT_TERMINAL)


@contextmanager
def _write_errors() -> Iterator[None]:
    """Turn a failed write to stdout, such as on a full disk, into one sentence; a closed pipe passes."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"cannot write to standard output: {error.strerror or error}") from error


@contextmanager
def _original_stdout() -> Iterator[TextIO]:
    """Yield a stream to the current stdout; inside the block, descriptor 1 is stderr."""
    try:
        if sys.stdout.fileno() != 1:
            raise OSError("not the process's own")
        kept = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError):  # sys.stdout is another object, as in tests: `print` writes to it
        yield sys.stdout
        return
    stream = os.fdopen(kept, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    try:
        yield stream
    finally:
        os.dup2(kept, 1)
        with suppress(OSError):  # the flush failed; the error was already reported
            stream.close()


def problems_document(source: str, problems: ProblemSet) -> dict[str, Any]:
    """Return which problems a command used.

    Args:
        source: as the user named it.
        problems: those that were used.
    """
    return {"source": source, "name": problems.name, "digest": problems_digest(problems), "n": len(problems)}


NEXT_STEPS = {
    "play": ("codea1 report {out}",),
    "play with mistakes": ("codea1 report {out}", "codea1 book show {out}"),
    "train": ("codea1 report {out}", "codea1 train --resume {out} --steps {steps}"),
    "report": ("codea1 web {folder}",),
    "pretrain": (
        "codea1 play -p tiny --coder transformers,model={out},prompts=tiny --tester fuzz",
        "codea1 train code-a1 --coder {out} --tester {out}",
    ),
    "duel": ("codea1 demo duel --number {number}",),
    "experiment": ("codea1 experiment {name} --out {out} --seeds {seeds}",),
    "experiment of a model": ("codea1 experiment {name} --model {model} --out {out} --seeds {seeds}",),
    "new problem": ("codea1 check problems {name}.jsonl", "codea1 play -p {name}.jsonl --episodes 3"),
    "new agent": (
        "codea1 check agent {name}:tester --role tester",
        "codea1 play -p starter --coder {name}:coder --tester {name}:tester --episodes 3",
    ),
    "new reward": ("codea1 play -p starter --rules {name}:reward --episodes 3",),
}
"""By what is done, as it runs in the folder where the user stands."""


def show_next(page: Page, done: str, **values: object) -> None:
    """Print the next steps.

    Args:
        page: the command's output.
        done: a key of `NEXT_STEPS`.
        values: what its texts name; they are quoted for a shell.
    """
    quoted = {name: shlex.quote(str(value)) for name, value in values.items()}
    for text in NEXT_STEPS[done]:
        show_next_line(page, text.format_map(quoted))


def show_next_line(page: Page, command: str) -> None:
    """Print a next step, unless the output is for a program or the user asked for quiet."""
    if not (page.quiet or page.as_json):
        page.say(f"next: {as_typed(command)}")


def as_typed(text: str) -> str:
    """Return a text with commands of `codea1` as they run in the user's shell: with its path, if that does not find it.

    An environment that is not activated, such as the one of `make demo`, is on no path.
    """
    running, command = Path(sys.argv[0]), shutil.which("codea1")
    if running.name != "codea1" or (command is not None and Path(command).resolve() == running.resolve()):
        return text
    place = Path(os.path.relpath(running)) if running.is_relative_to(Path.cwd()) else running
    return re.sub(r"(?:^|(?<=: )|(?<=&& ))codea1 ", lambda _: f"{shlex.quote(str(place))} ", text)
