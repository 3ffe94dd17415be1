"""The figures of an iteration: of its trees, and of its learners. docs/figures.md describes them."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from ray.rllib.utils.metrics import EPISODE_RETURN_MAX, EPISODE_RETURN_MEAN, EPISODE_RETURN_MIN, NUM_EPISODES

from codea1_agents.train.grpo.batch import StoredResponse
from codea1_agents.train.grpo.rollout import RolledTree
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import CandidateReport, CaseReport, SuiteReport, Verdict
from codea1_env.rounds.trajectories import solves
from codea1_env.rules.funnel import count_tests, funnel
from codea1_env.rules.mistake_book import changes
from codea1_env.rules.rewards import Reward, n_right, with_decided

_OF_LEARNERS = (
    "loss",
    "policy_loss",
    "kl",
    "entropy",
    "clip_share",
    "dual_clip_share",
    "ratio_gap",
    "sampler_gap",
    "sampler_gap_max",
    "sampler_ess",
    "sampler_truncated_share",
    "grad_norm",
    "learning_rate",
)

_OF_LATER_TURNS = frozenset(
    (
        "coder_reward",
        "tester_reward",
        "masked_share",
        "coder_tokens",
        "coder_cut_share",
        "valid_candidates",
        "pass_new",
        "suite_validity",
        "kill_rate",
        "right_kill_rate",
    )
)


@dataclass(frozen=True, slots=True)
class StepFacts:
    """Facts about one iteration."""

    figures: Mapping[str, float] = field(default_factory=dict)
    """Means over its trees."""
    n_tokens: int = 0
    """Tokens of all responses."""

    n_tasks_lost: int = 0
    skipped: Mapping[str, str] = field(default_factory=dict)
    """By problem id, why no player of a role could reply. Such problems train nothing."""
    n_trained: Mapping[str, int] = field(default_factory=dict)
    """Responses that train, by module."""
    staleness: int = 0
    """Iterations of learning since the weights that sampled were sent."""
    book_size: int = 0
    book_added: int = 0
    book_removed: int = 0
    sync_s: float = 0.0
    """Seconds until all runners have the weights."""
    rollout_s: float = 0.0
    """Seconds of all rollouts. The next two are parts of it that overlap; each is that of the slowest runner."""
    generate_s: float = 0.0
    judge_s: float = 0.0
    learn_s: float = 0.0

    def numbers(self, learners: Mapping[str, Any]) -> dict[str, float]:
        """Return the figures of the iteration, without those that have no value.

        They depend neither on a clock nor on the number of runners, and on the number of learners by rounding only.

        Args:
            learners: RLlib's results of the learners, by module.
        """
        figures = dict(self.figures)
        for module in sorted(self.n_trained):
            results = learners.get(module, {})
            figures |= {f"{module}_{name}": float(results[name]) for name in _OF_LEARNERS if name in results}
            figures[f"{module}_trained"] = float(self.n_trained[module])
        figures |= {"book_size": self.book_size, "book_added": self.book_added, "book_removed": self.book_removed}
        figures |= {"tasks_lost": self.n_tasks_lost, "staleness": self.staleness, "tokens": self.n_tokens}
        return {name: float(value) for name, value in figures.items() if math.isfinite(value)}

    def times(self, step_s: float) -> dict[str, float]:
        """Return the seconds of a step by part, and the sampled tokens per second of the whole step."""
        parts = ("sync_s", "rollout_s", "generate_s", "judge_s", "learn_s")
        own = {name: getattr(self, name) for name in parts}
        return {"step_s": step_s, **own, "tokens_per_s": self.n_tokens / max(step_s, 1e-9)}


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """What the driver reads of a tree, which stays on the node of its runner; computed there."""

    number: int
    """Of its task."""
    problem_id: str
    figures: Mapping[str, float]
    """As of `tree_figures`."""
    episode_return: float
    """nan if all rewards are masked."""
    n_tokens: int
    """Tokens of all responses."""
    env_steps: int
    n_responses: int
    skipped: str
    """Why no player of a role could reply; empty otherwise."""
    trained: tuple[StoredResponse, ...]
    book: bytes | None
    """How each of its turns changes the Mistake Book (`BookChange`s), pickled; None: none counts as a round."""
    stored: Any = None
    """Ray's reference to the tree; the tree itself in a checkpoint, and if runner and learner are in one process."""

    @classmethod
    def of(
        cls, tree: RolledTree, settings: TrainingSettings, store: Callable[[RolledTree], Any] | None = None
    ) -> TreeFacts:
        """Return the facts about a tree.

        Args:
            tree: of the facts.
            settings: of the training.
            store: takes the trimmed tree and returns what is `stored`; None: nothing is.
        """
        rules, turns = settings.rules, tree.turns
        roles = tree.candidates, tree.all_suites
        replies = [reply for turn in turns for reply in (*turn.candidates, *turn.all_suites)]
        responses = [reply.response for reply in replies if reply.response is not None]
        reports = [report for turn in turns if (report := turn.judged.book_report) is not None]
        of_book = [changes(report, rules.book) for report in reports]
        number, trained = tree.task.number, tuple(tree.trained_responses(settings))
        return cls(
            number,
            tree.task.problem_id,
            tree_figures(tree, rules.tests_per_suite),
            tree.get_return(),
            sum(map(attrgetter("n_tokens"), responses)),
            tree.env_steps(),
            tree.agent_steps(),
            next(
                (role[0].unavailable for role in roles[::-1] if role and all(reply.unavailable for reply in role)), ""
            ),
            tuple(StoredResponse.of(number, place, response) for place, response in enumerate(trained)),
            pickle.dumps(of_book, pickle.HIGHEST_PROTOCOL) if reports else None,
            None if store is None else store(tree.trim(trained)),
        )


