"""Sample rollouts of a step, as a run folder. Each candidate with each of its suites is one episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from codea1_agents.train.grpo.rollout import Reply, RolledTree
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.facts.verdicts import CandidateReport, ProblemReport
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems import Problem, ProblemSet
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Ruleset
from codea1_env.runs.config import RunConfig, to_toml
from codea1_env.runs.records import EpisodeRecord, RoundRecord, to_line
from codea1_env.sandbox import Limits


def write_samples(
    path: Path, trees: Sequence[RolledTree], problems: ProblemSet, settings: TrainingSettings, facts: Mapping[str, Any]
) -> None:
    """Write rollouts to a run folder.

    Args:
        path: an empty folder.
        trees: the rollouts.
        problems: what the run trains on.
        settings: the run's settings.
        facts: in its `run.json`.
    """
    duels = list(duels_of(trees, problems, settings.rules))
    config = RunConfig(
        problems=settings.problems,
        problems_digest=facts["problems_digest"],
        n_problems=len(problems),
        coder=settings.player_of("coder"),
        tester=settings.player_of("tester"),
        episodes=max(1, len(duels)),
        rounds=settings.rollout.turns,
        seed=settings.seed,
        tester_view=settings.tester_view,  # type: ignore[arg-type]  # checked before
        sandbox=settings.sandbox,
        limits=settings.limits or Limits(),
        rules=settings.rules,
        versions=facts["versions"],
        git=facts["git"],
    )
    (path / "config.toml").write_text(to_toml(config), "utf-8")
    (path / "episodes.jsonl").write_bytes(b"".join(map(to_line, duels)))


def duels_of(trees: Sequence[RolledTree], problems: ProblemSet, rules: Ruleset) -> Iterator[EpisodeRecord]:
    """Yield one episode per candidate and suite, and one per candidate without suites; none for masked rollouts.

    With several turns, an episode has the rounds of a trajectory: the earlier ones with the suite that became the
    feedback, the last one with each suite in turn. Rewards are those of the single episode. In training, the reward of
    a candidate covers all its suites.
    """
    duels = (duel for tree in trees for duel in _duels(tree, problems.by_id(tree.task.problem_id), rules))
    for number, duel in enumerate(duels):
        yield duel.model_copy(update={"episode": number})


def _duels(tree: RolledTree, problem: Problem, rules: Ruleset) -> Iterator[EpisodeRecord]:
    earlier: dict[int, tuple[RoundRecord, ...]] = {}
    """By number of a candidate, the rounds of its trajectory so far."""
    ended: dict[int, list[EpisodeRecord]] = {}
    for turn, following in zip_longest(tree.turns, tree.later):
        goes_on = {} if following is None else {each.number: each.suite for each in following.judged.tree.trajectories}
        report = turn.judged.report
        for n, number in enumerate(turn.judged.tree.numbers if report is not None else ()):
            rounds = list(_rounds(turn, n, problem, rules))
            if number in goes_on:
                earlier[number] = (*earlier.get(number, ()), rounds[goes_on[number]])
                continue
            before = earlier.pop(number, ())
            ended[number] = [
                EpisodeRecord(
                    judge_version=JUDGE_VERSION,
                    episode=0,
                    episode_id=f"{tree.task.number:08x}-{number}-{m}",
                    problem_id=problem.id,
                    seed=tree.task.number,
                    rounds=(*(before if rounds else before[:-1]), last),
                )
                for m, last in enumerate(rounds or before[-1:])
            ]
    for number in sorted(ended):
        yield from ended[number]


def _rounds(turn: RolledTree, n: int, problem: Problem, rules: Ruleset) -> Iterator[RoundRecord]:
    """Yield the round of a candidate with each of its suites, or without any; none if its reply is missing."""
    assert turn.judged.report is not None
    reply, group = turn.candidates[n], turn.suites[n if len(turn.suites) > 1 else 0] if turn.suites else ()
    for alone, suite in () if reply.unavailable else _alone(turn.judged.report.candidates[n], group):
        judged = JudgedRound(
            problem=problem,
            episode_id="",  # the episode has it
            round=turn.judged.tree.round,
            coder_reply=reply.text,
            tester_reply=suite,
            report=ProblemReport(problem.id, (alone,)),
            rewards=score(alone, rules),
            book=None,
        )
        yield RoundRecord.of(judged)


def _alone(report: CandidateReport, replies: Sequence[Reply]) -> Iterator[tuple[CandidateReport, str | None]]:
    """Yield a candidate's report with one suite at a time, and the reply of that suite."""
    if not report.suites:
        yield report, None
    for suite, reply in zip(report.suites, replies, strict=True):
        if not reply.unavailable:
            yield replace(report, suites=(suite,)), reply.text
