"""Computes a tester's figures from its records. Pure.

The figures have two kinds of denominators, and their names tell which. *Conditional* figures (`mut@k`) are
UnLeakedTestBench's: means over only those problems for which all K tests are right, so each tester is measured on its
own subset. *Fixed* figures (`mut_fixed@k`) are means over all problems; wrong and missing tests kill nothing. Fixed
figures of different testers are comparable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import isnan, nan

from codea1_agents.evaluation.metrics import (
    accuracy_at_k,
    conditional_mutation_score,
    fixed_mutation_score,
)
from codea1_agents.evaluation.records import TesterRecord
from codea1_agents.statistics import Estimate, mean_interval, product_interval

USUAL_TEST_K = (1, 2, 5)
"""The k of the paper's table 2."""


@dataclass(frozen=True, slots=True)
class TesterFigures:
    """A tester's figures; estimates are means over problems with 95 % intervals."""

    n_problems: int
    """Unmasked problems."""
    n_masked: dict[str, int]
    """Masked problems by reason: `agent` or `sandbox`."""
    n_masked_mutants: int
    figures: dict[str, Estimate]
    """By name: validity, pass@k, mut@k, mut_fixed@k, Mul, Mul_fixed; with a base, `answers`. `n_problems` of each is
    its own denominator."""
    faults: dict[str, int]
    """Number of tests that are not right, by reason."""


def figures_of_tester(records: Collection[TesterRecord], *, tests: int, seed: int = 0) -> TesterFigures:
    """Return the figures of some records.

    Args:
        records: at most one per problem.
        tests: K, the number of requested tests.
        seed: seeds the resampling behind the intervals.
    """
    used = [record for record in records if not record.masked]
    figures = {name: _mean(used, measure, seed) for name, measure in _measures(tests).items()}
    if any(record.answers is not None for record in used):
        figures["answers"] = _mean(used, lambda record: nan if record.answers is None else record.answers, seed)
    figures["Mul"] = _product(used, f"pass@{tests}", f"mut@{tests}", tests, seed)
    figures["Mul_fixed"] = _product(used, f"pass@{tests}", f"mut_fixed@{tests}", tests, seed)
    return TesterFigures(
        n_problems=len(used),
        n_masked=dict(Counter(record.masked for record in records if record.masked)),
        n_masked_mutants=sum(record.n_masked_mutants for record in used),
        figures=figures,
        faults=dict(Counter(t.fault for record in used for t in record.tests if not t.right).most_common()),
    )


def figure_by_problem(records: Iterable[TesterRecord], name: str, *, tests: int) -> dict[str, float]:
    """Return one figure by problem; nan where the problem does not enter.

    Raises:
        KeyError: the figure does not exist, or is not a mean over problems (Mul).
    """
    measure = _measures(tests)[name]
    return {record.problem_id: nan if record.masked else measure(record) for record in records}


def figure_names(tests: int) -> tuple[str, ...]:
    """Return the names of all figures that are means over problems."""
    return tuple(_measures(tests))


_Measure = Callable[[TesterRecord], float]


def _measures(tests: int) -> dict[str, _Measure]:
    measures: dict[str, _Measure] = {"validity": lambda record: min(1.0, record.n_valid / tests)}
    for k in sorted({*(k for k in USUAL_TEST_K if k <= tests), tests}):
        measures |= _measures_at(k, tests)
    return measures


def _measures_at(k: int, tests: int) -> dict[str, _Measure]:
    def right(record: TesterRecord) -> list[bool]:
        return [test.right for test in record.tests]

    return {
        f"pass@{k}": lambda record: accuracy_at_k(right(record), k),
        f"mut@{k}": lambda record: conditional_mutation_score(right(record), record.killed_by, k, tests),
        f"mut_fixed@{k}": lambda record: fixed_mutation_score(record.killed_by, k),
    }


def _mean(records: Iterable[TesterRecord], measure: _Measure, seed: int) -> Estimate:
    values = {record.problem_id: measure(record) for record in records}
    return mean_interval({problem: [value] for problem, value in values.items() if not isnan(value)}, seed=seed)


def _product(records: Collection[TesterRecord], first: str, second: str, tests: int, seed: int) -> Estimate:
    return product_interval(
        figure_by_problem(records, first, tests=tests), figure_by_problem(records, second, tests=tests), seed=seed
    )
