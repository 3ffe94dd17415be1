"""The headline comparisons of an experiment, with p values that are corrected for their number. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_agents.train.experiments.declaration import ITSELF, Experiment, Headline
from codea1_agents.train.experiments.spread import Difference, holm
from codea1_agents.train.experiments.tables import Results, difference_of, difference_text, head, row

_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Compared:
    """A headline comparison and its outcome."""

    headline: Headline
    other: str
    """System that is compared with; `0`: none."""
    difference: Difference
    p_corrected: float
    """Holm's, over all headlines of the experiment; nan below three pairs."""

    @property
    def survives(self) -> bool:
        """Whether the corrected p value is below 5 %."""
        return self.p_corrected < _LEVEL


def compared(experiment: Experiment, results: Results) -> list[Compared]:
    """Return the outcome of each headline comparison, in order.

    The family is what is declared: a comparison without results counts as if its p value were 1.
    """
    others = [experiment.other(each) for each in experiment.headlines]
    differences = [
        difference_of(experiment, results, each.system, other, each.figure)
        for each, other in zip(experiment.headlines, others, strict=True)
    ]
    corrected = holm([each.p for each in differences])
    return [Compared(*each) for each in zip(experiment.headlines, others, differences, corrected, strict=True)]


def headline_table(experiment: Experiment, results: Results) -> str:
    """Return the table of the headline comparisons; empty if none is declared."""
    found = compared(experiment, results)
    if not found:
        return ""
    lines = [
        "### Headline comparisons",
        "",
        "Declared with the experiment. p: paired t test over pairs (base, seed); p (Holm): corrected for all"
        f" {len(found)} comparisons. Below three pairs there is neither interval nor p.",
        "",
        *head(["comparison", "figure", "difference", "p", "p (Holm)", "survives"]),
    ]
    for each in found:
        other = "" if each.other == ITSELF else f" minus {each.other}"
        is_known = each.difference.p == each.difference.p
        numbers = [f"{p:.2g}" if is_known else "-" for p in (each.difference.p, each.p_corrected)]
        verdict = ("yes" if each.survives else "no") if is_known else "-"
        text = difference_text(each.difference, percent=True)
        lines.append(row([each.headline.system + other, f"`{each.headline.figure}`", text, *numbers, verdict]))
    return "\n".join([*lines, ""])
