"""The headline comparisons of an experiment, with p values that are corrected for their number. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from codea1_lab.experiments.declaration import ITSELF, Experiment, Headline
from codea1_lab.experiments.spread import Difference, holm
from codea1_lab.experiments.tables import Results, difference_of, difference_text, head, legend, row

_LEVEL = 0.05


def p_text(p: float) -> str:
    """Return a p value as tables show it."""
    return "-" if isnan(p) else f"{p:.2g}"


@dataclass(frozen=True, slots=True)
class HeadlineOutcome:
    """A headline comparison and its outcome."""

    headline: Headline
    other: str
    """System that is compared with; `0`: none."""
    difference: Difference
    p_corrected: float
    """Holm's, over all headlines of the experiment; nan below three pairs."""
    over_bases: Difference
    """The same over bases (`paired_difference`)."""
    p_over_bases: float
    """Holm's, of these."""

    @property
    def survives(self) -> bool:
        """Whether the corrected p value is below 5 %."""
        return self.p_corrected < _LEVEL


def compare_headlines(experiment: Experiment, results: Results) -> list[HeadlineOutcome]:
    """Return the outcome of each headline comparison, in order.

    The family is what is declared: a comparison without results counts as if its p value were 1.
    """
    others = [experiment.other(headline) for headline in experiment.headlines]
    pairs = _differences(experiment, results, over_bases=False)
    bases = _differences(experiment, results, over_bases=True)
    columns = (experiment.headlines, others, pairs, _holm_p_values(pairs), bases, _holm_p_values(bases))
    return [HeadlineOutcome(*column) for column in zip(*columns, strict=True)]


def _differences(experiment: Experiment, results: Results, *, over_bases: bool) -> list[Difference]:
    return [
        difference_of(experiment, results, one.system, experiment.other(one), one.figure, over_bases=over_bases)
        for one in experiment.headlines
    ]


def _holm_p_values(differences: Sequence[Difference]) -> list[float]:
    return holm([difference.p for difference in differences])


def headline_table(experiment: Experiment, results: Results) -> str:
    """Return the table of the headline comparisons; empty if none is declared."""
    outcomes = compare_headlines(experiment, results)
    if not outcomes:
        return ""
    lines = [
        "### Headline comparisons",
        "",
        "Declared with the experiment. p: paired t test over pairs (base, seed); p (Holm): corrected for all"
        f" {len(outcomes)} comparisons. Below three pairs there is neither interval nor p. Over bases: the seeds of a"
        " base, which are not independent, count as one pair.",
        "",
        *head(["comparison", "figure", "difference", "p", "p (Holm)", "survives", "over bases", "p (Holm)"]),
    ]
    for each in outcomes:
        other = "" if each.other == ITSELF else f" minus {each.other}"
        numbers = [p_text(p) for p in (each.difference.p, each.p_corrected)]
        verdict = "-" if isnan(each.difference.p) else "yes" if each.survives else "no"
        pairs, bases = (difference_text(one, percent=True) for one in (each.difference, each.over_bases))
        name = each.headline.system + other
        lines.append(
            row([name, f"`{each.headline.figure}`", pairs, *numbers, verdict, bases, p_text(each.p_over_bases)])
        )
    return "\n".join([*lines, *legend({outcome.headline.figure: outcome.headline.figure for outcome in outcomes}), ""])
