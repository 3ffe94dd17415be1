"""Computes the figures of a run from its records. Pure: equal for a run just played, resumed or read from disk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import nan

from codea1_agents.statistics import Estimate, estimate_document, mean_interval
from codea1_env.facts.verdicts import Verdict
from codea1_env.rules.funnel import count_tests, funnel
from codea1_env.runs.records import CaseRecord, EpisodeRecord, RoundRecord


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a run. Estimates are means over problems of a value per round, with 95 % intervals.

    Masked rounds, in which the sandbox or an agent failed, enter no estimate. The estimates of the two rewards count
    them in `n_masked`.
    """

    n_episodes: int
    n_rounds: int
    n_problems: int
    n_masked_rounds: int
    n_unasked_rounds: int
    """Rounds that ended without the tester, because the candidate was invalid."""
    coder_reward: Estimate
    tester_reward: Estimate
    """Over the rounds in which the tester had a turn."""
    candidate_validity: Estimate
    """Share of candidates that load."""
    pass_new: Estimate
    """Share of a suite's valid cases that a valid candidate passes; rounds without such cases do not enter."""
    pass_replayed: Estimate
    """The same for cases of the Mistake Book."""
    suite_validity: Estimate
    """Valid cases whose prediction is not wrong, divided by the number of requested cases, at most 1."""
    right_kill_rate: Estimate
    """Share of suites for valid candidates that fail at least one right case that copies no example."""
    kill_rate: Estimate
    """The same with copied examples and corrected cases, so it also rises with wrong answers to good inputs."""
    zero_evidence: Estimate
    """Share of valid candidates for which no case, new or replayed, was run."""
    book_size: int
    """Entries of the Mistake Book after the last round of each problem."""
    tests: Mapping[str, int]
    """Tests by the reason why they beat no program (`codea1_env.rules.funnel`)."""
    not_loading: Mapping[str, int]
    """Programs that do not load, by the error's class, or by the verdict of one that was not run."""

    def to_json(self) -> dict[str, object]:
        """Return plain data; nan becomes null."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("tests", "not_loading")}
        values["funnel"] = {stage.name: {"n": stage.n, "lost": stage.lost} for stage in funnel(self.tests)}
        return {n: estimate_document(v) if isinstance(v, Estimate) else v for n, v in values.items()}


class Tally:
    """Adds up one episode after the other; `summary` returns the figures at any time."""

    def __init__(self, *, tests_per_suite: int) -> None:
        self._tests_per_suite = tests_per_suite
        self._values: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in MEASURES}
        self._problems: set[str] = set()
        self._book_sizes: dict[str, int] = {}
        self._tests: Counter[str] = Counter()
        self._not_loading: Counter[str] = Counter()
        self._n_episodes = self._n_rounds = self._n_masked = self._n_unasked = 0

    @property
    def values(self) -> Mapping[str, Mapping[str, Sequence[float]]]:
        """Return the values of each of `MEASURES` by problem."""
        return self._values

    @property
    def book_size(self) -> int:
        """Return the entries of the Mistake Book."""
        return sum(self._book_sizes.values())

    def add(self, record: EpisodeRecord) -> None:
        """Add one episode."""
        self._n_episodes += 1
        self._problems.add(record.problem_id)
        for played in record.rounds:
            self._n_rounds += 1
            if played.book is not None:
                self._book_sizes[record.problem_id] = played.book.size
            if played.rewards.coder.value is None:
                self._n_masked += 1
                self._values["coder_reward"][record.problem_id].append(nan)
                if played.tester_reply is not None:
                    self._values["tester_reward"][record.problem_id].append(nan)
                continue
            self._n_unasked += played.tester_reply is None
            if played.tester_reply is not None:
                cases = ((case.prediction_right, case.is_example, case.verdict) for case in new_cases(played))
                dropped = (rejection.reason for suite in played.suites for rejection in suite.rejections)
                self._tests += count_tests(cases, dropped)
            if not _candidate_validity(played, 0):
                error = played.candidate.detail.partition(":")[0]
                self._not_loading[error if error.isidentifier() else played.candidate.verdict] += 1
            for name, measure in MEASURES.items():
                value = measure(played, self._tests_per_suite)
                if value is not None:
                    self._values[name][record.problem_id].append(float(value))

    def summary(self, *, seed: int = 0) -> Summary:
        """Return the figures so far; `seed` is the seed of the intervals' resampling."""
        return Summary(
            n_episodes=self._n_episodes,
            n_rounds=self._n_rounds,
            n_problems=len(self._problems),
            n_masked_rounds=self._n_masked,
            n_unasked_rounds=self._n_unasked,
            book_size=self.book_size,
            tests=dict(self._tests),
            not_loading=dict(self._not_loading.most_common()),
            **{name: mean_interval(values, seed=seed) for name, values in self._values.items()},
        )


