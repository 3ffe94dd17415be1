"""Compute the rewards of coder and testers from a report; each reward is a sum of named parts.

Notation, for one candidate and one of its suites (K = `Ruleset.tests_per_suite`):

- `pass_new`: passed cases / valid cases of the suite; `pass_replayed`: passed / replayed cases of the Mistake Book
- `fail_new`, `fail_replayed`: evidence against the candidate, as each formula defines it
- `adversarial` = (fail_new - fail_replayed + 1) / 2 where both exist (Eq. 3), `fail_new` without replays
- tester = alpha * validity + (1 - alpha) * adversarial - penalty * nonprintable (Eq. 4)

Sources: arXiv 2603.15611, Eq. 2 to 4; release reward.py:809-922 and 1203-1206. docs/rules.md says what `fixed` changes
and why. `rules.baseline_rewards` holds the rewards of other papers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from codea1_env.errors import UserError, message_of
from codea1_env.facts.submissions import Candidate, RejectionReason
from codea1_env.facts.verdicts import CandidateReport, CaseReport, ProblemReport, SuiteReport, ValidSuite, Verdict
from codea1_env.rules.ruleset import CommonKills, Replays, RewardScheme, Ruleset, preset, reward_plugin

Rewards = NDArray[np.float64]
"""Rewards of several rollouts, nan where masked."""


@dataclass(frozen=True, slots=True)
class RewardPart:
    """One term of a reward."""

    name: str
    value: float
    weight: float

    @property
    def weighted(self) -> float:
        """The contribution to the reward."""
        return self.weight * self.value


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward and its terms: the reward is their weighted sum. A masked one is nan and has no terms."""

    value: float
    parts: tuple[RewardPart, ...]

    @classmethod
    def of(cls, *parts: RewardPart) -> Reward:
        """Sum the parts, in their order."""
        return cls(sum((part.weighted for part in parts), 0.0), parts)

    def weighted(self) -> dict[str, float]:
        """Return the weighted terms by name; they add up to the reward."""
        return {part.name: part.weighted + 0.0 for part in self.parts}  # + 0.0 turns -0.0 into 0.0

    def part(self, name: str) -> float:
        """Return the value of a term, before it is weighted; 0 without such a term, nan if the reward is masked."""
        return math.nan if self.masked else sum((part.value for part in self.parts if part.name == name), 0.0)

    @property
    def masked(self) -> bool:
        """True iff the reward is unknown: leave it out of every mean and every gradient."""
        return math.isnan(self.value)


MASKED = Reward(math.nan, ())
"""The reward where our own failure hides the verdicts, or where nothing was tested and the rules mask that."""


@dataclass(frozen=True, slots=True)
class CandidateRewards:
    """Rewards of one candidate and of the suites written for it."""

    coder: Reward
    testers: tuple[Reward, ...]
    """(M,) one per suite."""


RewardFormula = Callable[[Sequence[CandidateReport], Ruleset], Sequence[CandidateRewards]]
"""From candidates that ran the same suites (or one alone), none of them masked, to the rewards of each, in order.

Installed distributions register such functions under `codea1_env.rewards`. The attributes `needs_golden` (default
False) and `pays_tester` (default True) of the function say what the game must provide.
"""


def score_group(report: ProblemReport, rules: str | Ruleset) -> tuple[CandidateRewards, ...]:
    """Return the rewards that `rules.reward.scheme` gives each candidate of a problem and its suites.

    A scheme that compares candidates (`cure`, `learnability`, a plugin) compares those that ran the same suites: all of
    the problem's candidates if they share suites, else each one alone. `cure` and `learnability` give a shared suite
    the same reward in the result of every valid candidate.

    Args:
        report: N candidates with M suites each.
        rules: the scheme and its parameters, or the name of a ruleset.

    Returns:
        (N,). All rewards of a candidate are masked if any evidence about it is our own failure. Schemes that compare
        candidates then leave it out.

    Raises:
        UserError: the scheme is a plugin that is not installed, that fails, or that returns something else.
    """
    groups = [report.candidates] if report.shares_suites else [(each,) for each in report.candidates]
    rules = preset(rules) if isinstance(rules, str) else rules
    return tuple(chain.from_iterable(_score_comparable(group, rules) for group in groups))


