"""The formulas. Pure: counts and flags of one problem in, one number out; nan where a problem has nothing to say.

All shares are in [0, 1]; papers print them times 100. Means over problems and their intervals are taken elsewhere
(`codea1_agents.statistics`).

Sources: pass@k of programs: Chen et al., Evaluating Large Language Models Trained on Code (2021), equation 1. Measures
of tests: UnLeakedTestBench as it was run for Code-A1 (method.md 3). Best-of-N gain and fidelity: UTRL, arXiv
2508.21107. Number of problems: the normal approximation for a paired comparison, e.g. Cohen (1988), chapter 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, comb, inf, isnan, nan, sqrt
from statistics import NormalDist


def pass_at_k(n: int, n_right: int, k: int) -> float:
    """Return the unbiased estimate of the chance that at least one of k samples is right; nan if n < k.

    1 - C(n - c, k) / C(n, k): the share of the k-subsets of n samples, c of them right, that hold a right one.

    Raises:
        ValueError: k < 1, or not 0 <= n_right <= n.
    """
    if k < 1 or not 0 <= n_right <= n:
        raise ValueError(f"pass@{k} of {n_right} right among {n}")
    return nan if n < k else 1.0 - comb(n - n_right, k) / comb(n, k)


def accuracy_at_k(right: Sequence[bool], k: int) -> float:
    """Return the share of the first k tests that the solution passes; tests that were not written are wrong ones.

    This is UnLeakedTestBench's pass@k: accuracy, not "at least one" (method.md 3).

    Raises:
        ValueError: k < 1.
    """
    if k < 1:
        raise ValueError(f"the first {k} tests")
    return sum(right[:k]) / k


def conditional_mutation_score(right: Sequence[bool], killed_by: Sequence[int | None], k: int, n_asked: int) -> float:
    """Return mut@k of one problem as UnLeakedTestBench counts it; nan where not all `n_asked` tests are right.

    Killed mutants over mutants. A problem without mutants counts as 1, as in the original. The set of problems that
    enter depends on the tester, so means of different testers do not compare; hence `fixed_mutation_score`.

    Args:
        right: (n,) whether the solution passes each test.
        killed_by: per mutant the position of the first right test that kills it, None if none does.
        k: how many tests count, from the front.
        n_asked: how many tests were asked for.
    """
    if len(right) < n_asked or not all(right[:n_asked]):
        return nan
    return _killed_share(killed_by, k) if killed_by else 1.0


def fixed_mutation_score(killed_by: Sequence[int | None], k: int) -> float:
    """Return the share of mutants that the right ones of the first k tests kill; nan only if there are no mutants.

    Every problem with mutants enters, whatever the tester wrote: wrong and missing tests kill nothing.
    """
    return _killed_share(killed_by, k) if killed_by else nan


def _killed_share(killed_by: Sequence[int | None], k: int) -> float:
    return sum(position is not None and position < k for position in killed_by) / len(killed_by)


def covered_share(covered: Sequence[int], k: int, total: int) -> float:
    """Return cov@k of one problem; nan where there is nothing to cover.

    Args:
        covered: per number of tests (position 0: after the first) how many statements or branches they reach together.
        k: how many tests count; beyond `covered` its last item counts, and no test covers nothing.
        total: how many there are.
    """
    if total == 0:
        return nan
    return covered[min(k, len(covered)) - 1] / total if covered else 0.0


def best_positions(scores: Sequence[float]) -> tuple[int, ...]:
    """Return the positions of the highest score, in order; several where it is tied, none where there are no scores."""
    return tuple(position for position, score in enumerate(scores) if score == max(scores))


def selected_score(scores: Sequence[float], worth: Sequence[float]) -> float:
    """Return what the candidate with the highest score is worth, as expected where equals are drawn by lot.

    Args:
        scores: (N,) what the choice goes by.
        worth: (N,) what it is for.

    Raises:
        ValueError: lengths differ, or there are none.
    """
    if len(scores) != len(worth) or not scores:
        raise ValueError(f"{len(scores)} scores for {len(worth)} candidates")
    best = best_positions(scores)
    return sum(worth[position] for position in best) / len(best)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation with mean ranks for ties, in [-1, 1]; nan where either side is constant.

    Raises:
        ValueError: lengths differ.
    """
    a, b = _centred_ranks(first), _centred_ranks(second)
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values against {len(b)}")
    scale = sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    if scale == 0:
        return nan
    return max(-1.0, min(1.0, sum(x * y for x, y in zip(a, b, strict=True)) / scale))


def _centred_ranks(values: Sequence[float]) -> list[float]:
    """Return for each value how many are smaller, less how many are larger: twice its mean rank, centred."""
    return [float(sum(other < value for other in values) - sum(other > value for other in values)) for value in values]


def n_problems_needed(differences: Sequence[float], *, power: float = 0.8, level: float = 0.05) -> float:
    """Return how many problems a paired comparison needs to show the mean of these differences; inf if it is 0.

    n = ((z(1 - level/2) + z(power)) * s / d)**2 for a two-sided test, with the mean d and the standard deviation s
    (ddof 1) of the differences; never less than 2. nan below two differences.

    Args:
        differences: one per problem; nan means masked.
        power: the chance to show it, in (0, 1).
        level: the chance to show a difference where there is none, in (0, 1).
    """
    kept = [value for value in differences if not isnan(value)]
    if len(kept) < 2:
        return nan
    mean = sum(kept) / len(kept)
    if mean == 0:
        return inf
    variance = sum((value - mean) ** 2 for value in kept) / (len(kept) - 1)
    z = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(power)
    return float(max(2, ceil(z * z * variance / (mean * mean))))
