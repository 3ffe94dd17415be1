"""Shows a training run: as a live table on a terminal, else as one line per step."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import Progress as RunBar
from rich.table import Table
from rich.text import Text

from codea1_agents.cli.console import Page, new_table
from codea1_agents.cli.progress import Progress as PhaseLine
from codea1_agents.cli.progress import bar_columns, clock
from codea1_agents.train.grpo.progress import PREPARING, Phase, Progress
from codea1_agents.train.loop.loop import Watcher
from codea1_agents.train.settings.options import TrainingConfig
from codea1_env.rendering import harmless

_MEAN_OVER = 10
_WIDEST = 160
"""Characters of a line where there is no terminal."""

Line = Mapping[str, Any]

_ROLES = ("coder", "tester")
_OF_ROLES = (
    ("reward", "{}_reward"),
    ("spread", "{}_spread_share"),
    ("distinct", "distinct_{}"),
    ("tokens", "{}_tokens"),
    ("cut", "{}_cut_share"),
)
_OF_MODULES = (
    ("KL", "{}_kl"),
    ("entropy", "{}_entropy"),
    ("clipped", "{}_clip_share"),
    ("grad norm", "{}_grad_norm"),
    ("gap", "{}_sampler_gap"),
    ("max gap", "{}_sampler_gap_max"),
    ("ESS", "{}_sampler_ess"),
)
_OF_GAME = (
    ("pass new", "pass_new"),
    ("replayed", "pass_replayed"),
    ("load", "valid_candidates"),
    ("validity", "suite_validity"),
    ("kills", "right_kill_rate"),
    ("book", "book_size"),
    ("added", "book_added"),
    ("removed", "book_removed"),
)
_OF_TURNS = (
    ("playing", "playing_turn_{}"),
    ("fixed", "fixed_turn_{}"),
    ("broke", "broke_turn_{}"),
)
"""Headings of the live tables, and the names of their figures; `{}` is a role, module or number of a turn."""
_WRITES = {"distinct_coder": "distinct_programs", "distinct_tester": "distinct_suites"}


class _StepWatcher(Watcher):
    """Stores the lines of a training run."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.lines: list[Line] = []
        self.steps = 0

    def begin(self, folder: Path, config: TrainingConfig, lines: Sequence[dict[str, Any]]) -> None:
        """Take the steps that are already done."""
        self.lines = list(lines)
        self.steps = config.run.steps
        events = f"; watch it with: tensorboard --logdir {folder / 'tensorboard'}" if config.logging.tensorboard else ""
        if not self.page.quiet:
            self.note(f"training into {folder}{events}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


class PlainLines(_StepWatcher):
    """Prints what is prepared, one line per step, and notes in a long step.

    Args:
        page: takes the lines.
    """

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self.now = PhaseLine("starting", None, page)
        self._phase: Phase | None = None
        self._begun, self._first = 0.0, 0
        self._alarms: dict[str, int] = {}  # for how many steps each has lasted

    def begin(self, folder: Path, config: TrainingConfig, lines: Sequence[dict[str, Any]]) -> None:
        """Take the steps that are already done; the clock of the remaining ones starts."""
        super().begin(folder, config, lines)
        self._begun, self._first = time.monotonic(), lines[-1]["step"] if lines else 0

    def progress(self, progress: Progress) -> None:
        """Take the progress: a phase before the first step is noted soon, one of a step after half a minute."""
        if progress.phase is not self._phase:
            self.now.begin("", soon=progress.phase in PREPARING)
        self.now.what, self._phase = str(progress), progress.phase

    def step(self, line: Line) -> None:
        """Print the step, and new alarms as warnings; those that last are counted."""
        self.now.rest()
        if self.page.quiet:
            return
        figures, times = line.get("figures", {}), line.get("times", {})
        parts = [f"step {line['step']} of {self.steps}"]
        parts += [
            f"{label} {figures[name]:.3f}"
            for label, name in (
                ("coder", "coder_reward"),
                ("tester", "tester_reward"),
                ("validity", "suite_validity"),
                ("kills", "right_kill_rate"),
                ("fixed", "fixed_turn_2"),
            )
            if name in figures
        ]
        if times:
            parts.append(f"{times['step_s']:.1f} s, {times['tokens_per_s']:.0f} tokens/s")
        if self._first < line["step"] < self.steps:
            spent = (time.monotonic() - self._begun) / (line["step"] - self._first)
            parts.append(f"left {clock(spent * (self.steps - line['step']))}")
        alarms = line.get("alarms", {})
        self._alarms = {name: self._alarms.get(name, 0) + 1 for name in alarms}
        parts += [f"{name} for {n} steps" for name, n in self._alarms.items() if n > 1]
        if "evaluation" in line:
            parts += ["held out:", *(f"{name} {value}" for name, value in _label_held_out(line["evaluation"]).items())]
        for row in textwrap.wrap("  ".join(parts), _WIDEST, subsequent_indent="  ", break_on_hyphens=False):
            self.page.say(row)
        for name, sentence in alarms.items():
            if self._alarms[name] == 1:
                self.page.warn(f"step {line['step']}: {name}: {sentence}")

    def note(self, text: str) -> None:
        """Print a note."""
        self.page.note(text, even_if_quiet=True)

    def __enter__(self) -> Self:
        self.now.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.now.__exit__(*error)


class LiveTable(_StepWatcher):
    """Draws the whole run's bar, the progress of the present step, and the figures of the last one.

    Args:
        page: takes the result.
    """

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._phase = "starting"
        # A step may take many minutes: the speed is that of the whole session.
        self._bar = RunBar(*bar_columns("steps"), auto_refresh=False, speed_estimate_period=float("inf"))
        self._task = self._bar.add_task("", total=None)
        self._live = Live(
            console=Console(stderr=True),
            refresh_per_second=1,
            get_renderable=self.draw,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def begin(self, folder: Path, config: TrainingConfig, lines: Sequence[dict[str, Any]]) -> None:
        """Take the steps that are already done."""
        super().begin(folder, config, lines)
        self._bar.update(self._task, total=self.steps, completed=lines[-1]["step"] if lines else 0)

    def step(self, line: Line) -> None:
        """Draw the figures of a step."""
        self.lines.append(line)
        self._bar.update(self._task, completed=line["step"])
        self._live.refresh()

    def progress(self, progress: Progress) -> None:
        """Draw the progress of a step."""
        self._phase = str(progress)
        self._live.refresh()

    def draw(self) -> RenderableType:
        """Return all that is shown."""
        return Group(self._bar.get_renderable(), Text(self._phase, style="dim"), *tables_of(self.lines))

    def note(self, text: str) -> None:
        """Print a note above the table."""
        self._live.console.print(Text(f"note: {harmless(text)}", style="yellow"))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._phase = ""
        self._live.stop()


def tables_of(lines: Sequence[Line]) -> Iterator[RenderableType]:
    """Yield the alarms, the figures of the last step and their means over the last ten, and the evaluations.

    Args:
        lines: the lines of `metrics.jsonl`.
    """
    stepped = [line for line in lines if "figures" in line]
    for name, sentence in lines[-1].get("alarms", {}).items() if lines else ():
        yield Text(f"alarm {name}: {sentence}", style="red")
    if stepped:
        modules = sorted(name.removesuffix("_trained") for name in stepped[-1]["figures"] if name.endswith("_trained"))
        yield _table("role", _OF_ROLES, _ROLES, stepped)
        yield _table("game", _OF_GAME, ("",), stepped)
        names = (name.removeprefix("playing_turn_") for name in stepped[-1]["figures"] if name.startswith("playing_"))
        if turns := sorted(names, key=int):
            yield _table("turn", _OF_TURNS, turns, stepped)
        yield _table("model", _OF_MODULES, modules, stepped)
        yield Text(_times(stepped[-1]["times"]))
    evaluated = [line for line in lines if "evaluation" in line]
    if evaluated:
        yield _evaluations(evaluated[0], evaluated[-1])


def _table(what: str, columns: Sequence[tuple[str, str]], names: Sequence[str], lines: Sequence[Line]) -> Table:
    """Return a table with a column per figure, and for each name the last step and the mean of the last ones."""
    rows = []
    for name in names:
        figures = [_WRITES.get(key := figure.format(name), key) for _, figure in columns]
        rows.append((name or "last step", *(_number(lines[-1]["figures"].get(each)) for each in figures)))
        last = lines[-_MEAN_OVER:]
        rows.append((f"  mean of {len(last)}", *(_number(_mean(last, each)) for each in figures)))
    return new_table((what, *(heading for heading, _ in columns)), rows, right=range(1, len(columns) + 1), whole=(0,))


def _evaluations(first: Line, last: Line) -> Table:
    """Return a table of the first and the last evaluation; there may be only one."""
    shown = [first, last] if last is not first else [last]
    cells = [_label_held_out(line["evaluation"]) for line in shown]
    rows = [(name, *(each.get(name, "-") for each in cells)) for name in cells[-1]]
    return new_table(("held out", *(f"step {line['step']}" for line in shown)), rows, right=range(1, 3))


def _label_held_out(figures: Mapping[str, float]) -> dict[str, str]:
    """Return the figures of an evaluation as text, with the interval of one that has an interval."""
    texts = {}
    for name, value in figures.items():
        if name != "problems" and not name.endswith(("_low", "_high")):
            low, high = (figures.get(f"{name}_{end}") for end in ("low", "high"))
            interval = "" if low is None or high is None else f" ({_number(low)} to {_number(high)})"
            texts[name] = _number(value) + interval
    return texts


def _mean(lines: Sequence[Line], name: str) -> float | None:
    values = [line["figures"][name] for line in lines if name in line["figures"]]
    return sum(values) / len(values) if values else None


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) < 0.0005:
        return f"{value:.0e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3f}"


def _times(times: Mapping[str, float]) -> str:
    parts = ("sync", "rollout", "generate", "judge", "learn")
    split = ", ".join(f"{name} {times[f'{name}_s']:.2f}" for name in parts)
    return f"{times['step_s']:.2f} s ({split}), {times['tokens_per_s']:.0f} tokens/s"
