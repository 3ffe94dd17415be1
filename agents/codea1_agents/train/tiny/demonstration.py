"""The change that a training run made, as a picture and as a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import nan
from pathlib import Path
from typing import Any

from codea1_agents.evaluation.canvas import canvas, stroke
from codea1_agents.statistics import change_between, direction, recorded_estimate

Line = Mapping[str, Any]

PASS = "coder_pass_at_1"
VALIDITY = "tester_validity/current"
KILLS = "tester_right_kill_rate/mutant,strength=1"
_PANELS = (
    ("coder, held-out problems", "share", (("evaluation", PASS, "pass at 1"),)),
    ("tester, held-out problems", "share", (("evaluation", VALIDITY, "valid"), ("evaluation", KILLS, "beat a mutant"))),
    ("coder, training", "share", (("figures", "pass_new", "pass new"), ("figures", "pass_replayed", "pass replayed"))),
    ("Mistake Book", "cases", (("figures", "book_size", "cases"),)),
)


@dataclass(frozen=True, slots=True)
class Change:
    """Held-out figures before the first step and after the last one: shares in [0, 1], nan if unknown."""

    steps: int
    pass_before: float
    pass_after: float
    validity_before: float
    validity_after: float
    kills_before: float
    kills_after: float
    pass_direction: str = ""
    """What `statistics.direction` says of pass@1, the one figure whose intervals are recorded."""

    def sentence(self) -> str:
        """Return the change, as reports say it."""
        return (
            f"In {self.steps} steps the coder's held-out pass@1 {self.pass_direction or 'went'} from"
            f" {self.pass_before:.2f} to {self.pass_after:.2f}. Without intervals that tell a change, the share of the"
            f" tester's tests that are valid went from {self.validity_before:.2f} to {self.validity_after:.2f}, and the"
            f" share of its suites that beat a mutant from {self.kills_before:.2f} to {self.kills_after:.2f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def change_of(lines: Sequence[Line]) -> Change:
    """Return the change between the first and the last evaluation of a run.

    Args:
        lines: the lines of `metrics.jsonl`.

    Raises:
        ValueError: there are fewer than two evaluations.
    """
    evaluated = [line["evaluation"] for line in lines if "evaluation" in line]
    if len(evaluated) < 2:
        raise ValueError("a change needs a run with at least two evaluations")
    first, last = evaluated[0], evaluated[-1]
    return Change(
        steps=next(line["step"] for line in reversed(lines) if "evaluation" in line),
        pass_before=first.get(PASS, nan),
        pass_after=last.get(PASS, nan),
        validity_before=first.get(VALIDITY, nan),
        validity_after=last.get(VALIDITY, nan),
        kills_before=first.get(KILLS, nan),
        kills_after=last.get(KILLS, nan),
        pass_direction=direction(change_between(recorded_estimate(first, PASS), recorded_estimate(last, PASS))),
    )


def draw_change(lines: Sequence[Line], folder: Path) -> None:
    """Write `coevolution.svg` and `coevolution.png` into a folder.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: they cannot be written.
    """
    paths = (folder / "coevolution.svg", folder / "coevolution.png")
    with canvas(*paths, size=(9.6, 5.4), n_rows=2, n_columns=2) as (_, axes):
        for axis, (title, y, series) in zip(axes, _PANELS, strict=True):
            for n, (section, name, label) in enumerate(series):
                points = [(line["step"], line[section][name]) for line in lines if name in line.get(section, {})]
                if points:
                    axis.plot(*zip(*points, strict=True), label=label, **stroke(n, len(points)))
            axis.set_title(title)
            axis.set(xlabel="training step", ylabel=y)
            axis.set_ylim(bottom=0)
            axis.grid(alpha=0.3)
            axis.legend(frameon=False)