def _tester_reward(played: RoundRecord, _: int) -> float | None:
    known = [reward.value for reward in played.rewards.testers if reward.value is not None]
    return mean(known) if played.tester_reply is not None and known else None


def _candidate_validity(played: RoundRecord, _: int) -> bool:
    return played.candidate.verdict is Verdict.PASSED


def _suite_validity(played: RoundRecord, tests_per_suite: int) -> float | None:
    if played.tester_reply is None:
        return None
    right = [sum(case.prediction_right is not False for case in suite.cases) for suite in played.suites]
    return mean([min(1.0, n / tests_per_suite) for n in right])


def _kill_rate(played: RoundRecord, counts: Callable[[CaseRecord], bool]) -> float | None:
    """Return the share of the suites with a failed case that counts."""
    if played.tester_reply is None or not _candidate_validity(played, 0):
        return None
    return mean([any(case.verdict.is_failure and counts(case) for case in suite.cases) for suite in played.suites])


def _zero_evidence(played: RoundRecord, _: int) -> bool | None:
    if not _candidate_validity(played, 0):
        return None
    return not any(case.verdict.is_evidence for case in (*new_cases(played), *played.replayed))


LABELS = {
    "coder_reward": "coder reward",
    "candidate_validity": "  programs that load",
    "pass_new": "  pass rate, new tests",
    "pass_replayed": "  pass rate, replayed tests",
    "tester_reward": "tester reward",
    "suite_validity": "  suite validity",
    "right_kill_rate": "  suites that beat the program",
    "kill_rate": "  suites that beat it, wrong answers too",
    "zero_evidence": "programs without evidence",
}
"""The figures in the order of a table, where an indented one is about the role above it."""

MEASURES: dict[str, Callable[[RoundRecord, int], float | None]] = {
    "coder_reward": lambda played, _: played.rewards.coder.value,
    "tester_reward": _tester_reward,
    "candidate_validity": _candidate_validity,
    "pass_new": lambda played, _: _pass_rate(new_cases(played)),
    "pass_replayed": lambda played, _: _pass_rate(played.replayed),
    "suite_validity": _suite_validity,
    "right_kill_rate": lambda played, _: _kill_rate(played, can_win),
    "kill_rate": lambda played, _: _kill_rate(played, lambda case: True),
    "zero_evidence": _zero_evidence,
}
"""By name: from an unmasked round and the requested tests per suite to a value; None: the round does not enter."""


def new_cases(played: RoundRecord) -> tuple[CaseRecord, ...]:
    """Return the cases of all suites, in order."""
    return tuple(case for suite in played.suites for case in suite.cases)


def can_win(case: CaseRecord) -> bool:
    """Return whether a test is right and copies no example, so that it wins if a program fails it."""
    return case.prediction_right is not False and not case.is_example


def mean(values: Sequence[float]) -> float:
    """Return the mean; nan without values."""
    return sum(values) / len(values) if values else nan


def _pass_rate(cases: Iterable[CaseRecord]) -> float | None:
    tried = [case.verdict is Verdict.PASSED for case in cases if case.verdict.is_evidence]
    return sum(tried) / len(tried) if tried else None