def names_of_suite_parts(rules: Ruleset) -> frozenset[str]:
    """Return the names of the parts of a suite's reward, as an empty suite for a program that loads gets them.

    Raises:
        UserError: as in `score_group`.
    """
    return frozenset(part.name for part in reward_of_no_suite(Verdict.PASSED, rules).parts)


def reward_of_no_suite(verdict: Verdict, rules: Ruleset) -> Reward:
    """Return the reward of a tester that writes no suite: that of an empty one.

    Args:
        verdict: on the program for which it would be.
        rules: the scheme and its parameters.

    Raises:
        UserError: as in `score_group`.
    """
    suite = SuiteReport(ValidSuite((), (), 0, 0.0), ())
    report = CandidateReport(Candidate(""), verdict, suites=(suite,), golden_pass_rate=float(verdict is Verdict.PASSED))
    return score(report, rules).testers[0]


def score(report: CandidateReport, rules: str | Ruleset = "fixed") -> CandidateRewards:
    """Return the rewards of one candidate that no other is compared with; see `score_group`.

    >>> from codea1_env import judge, load_problems, score
    >>> problem = load_problems("starter").by_id("starter/count_carries")
    >>> report = judge(problem, "def count_carries(a, b): return 0", "assert count_carries(5, 5) == 1")
    >>> score(report, "fixed").coder.value
    0.0

    Args:
        report: of `judge`.
        rules: a ruleset or the name of one. Under `golden` the reward is nan unless the report is of `golden=True`.

    Raises:
        UserError: it is no report, no ruleset has this name, or as in `score_group`.
    """
    if not isinstance(report, CandidateReport):
        raise UserError(f"report must be what judge returns, got {report!r:.80}")
    (rewards,) = _score_comparable((report,), preset(rules) if isinstance(rules, str) else rules)
    return rewards


def _score_comparable(group: Sequence[CandidateReport], rules: Ruleset) -> list[CandidateRewards]:
    scheme = rules.reward.scheme
    are_masked = [report.has_internal_error for report in group]
    known = [with_decided(report) for report, is_masked in zip(group, are_masked, strict=True) if not is_masked]
    if scheme in _SCHEMES:
        rewards = iter([_score_alone(report, rules) for report in known])
    elif scheme in list(RewardScheme):
        from codea1_env.rules.baseline_rewards import FORMULAS  # noqa: PLC0415  few games pay so

        rewards = iter(FORMULAS[RewardScheme(scheme)](known, rules))
    else:
        rewards = iter(_score_by_plugin(known, rules))
    return [
        CandidateRewards(MASKED, (MASKED,) * len(report.suites)) if is_masked else next(rewards)
        for report, is_masked in zip(group, are_masked, strict=True)
    ]


