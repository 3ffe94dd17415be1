"""Sample rollouts of a step, as a run folder. Each candidate with each of its suites is one episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codea1_agents.train.grpo.rollout import Reply, RolledTree
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.facts.verdicts import CandidateReport, ProblemReport
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems import ProblemSet
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
        rounds=1,
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

    Rewards are those of the single episode. In training, the reward of a candidate covers all its suites.
    """
    number = 0
    for tree in trees:
        problem = problems.by_id(tree.task.problem_id)
        for n, report in enumerate(tree.judged.report.candidates if tree.judged.report is not None else ()):
            if tree.candidates[n].unavailable:
                continue
            group = tree.suites[n if len(tree.suites) > 1 else 0] if tree.suites else ()
            for m, (alone, reply) in enumerate(_alone(report, group)):
                judged = JudgedRound(
                    problem=problem,
                    episode_id=f"{tree.task.number:08x}-{n}-{m}",
                    round=0,
                    coder_reply=tree.candidates[n].text,
                    tester_reply=reply,
                    report=ProblemReport(problem.id, (alone,)),
                    rewards=score(alone, rules),
                    book=None,
                )
                yield EpisodeRecord(
                    judge_version=JUDGE_VERSION,
                    episode=number,
                    episode_id=judged.episode_id,
                    problem_id=problem.id,
                    seed=tree.task.number,
                    rounds=(RoundRecord.of(judged),),
                )
                number += 1


def _alone(report: CandidateReport, replies: Sequence[Reply]) -> Iterator[tuple[CandidateReport, str | None]]:
    """Yield a candidate's report with one suite at a time, and the reply of that suite."""
    if not report.suites:
        yield report, None
    for suite, reply in zip(report.suites, replies, strict=True):
        if not reply.unavailable:
            yield replace(report, suites=(suite,)), reply.text
