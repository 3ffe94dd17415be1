"""Where output goes: results to stdout, everything else to stderr; with `--json` stdout holds one object only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from codea1_agents.statistics import Estimate
from codea1_env.rendering import harmless

__all__ = ["Page", "estimate_cells", "new_table", "number", "say_error"]

_WIDEST = 120
_WITHOUT_TERMINAL = 100


@dataclass(frozen=True, slots=True)
class Page:
    """Output of one command."""

    as_json: bool = False
    quiet: bool = False

    @property
    def width(self) -> int:
        """Columns for pictures and tables: the terminal's, at most 120; 100 where there is none."""
        return min(_console(self._human_stream_is_stderr).width, _WIDEST)

    def show(self, what: RenderableType) -> None:
        """Print something for people: on stdout, or on stderr where stdout is for machines."""
        console = _console(self._human_stream_is_stderr)
        console.print(what, width=self.width, highlight=False, soft_wrap=isinstance(what, Text))

    def say(self, text: str) -> None:
        """Print one line for people."""
        self.show(Text(harmless(text)))

    def note(self, text: str) -> None:
        """Print a remark on stderr, unless quiet."""
        if not self.quiet:
            _console(stderr=True).print(Text(f"note: {harmless(text)}", style="yellow"), soft_wrap=True)

    def finish(self, data: object) -> None:
        """Print the one JSON object, if that was asked for."""
        if self.as_json:
            sys.stdout.write(json.dumps(data, allow_nan=False) + "\n")

    @property
    def _human_stream_is_stderr(self) -> bool:
        return self.as_json


def say_error(sentence: str) -> None:
    """Print one sentence on stderr, on one line."""
    _console(stderr=True).print(Text(f"error: {harmless(' '.join(sentence.split()))}", style="red"), soft_wrap=True)


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


def number(value: float) -> str:
    """Return three digits, or a dash for nan."""
    return "-" if isnan(value) else f"{value:z.3f}"


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_WITHOUT_TERMINAL)