def mean_figures(trees: Sequence[TreeFacts]) -> dict[str, float]:
    """Return the mean of each figure over the trees that have it; their order does not change a bit of it.

    Counts of tests, whose names begin with `tests_`, are sums.
    """
    known: dict[str, list[float]] = {}
    for name, value in (figure for tree in trees for figure in tree.figures.items()):
        known.setdefault(name, []).append(value)
    return {
        name: math.fsum(values) / (1 if name.startswith("tests_") else len(values))
        for name, values in sorted(known.items())
    }


def episode_figures(trees: Sequence[TreeFacts]) -> dict[str, float]:
    """Return RLlib's figures of episodes; masked rewards count in no return."""
    returns = [tree.episode_return for tree in trees if not math.isnan(tree.episode_return)]
    figures = {NUM_EPISODES: float(len(trees))}
    if returns:
        figures |= {EPISODE_RETURN_MIN: min(returns), EPISODE_RETURN_MAX: max(returns)}
        figures[EPISODE_RETURN_MEAN] = math.fsum(returns) / len(returns)
    return figures


def tree_figures(tree: RolledTree, tests_per_suite: int) -> dict[str, float]:
    """Return the figures of one tree, without those that have no value.

    Rewards and their parts are means over rollouts that are not masked. Shares lie in [0, 1], lengths are in tokens.

    Args:
        tree: of the figures.
        tests_per_suite: test cases requested per suite (K).
    """
    figures = [
        (name if number == 1 else f"{name}_turn_{number}", value)
        for number, turn in enumerate(tree.turns, start=1)
        for name, value in _figures(turn, tests_per_suite)
        if number == 1 or name in _OF_LATER_TURNS
    ]
    for before, turn in zip(tree.turns, tree.later, strict=False):
        figures += _repairs(before, turn)
    return {name: float(value) for name, value in figures if not math.isnan(value)}


def _repairs(before: RolledTree, turn: RolledTree) -> Iterator[tuple[str, float]]:
    """Yield the figures of a later turn that compare it with the turn before."""
    number = turn.judged.tree.round + 1
    yield f"playing_turn_{number}", len(turn.candidates) / len(before.candidates)
    if turn.judged.report is None:
        return
    rewards = dict(zip(before.judged.tree.numbers, before.coder_rewards, strict=True))
    changes_of = turn.coder_rewards - [rewards[number] for number in turn.judged.tree.numbers]
    yield f"fixed_turn_{number}", _mean(map(solves, turn.judged.report.candidates))
    yield f"broke_turn_{number}", _mean(np.where(np.isnan(changes_of), np.nan, changes_of < 0))