def _score_alone(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """Return the rewards by a scheme that compares no candidates."""
    if report.replayed and rules.reward.replays == Replays.AS_ALPHA:
        report = replace(report, replayed=())
        rules = replace(rules, reward=replace(rules.reward, alpha=alpha_with_book(rules.reward.alpha)))
    return _SCHEMES[rules.reward.scheme](report, rules)


def _score_by_plugin(group: Sequence[CandidateReport], rules: Ruleset) -> Sequence[CandidateRewards]:
    name = rules.reward.scheme
    formula: RewardFormula = reward_plugin(name)
    try:
        rewards = formula(group, rules)
        shape = [len(each.testers) for each in rewards]
    except Exception as error:
        raise UserError(f"reward scheme {name!r} failed: {type(error).__name__}: {message_of(error)}") from error
    if shape != [len(report.suites) for report in group]:
        raise UserError(f"reward scheme {name!r} must return one reward per candidate and one per suite")
    return rewards


# -- counts ----------------------------------------------------------------------------------------


def n_passed(reports: tuple[CaseReport, ...]) -> int:
    """Return how many cases the candidate passed."""
    return sum(report.verdict is Verdict.PASSED for report in reports)


def n_failed(reports: tuple[CaseReport, ...]) -> int:
    """Return how many cases are evidence against the candidate."""
    return sum(report.verdict.is_failure for report in reports)


def n_credited(reports: tuple[CaseReport, ...]) -> int:
    """Return how many cases the candidate failed whose prediction was right (or not required)."""
    return sum(report.is_right_kill for report in reports)


def rewarded_cases(reports: tuple[CaseReport, ...], rules: Ruleset) -> tuple[CaseReport, ...]:
    """Return the cases that can earn their tester a reward: all, or those that the statement does not answer."""
    if rules.reward.pays_examples:
        return reports
    return tuple(report for report in reports if not report.case.is_example)


def right_cases(reports: tuple[CaseReport, ...]) -> tuple[CaseReport, ...]:
    """Return the cases whose prediction was right (or not required)."""
    return tuple(report for report in reports if report.case.prediction_right is not False)


def n_right(reports: tuple[CaseReport, ...]) -> int:
    """Return how many `right_cases` there are."""
    return sum(report.case.prediction_right is not False for report in reports)


def validity(suite: SuiteReport, n_requested: int) -> float:
    """Return the share of the requested cases of a suite that are right, at most 1."""
    return min(1.0, n_right(suite.cases) / n_requested)


def n_written(suite: SuiteReport) -> int:
    """Return the number of attempts at a test: kept cases and counted faults. A corrected case counts once."""
    corrected = len(suite.cases) - n_right(suite.cases)
    return len(suite.cases) + suite.suite.n_invalid - corrected


def with_decided(report: CandidateReport) -> CandidateReport:
    """Return a report without the replayed cases that say nothing about any program."""
    decided = tuple(case for case in report.replayed if case.verdict not in (Verdict.DENIED, Verdict.UNDECIDED))
    return report if len(decided) == len(report.replayed) else replace(report, replayed=decided)


def pass_rate(reports: tuple[CaseReport, ...]) -> float | None:
    """Return the share of cases passed, in [0, 1]; None without cases."""
    return n_passed(reports) / len(reports) if reports else None


def right_pass_rates(report: CandidateReport) -> list[float]:
    """Return the candidate's pass rate on the right cases of each suite that has some."""
    return [rate for suite in report.suites if (rate := pass_rate(right_cases(suite.cases))) is not None]


def golden_reward(report: CandidateReport, rules: Ruleset) -> Reward:
    """Return the pass rate on the golden tests; masked where unknown, `invalid_candidate` if it does not load."""
    if not report.loads:
        return invalid_candidate(report, rules).coder
    if report.golden_pass_rate is None:
        return MASKED
    return Reward.of(RewardPart("golden_pass_rate", report.golden_pass_rate, 1.0))


def invalid_candidate(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """Return the rewards for a candidate that does not load: 0 for its testers (release reward.py:905-913)."""
    coder = Reward.of(RewardPart("invalid_candidate", rules.reward.invalid_candidate, 1.0))
    return CandidateRewards(coder, (Reward.of(),) * len(report.suites))


def alpha_with_book(alpha: float) -> float:
    """Return the weight of validity without replays that ranks suites as `alpha` does with replays.

    Eq. 3 halves the weight of new failures, and replays add a constant: alpha / (alpha + (1 - alpha) / 2). It holds for
    the groups that docs/rules.md describes.

    Args:
        alpha: in [0, 1].
    """
    return 2 * alpha / (1 + alpha)


def no_evidence(rules: Ruleset) -> Reward:
    """Return the coder's reward where no case is evidence about its program."""
    value = rules.reward.no_evidence
    return MASKED if value == "masked" else Reward.of(RewardPart("no_evidence", value, 1.0))


def mean_over_candidates(rewards: Rewards) -> Rewards:
    """Return the reward of each suite that all candidates of a problem have run.

    arXiv 2603.15611 does not define it for self-play; the mean over valid candidates is the natural choice.

    Args:
        rewards: shape (..., N, M), of M suites against each of N candidates; nan where a candidate is invalid or the
            reward masked.

    Returns:
        Shape (..., M): means over the values that are not nan; nan if there are none.
    """
    rewards = np.asarray(rewards, dtype=np.float64)
    known = ~np.isnan(rewards)
    n_known = known.sum(axis=-2)
    total = np.where(known, rewards, 0.0).sum(axis=-2)
    return np.where(n_known > 0, total / np.maximum(n_known, 1), np.nan)


# -- terms -----------------------------------------------------------------------------------------


def _adversarial(fail_new: float, fail_replayed: float | None, *, any_new: bool) -> float:
    """Eq. 3; 0 without a valid new case (release reward.py:894-904)."""
    if not any_new:
        return 0.0
    return fail_new if fail_replayed is None else (fail_new - fail_replayed + 1) / 2


def _coder_reward(replayed: float | None, new: float | None, otherwise: Reward) -> Reward:
    """Eq. 2: the mean of the pass rates that exist; `otherwise` if neither does."""
    weight = 0.5 if replayed is not None and new is not None else 1.0
    parts = [] if replayed is None else [RewardPart("pass_replayed", replayed, weight)]
    parts += [] if new is None else [RewardPart("pass_new", new, weight)]
    return Reward.of(*parts) if parts else otherwise


def _tester_reward(rules: Ruleset, validity: float, adversarial: float, nonprintable: float) -> Reward:
    """Eq. 4, with the release's penalty (reward.py:875-876) where its weight is not 0."""
    alpha = rules.reward.alpha
    parts = [RewardPart("validity", validity, alpha), RewardPart("adversarial", adversarial, 1 - alpha)]
    if rules.reward.nonprintable_penalty:
        parts.append(RewardPart("nonprintable", nonprintable, -rules.reward.nonprintable_penalty))
    return Reward.of(*parts)


# -- the schemes -----------------------------------------------------------------------------------


def _paper(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """The paper's equations: validity is the share of written tests that pass validation, fail_new = 1 - pass_new.

    Both are 0 for a suite of more or fewer than K written tests ("exactly K", arXiv 2603.15611, 3.1).
    """
    if not report.loads:
        return invalid_candidate(report, rules)
    replayed = pass_rate(report.replayed)
    new = [share for suite in report.suites if (share := pass_rate(suite.cases)) is not None]
    testers = []
    for suite in report.suites:
        written, pass_new = n_written(suite), pass_rate(suite.cases)
        validity = adversarial = 0.0
        if written and _n_attempted(suite) == rules.tests_per_suite:
            validity = n_right(suite.cases) / written
            adversarial = _adversarial(
                1 - (pass_new or 0.0), None if replayed is None else 1 - replayed, any_new=pass_new is not None
            )
        testers.append(_tester_reward(rules, validity, adversarial, suite.suite.nonprintable_share))
    coder = _coder_reward(replayed, fmean(new) if new else None, no_evidence(rules))
    return CandidateRewards(coder, tuple(testers))


_WRITTEN_BUT_UNCOUNTED = frozenset(
    {RejectionReason.TOO_MANY, RejectionReason.OPAQUE_VALUE, RejectionReason.TOO_MANY_CALLS, RejectionReason.UNKNOWABLE}
)


def _n_attempted(suite: SuiteReport) -> int:
    """Return how many tests were written, including those beyond the reader's bound and those beyond our limits."""
    rejections = suite.suite.rejections
    corrected = {(each.source, each.line) for each in rejections if each.reason is RejectionReason.WRONG_PREDICTION}
    uncounted = [each for each in rejections if each.reason in _WRITTEN_BUT_UNCOUNTED]
    return n_written(suite) + sum((each.source, each.line) not in corrected for each in uncounted)


def _release(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """The release's rewards (reward.py:809-922).

    validity = clip(min(n_valid / K, 1 - n_invalid / K), 0, 1); fail_new = cases not passed among the first K kept / K.
    The coder gets the mean over its suites; a suite without valid cases counts as pass_replayed, or 0 without replays.
    """
    suites = [suite.suite for suite in report.suites]
    if not report.loads:
        penalty = rules.reward.nonprintable_penalty
        testers = [Reward.of(RewardPart("nonprintable", suite.nonprintable_share, -penalty)) for suite in suites]
        return CandidateRewards(Reward.of(RewardPart("invalid_candidate", 0.0, 1.0)), tuple(testers))
    k = rules.tests_per_suite
    replayed = pass_rate(report.replayed)
    nothing = Reward.of(RewardPart("no_evidence", 0.0, 1.0))
    coders: list[Reward] = []
    rewards: list[Reward] = []
    for suite, cases in zip(suites, (suite.cases for suite in report.suites), strict=True):
        n_valid = len(cases)
        validity = max(0.0, min(n_valid / k, 1 - suite.n_invalid / k, 1.0))
        fail_new = sum(case.verdict is not Verdict.PASSED for case in cases[:k]) / k
        adversarial = _adversarial(fail_new, None if replayed is None else 1 - replayed, any_new=n_valid > 0)
        rewards.append(_tester_reward(rules, validity, adversarial, suite.nonprintable_share))
        coders.append(_coder_reward(replayed, n_passed(cases) / n_valid if n_valid else None, nothing))
    return CandidateRewards(_mean_reward(coders), tuple(rewards))


def _fixed(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """The default rewards.

    validity = cases with a right prediction / K. fail_new = failures on such cases / K: a corrected prediction earns
    its tester nothing, while in the release 8 wrong predictions whose cases all fail earn 0.5. `reward.credit` changes
    both (`rules.credit`). A replayed case that was not run is no failure. The coder's mean is over suites with a valid
    case, so invalid suites cost it nothing. Only the first K cases of a suite count, for coder and tester. Cases that
    the statement's examples answer count for the coder only (`pays_examples`).
    """
    if not report.loads:
        return invalid_candidate(report, rules)
    k = rules.tests_per_suite
    fail_replayed = n_failed(report.replayed) / len(report.replayed) if report.replayed else None
    testers = []
    suites = [suite.cases[:k] for suite in report.suites]
    for suite, earned in zip(report.suites, credits_of(suites, fail_replayed, rules), strict=True):
        adversarial = _adversarial(earned.failures, fail_replayed, any_new=earned.validity > 0)
        testers.append(_tester_reward(rules, earned.validity, adversarial, suite.suite.nonprintable_share))
    new = [share for cases in suites if (share := pass_rate(cases)) is not None]
    coder = _coder_reward(pass_rate(report.replayed), fmean(new) if new else None, no_evidence(rules))
    return CandidateRewards(coder, tuple(testers))


def _golden(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """Pass rate on the golden tests (release `acg_gt`, reward.py:924-1039); 0 for testers; all masked where unknown."""
    coder = golden_reward(report, rules)
    return CandidateRewards(coder, (MASKED if coder.masked else Reward.of(),) * len(report.suites))


def _zero_sum(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """Tester = 2 * fail_new - 1 with the fail_new of `fixed`; the coder gets the negative of the testers' mean.

    A case that was not run, because the program used up its time, counts as failed if the program has failed another
    case of the suite, and else as half a failure, which favours neither side. The tester of a suite without a valid
    case gets -1. A candidate that does not load gets `invalid_candidate` (-1 under `zero_sum`), its testers the
    negative.
    """
    if not report.loads:
        lost = rules.reward.invalid_candidate
        tester = Reward.of(RewardPart("invalid_candidate", lost, -1.0))
        return CandidateRewards(Reward.of(RewardPart("invalid_candidate", lost, 1.0)), (tester,) * len(report.suites))
    k = rules.tests_per_suite
    testers = tuple(
        Reward.of(
            RewardPart("fail_new", (n_credited(suite.cases[:k]) + _n_unrun_failures(suite.cases[:k])) / k, 2.0),
            RewardPart("offset", 1.0, -1.0),
        )
        for suite in report.suites
    )
    if not testers:
        return CandidateRewards(no_evidence(rules), ())
    fail_new = fmean(tester.parts[0].value for tester in testers)
    return CandidateRewards(Reward.of(RewardPart("fail_new", fail_new, -2.0), RewardPart("offset", 1.0, 1.0)), testers)


def _n_unrun_failures(cases: tuple[CaseReport, ...]) -> float:
    """Return how many failures the right cases that were not run count as."""
    n_unrun = sum(case.verdict is Verdict.NOT_RUN for case in right_cases(cases))
    return n_unrun * (1.0 if n_failed(cases) else 0.5)


def _mean_reward(rewards: list[Reward]) -> Reward:
    """Mean over suites; a single reward keeps its parts."""
    if len(rewards) == 1:
        return rewards[0]
    return Reward.of(RewardPart("mean_over_suites", fmean(reward.value for reward in rewards) if rewards else 0.0, 1.0))


_SCHEMES: dict[str, Callable[[CandidateReport, Ruleset], CandidateRewards]] = {
    RewardScheme.PAPER: _paper,
    RewardScheme.RELEASE: _release,
    RewardScheme.FIXED: _fixed,
    RewardScheme.GOLDEN: _golden,
    RewardScheme.ZERO_SUM: _zero_sum,
}


@dataclass(frozen=True, slots=True)
class Credit:
    """What a suite is paid for, both in [0, 1]."""

    validity: float
    failures: float


def credits_of(
    suites: Sequence[tuple[CaseReport, ...]], fail_replayed: float | None, rules: Ruleset
) -> tuple[Credit, ...]:
    """Return what each suite against one candidate is paid for under `fixed`, as `reward.credit` decides.

    Of the first K cases of a suite, without those that the statement's examples answer (`pays_examples`):

    - validity v = (right predictions + forgiven wrong ones) / K, and its level l = min(v / floor, 1)
    - failures f = failed cases, of right and forgiven ones or (`wrong_answers`) of all, at most `most_kills`, / K
    - the suite earns validity l and failures f * l^power * (1 - common), or no failures if v is below the gate

    By default l = v, and f counts right cases of K: the rewards of `fixed`. In any case, a right prediction earns at
    least as much as a wrong one for the same call.

    Args:
        suites: (M,) the first K cases of each.
        fail_replayed: share of replayed cases that the candidate fails, in [0, 1]; None without replays.
        rules: K and `reward.credit`.
    """
    paid = [rewarded_cases(cases, rules) for cases in suites]
    return tuple(_credit(cases, _common(paid, n, fail_replayed, rules), rules) for n, cases in enumerate(paid))


def _credit(cases: tuple[CaseReport, ...], common: float, rules: Ruleset) -> Credit:
    credit, k = rules.reward.credit, rules.tests_per_suite
    right, killing = n_right(cases), n_credited(cases)
    forgiven = min(credit.forgiven, len(cases) - right, right)
    wrong_killing = n_failed(cases) - killing
    counted = killing + (wrong_killing if credit.wrong_answers else min(forgiven, wrong_killing))
    validity = (right + forgiven) / k
    level = min(validity / credit.floor, 1.0)
    if validity < credit.gate:
        return Credit(level, 0.0)
    failures = min(counted, credit.most_kills or k) / k
    return Credit(level, failures * level**credit.power * (1 - common))


def _common(
    suites: Sequence[tuple[CaseReport, ...]], number: int, fail_replayed: float | None, rules: Ruleset
) -> float:
    """Return how often the candidate fails anyway, in [0, 1], as far as suite `number` does not decide it."""
    match rules.reward.credit.common_kills:
        case CommonKills.IGNORED:
            return 0.0
        case CommonKills.BOOK:
            return fail_replayed or 0.0
        case CommonKills.GROUP:
            others = tuple(case for n, cases in enumerate(suites) for case in cases if n != number)
            return n_failed(others) / len(others) if others else 0.0
