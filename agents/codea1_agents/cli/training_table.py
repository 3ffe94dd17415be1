"""Shows a training run: as a live table on a terminal, else as one line per step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from codea1_agents.cli.console import Page, new_table
from codea1_agents.train.grpo.progress import Progress
from codea1_agents.train.loop.loop import Watcher
from codea1_agents.train.loop.options import TrainingConfig
from codea1_env.rendering import harmless

_MEAN_OVER = 10
_SILENCE_S = 30.0

Line = Mapping[str, Any]

_COMMON = (
    ("rewards", ("coder_reward", "tester_reward")),
    ("  of which adversarial, validity", ("adversarial", "validity")),
    ("suite validity; programs that load", ("suite_validity", "valid_candidates")),
    ("suites that beat (kill rate)", ("suites_that_beat",)),
    ("pass rate: new, replayed tests", ("pass_new", "pass_replayed")),
    ("groups with spread: coder, tester", ("coder_spread_share", "tester_spread_share")),
    ("distinct programs, suites", ("distinct_programs", "distinct_suites")),
    ("tokens per reply: coder, tester", ("coder_tokens", "tester_tokens")),
    ("cut replies: coder, tester", ("coder_cut_share", "tester_cut_share")),
    ("Mistake Book: size, added, removed", ("book_size", "book_added", "book_removed")),
)
_OF_MODULES = (
    ("divergence (KL)", "kl"),
    ("entropy", "entropy"),
    ("clipped tokens", "clip_share"),
    ("gradient norm", "grad_norm"),
    ("gap to the sampler's log-probabilities: mean", "sampler_gap"),
    ("  largest", "sampler_gap_max"),
    ("  effective sample share", "sampler_ess"),
    ("  truncated share", "sampler_truncated_share"),
)


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
        self.page.note(f"training into {folder}; watch it with: tensorboard --logdir {folder / 'tensorboard'}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


class PlainLines(_StepWatcher):
    """Prints one line per step, and notes in a long step.

    Args:
        page: takes the lines.
        clock: returns seconds.
    """

    def __init__(self, page: Page, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(page)
        self._clock = clock
        self._printed_at = clock()

    def progress(self, progress: Progress) -> None:
        """Print the progress if nothing was printed for 30 s."""
        if self._clock() - self._printed_at >= _SILENCE_S:
            self._printed_at = self._clock()
            self.page.note(str(progress))

    def step(self, line: Line) -> None:
        """Print the step, and its alarms as warnings."""
        self._printed_at = self._clock()
        if self.page.quiet:
            return
        figures, times = line.get("figures", {}), line.get("times", {})
        parts = [f"step {line['step']}/{self.steps}"]
        parts += [
            f"{label} {figures[name]:.3f}"
            for label, name in (
                ("coder", "coder_reward"),
                ("tester", "tester_reward"),
                ("validity", "suite_validity"),
                ("kills", "suites_that_beat"),
            )
            if name in figures
        ]
        if times:
            parts.append(f"{times['step_s']:.1f} s, {times['tokens_per_s']:.0f} tokens/s")
        if "evaluation" in line:
            parts.append(_evaluation(line["evaluation"]))
        self.page.say("  ".join(parts))
        for name, sentence in line.get("alarms", {}).items():
            self.page.warn(f"step {line['step']}: {name}: {sentence}")

    def note(self, text: str) -> None:
        """Print a note."""
        self.page.note(text, even_if_quiet=True)


class LiveTable(_StepWatcher):
    """Draws a table again after every step, and below it the progress of the next one."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._table: RenderableType = Text("")
        self._live = Live(
            console=Console(stderr=True), auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )

    def step(self, line: Line) -> None:
        """Draw the table again."""
        self.lines.append(line)
        self._table = self.drawn()
        self._live.update(self._table, refresh=True)

    def progress(self, progress: Progress) -> None:
        """Draw the progress below the table."""
        self._live.update(Group(self._table, Text(str(progress), style="dim")), refresh=True)

    def drawn(self) -> RenderableType:
        """Return the table."""
        return table_of(self.lines, self.steps)

    def note(self, text: str) -> None:
        """Print a note above the table."""
        self._live.console.print(Text(f"note: {harmless(text)}", style="yellow"))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def table_of(lines: Sequence[Line], steps: int) -> RenderableType:
    """Return a table of the last step and the mean of the last ten, the alarms, and the last evaluation.

    Args:
        lines: of `metrics.jsonl`, at least one.
        steps: of the whole run.
    """
    stepped = [line for line in lines if "figures" in line]
    parts: list[RenderableType] = [Text(f"step {lines[-1]['step']} of {steps}", style="bold")]
    if stepped:
        modules = sorted(name.removesuffix("_trained") for name in stepped[-1]["figures"] if name.endswith("_trained"))
        of_modules = [
            (f"{label}: {', '.join(modules)}", tuple(f"{module}_{name}" for module in modules))
            for label, name in _OF_MODULES
            if modules
        ]
        rows = [_row(label, names, stepped) for label, names in (*_COMMON, *of_modules)]
        parts.append(new_table(("", "last step", f"mean of {_MEAN_OVER}"), rows, right=(1, 2)))
        parts.append(Text(_times(stepped[-1]["times"])))
    evaluated = [line for line in lines if "evaluation" in line]
    if evaluated:
        parts.append(Text(f"held out, step {evaluated[-1]['step']}: {_evaluation(evaluated[-1]['evaluation'])}"))
    for name, sentence in lines[-1].get("alarms", {}).items():
        parts.append(Text(f"alarm {name}: {sentence}", style="red"))
    return Group(*parts)


def _row(label: str, names: Sequence[str], lines: Sequence[Line]) -> tuple[str, str, str]:
    last = "  ".join(_number(lines[-1]["figures"].get(name)) for name in names)
    recent = lines[-_MEAN_OVER:]
    return label, last, "  ".join(_number(_mean(recent, name)) for name in names)


def _mean(lines: Sequence[Line], name: str) -> float | None:
    values = [line["figures"][name] for line in lines if name in line["figures"]]
    return sum(values) / len(values) if values else None


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if 0 < abs(value) < 0.0005:
        return f"{value:.0e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3f}"


def _times(times: Mapping[str, float]) -> str:
    parts = ("sync", "rollout", "generate", "judge", "learn")
    split = ", ".join(f"{name} {times[f'{name}_s']:.2f}" for name in parts)
    return f"{times['step_s']:.2f} s ({split}), {times['tokens_per_s']:.0f} tokens/s"


def _evaluation(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in figures.items() if name != "problems")