def _figures(tree: RolledTree, tests_per_suite: int) -> Iterator[tuple[str, float]]:
    yield "coder_reward", _mean(tree.coder_rewards.ravel())
    yield "tester_reward", _mean(tree.tester_rewards.ravel())
    yield "coder_spread_share", float(tree.coder.values.any())
    if tree.tester.is_trained.size:
        yield "tester_spread_share", _mean(tree.tester.values.any(axis=-1).ravel())
    yield "masked_share", _mean(np.isnan(tree.coder_rewards))
    for role, answers in (("coder", tree.candidates), ("tester", tree.all_suites)):
        responses = [answer.response for answer in answers if answer.response is not None]
        yield f"{role}_tokens", _mean(map(attrgetter("n_tokens"), responses))
        yield f"{role}_cut_share", _mean(each.is_cut for each in responses)
    if tree.judged.report is None:
        return
    candidates = tree.judged.report.candidates
    yield "valid_candidates", _mean(map(attrgetter("loads"), candidates))
    yield (
        "untested_share",
        _mean(
            not (with_decided(each).replayed or any(suite.cases for suite in each.suites))
            for each in candidates
            if each.loads
        ),
    )
    yield "pass_new", _mean(_passes(case for each in candidates for suite in each.suites for case in suite.cases))
    yield "pass_replayed", _mean(_passes(case for each in candidates for case in each.replayed))
    yield from _parts(reward for each in tree.judged.rewards for reward in each.testers)
    for name, value in _parts(each.coder for each in tree.judged.rewards):
        yield f"coder_{name}", value
    written = candidates[:1] if tree.judged.report.shares_suites else candidates  # each suite once
    right = [n_right(suite.cases) for each in written for suite in each.suites]
    yield "suite_validity", _mean(min(1.0, n / tests_per_suite) for n in right)
    met = [suite for each in filter(attrgetter("loads"), candidates) for suite in each.suites]
    yield "right_kill_rate", _mean(map(attrgetter("beats_rightly"), met))
    yield "kill_rate", _mean(map(attrgetter("beats"), met))
    yield from _judging(candidates)
    yield from _tests(suite for each in written for suite in each.suites if not suite.suite.internal_error)
    suites = [suite.suite for each in written for suite in each.suites]
    n_vacuous = sum(each.reason is RejectionReason.VACUOUS for suite in suites for each in suite.rejections)
    n_tests = n_vacuous + sum(len(suite.cases) for suite in suites)
    yield "vacuous_share", n_vacuous / n_tests if n_tests else math.nan
    yield "golden_pass_rate", _mean(each.golden_pass_rate for each in candidates if each.golden_pass_rate is not None)
    texts = [suite.cases for suite in suites]
    yield "distinct_suites", len(set(texts)) / len(texts) if texts else math.nan
    yield "distinct_programs", len({each.candidate.program for each in candidates}) / len(candidates)


def _judging(candidates: Sequence[CandidateReport]) -> Iterator[tuple[str, float]]:
    """Yield how often a verdict came from more than the first comparison of values, per case of a valid program."""
    valid = list(filter(attrgetter("loads"), candidates))
    n_cases = sum(len(each.replayed) + sum(len(suite.cases) for suite in each.suites) for each in valid)
    n_cases += sum(each.rechecks.undecided for each in valid)
    if n_cases:
        yield "equal_answers_share", sum(each.rechecks.equal_answers for each in valid) / n_cases
        yield "undecided_rate", sum(each.rechecks.undecided for each in valid) / n_cases
        yield "rerun_share", sum(each.rechecks.rerun for each in valid) / n_cases


def _tests(suites: Iterable[SuiteReport]) -> Iterator[tuple[str, float]]:
    """Yield the number of tests at each stage of the funnel, and of those that are lost by reason."""
    counts: Counter[str] = Counter()
    for each in suites:
        cases = ((case.case.prediction_right, case.case.is_example, case.verdict) for case in each.cases)
        counts += count_tests(cases, (rejection.reason for rejection in each.suite.rejections))
    for stage in funnel(counts):
        yield f"tests_{stage.name.replace(' ', '_')}", stage.n
        yield from ((f"tests_lost_{reason}", n) for reason, n in stage.lost.items())


def _parts(rewards: Iterable[Reward]) -> Iterator[tuple[str, float]]:
    """Yield the mean of each part of the rewards."""
    values: dict[str, list[float]] = {}
    for part in (part for reward in rewards for part in reward.parts):
        values.setdefault(part.name, []).append(part.value)
    yield from ((name, _mean(values[name])) for name in sorted(values))


def _passes(cases: Iterable[CaseReport]) -> list[bool]:
    return [case.verdict is Verdict.PASSED for case in cases if case.verdict.is_evidence]


def _mean(numbers: Iterable[float] | np.ndarray) -> float:
    known = [float(number) for number in numbers if not math.isnan(float(number))]
    return sum(known) / len(known) if known else math.nan
