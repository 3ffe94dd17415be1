"""The formulas. Pure: each function maps counts and flags of one problem to one number, nan where it is undefined.

All shares are in [0, 1]; papers print them times 100. `codea1_agents.statistics` computes means over problems and their
intervals.

Sources: pass@k of programs: Chen et al., Evaluating Large Language Models Trained on Code (2021), equation 1. Measures
of tests: UnLeakedTestBench as it was run for Code-A1 (method.md 3). Best-of-N gain and fidelity: UTRL, arXiv
2508.21107. Number of problems: the normal approximation for a paired comparison, e.g. Cohen (1988), chapter 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, comb, inf, isnan, nan, sqrt
from statistics import NormalDist

_LEVEL, _POWER = 0.05, 0.8  # of the test for which `n_problems_needed` plans


def pass_at_k(n: int, n_right: int, k: int) -> float:
    """Return the unbiased estimate of the chance that at least one of k samples is right; nan if n < k.

    1 - C(n - c, k) / C(n, k): the share of the k-subsets of n samples, c of them right, that contain a right one.

    Raises:
        ValueError: k < 1, or not 0 <= n_right <= n.
    """
    if k < 1 or not 0 <= n_right <= n:
        raise ValueError(f"pass@k needs k >= 1 and 0 <= n_right <= n, got k={k}, n_right={n_right}, n={n}")
    return nan if n < k else 1.0 - comb(n - n_right, k) / comb(n, k)


def accuracy_at_k(right: Sequence[bool], k: int) -> float:
    """Return the share of the first k tests that the solution passes; missing tests count as wrong.

    This is UnLeakedTestBench's pass@k: accuracy, not "at least one" (method.md 3).

    Raises:
        ValueError: k < 1.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    return sum(right[:k]) / k


def conditional_mutation_score(
    right: Sequence[bool], killed_by: Sequence[int | None], k: int, n_requested: int
) -> float:
    """Return mut@k of one problem as UnLeakedTestBench counts it; nan where not all `n_requested` tests are right.

    Killed mutants divided by mutants. A problem without mutants counts as 1, as in the original. The set of problems
    that enter depends on the tester, so means of different testers are not comparable; `fixed_mutation_score` is.

    Args:
        right: (n,) whether the solution passes each test.
        killed_by: per mutant the position of the first right test that kills it, None if none does.
        k: number of tests that count, from the front.
        n_requested: number of requested tests.
    """
    if len(right) < n_requested or not all(right[:n_requested]):
        return nan
    return _killed_share(killed_by, k) if killed_by else 1.0


def fixed_mutation_score(killed_by: Sequence[int | None], k: int) -> float:
    """Return the share of mutants that the right tests among the first k kill; nan only without mutants.

    Every problem with mutants enters: wrong and missing tests kill nothing.
    """
    return _killed_share(killed_by, k) if killed_by else nan


def _killed_share(killed_by: Sequence[int | None], k: int) -> float:
    return sum(position is not None and position < k for position in killed_by) / len(killed_by)


def best_positions(scores: Sequence[float]) -> tuple[int, ...]:
    """Return all positions of the highest score, in order; empty without scores."""
    return tuple(position for position, score in enumerate(scores) if score == max(scores))


def selected_score(scores: Sequence[float], worth: Sequence[float]) -> float:
    """Return the worth of the candidate with the highest score; with ties, the expectation under a random choice.

    Args:
        scores: (N,) the scores by which a candidate is chosen.
        worth: (N,) the value of each candidate.

    Raises:
        ValueError: lengths differ, or are 0.
    """
    if len(scores) != len(worth) or not scores:
        raise ValueError(f"expected one score per candidate, got {len(scores)} for {len(worth)}")
    best = best_positions(scores)
    return sum(worth[position] for position in best) / len(best)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation with mean ranks for ties, in [-1, 1]; nan if either side is constant.

    Raises:
        ValueError: lengths differ.
    """
    a, b = _centred_ranks(first), _centred_ranks(second)
    if len(a) != len(b):
        raise ValueError(f"expected as many values on both sides, got {len(a)} and {len(b)}")
    scale = sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    if scale == 0:
        return nan
    return max(-1.0, min(1.0, sum(x * y for x, y in zip(a, b, strict=True)) / scale))


def _centred_ranks(values: Sequence[float]) -> list[float]:
    """Return for each value the number of smaller values less the number of larger ones: twice its centred rank."""
    return [float(sum(other < value for other in values) - sum(other > value for other in values)) for value in values]


def n_problems_needed(differences: Sequence[float]) -> float:
    """Return the number of problems that a paired comparison needs to show the mean of these differences.

    n = ((z(1 - level/2) + z(power)) * s / d)**2 for a two-sided test, with the mean d and the standard deviation s
    (ddof 1) of the differences; at least 2. The level is 0.05 and the power 0.8. inf if the mean is 0; nan below two
    differences.

    Args:
        differences: one per problem; nan means masked.
    """
    kept = [value for value in differences if not isnan(value)]
    if len(kept) < 2:
        return nan
    mean = sum(kept) / len(kept)
    if mean == 0:
        return inf
    variance = sum((value - mean) ** 2 for value in kept) / (len(kept) - 1)
    z = NormalDist().inv_cdf(1 - _LEVEL / 2) + NormalDist().inv_cdf(_POWER)
    return float(max(2, ceil(z * z * variance / (mean * mean))))
