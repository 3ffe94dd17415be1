"""Reads a run of `codea1 play` for a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from codea1_agents.play.summary import LABELS, Summary, Tally
from codea1_agents.statistics import Estimate
from codea1_env.errors import CodeA1Error
from codea1_env.plugins import from_record
from codea1_env.problems import load_problems
from codea1_env.problems.problem import Problem
from codea1_env.records.faults import read_file, read_json
from codea1_env.runs.config import RunConfig, flat, problems_digest
from codea1_env.runs.folder import ends_half_written, iter_episodes, stored_config
from codea1_env.runs.records import EpisodeRecord, RoundRecord
from codea1_lab.report.conclusion import MUCH, of_games
from codea1_lab.report.curves import GameCharts
from codea1_lab.report.material import (
    BAR,
    Figure,
    Group,
    Panel,
    Point,
    Remark,
    RunMaterial,
    Series,
    judge_remark,
    judge_text,
)
from codea1_lab.report.palette import tone_of

_TILES = {"coder_reward": "coder", "tester_reward": "tester", "right_kill_rate": "tester"}  # to tones
_MOST_NAMED = 3  # masked rounds


def game_run(path: Path, name: str) -> RunMaterial:
    """Read a run folder.

    Raises:
        BrokenInput: no run in this folder, or a corrupted line.
    """
    config = stored_config(path)
    tally = Tally(tests_per_suite=config.rules.tests_per_suite)
    charts = GameCharts()
    judges, masked = set(), []
    for record in iter_episodes(path):
        judges.add(record.judge_version)
        tally.add(record)
        masked += [_why_masked(record, played) for played in record.rounds if played.rewards.coder.value is None]
        charts.add(_group(record))
    summary = tally.summary(seed=config.seed)
    problems, missing = known_problems(config)
    metrics = _metrics(path)
    remarks = (*judge_remark(judges), *_remarks(summary, masked), *missing, *_unfinished_remarks(path, config, summary))
    return RunMaterial(
        name=name,
        kind="games",
        axis="episode",
        facts=(*_facts(config, summary, metrics), ("judge", judge_text(judges))),
        conclusion=of_games(summary, config.coder, config.tester),
        figures=_figures(summary),
        panels=(*charts.panels(tally.values), *_time_panel(metrics)),
        groups=lambda: map(_group, iter_episodes(path)),
        remarks=remarks,
        settings=flat(config.model_dump(mode="json")),
        tests=summary.tests,
        book=charts.sizes,
        problems=problems,
    )


def known_problems(config: RunConfig) -> tuple[tuple[Problem, ...], tuple[Remark, ...]]:
    """Return the problems of a run if their source exists and has not changed, otherwise a remark."""
    try:
        with from_record():
            problems = load_problems(config.problems, limit=config.limit)
    except (CodeA1Error, OSError) as error:
        return (), (Remark(f"The problems' texts are missing: {error}."),)
    if problems_digest(problems) != config.problems_digest:
        return (), (Remark(f"The problems' texts are missing: {config.problems} has changed since the run."),)
    return tuple(problems), ()


def _group(record: EpisodeRecord) -> Group:
    several = len(record.rounds) > 1
    members = {f"round {played.round + 1}" if several else "": played for played in record.rounds}
    return Group(record.episode, record.episode_id, record.problem_id, members)


def _metrics(path: Path) -> dict[str, Any]:
    """Return the content of `metrics.json`, which a run writes at its end; empty if it is unfinished."""
    try:
        metrics = read_json("", read_file(path / "metrics.json"))
    except (OSError, ValueError):
        return {}
    return metrics if isinstance(metrics, dict) else {}


def _facts(config: RunConfig, summary: Summary, metrics: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    rules = config.rules
    sandbox = metrics.get("sandbox")
    promise = sandbox.get("guarantee") if isinstance(sandbox, dict) else None
    return (
        ("coder", config.coder),
        ("tester", config.tester),
        ("problems", f"{config.problems} ({summary.n_problems} played)"),
        ("rules", f"{rules.name}, alpha {rules.reward.alpha:g}, {rules.tests_per_suite} tests per suite"),
        ("episodes", f"{summary.n_episodes:,}{f', {config.rounds} rounds each' if config.rounds > 1 else ''}"),
        ("tester sees", config.tester_view.replace("_", " ")),
        ("seed", str(config.seed)),
        ("sandbox", f"{config.sandbox}{f' ({promise})' if isinstance(promise, str) else ''}"),
        ("version", config.versions.get("codea1-env", "unknown")),
    )


def _figures(summary: Summary) -> tuple[Figure, ...]:
    figures = []
    for name in sorted(LABELS, key=lambda name: name not in _TILES):
        estimate: Estimate = getattr(summary, name)
        if not isnan(estimate.mean):
            figures.append(Figure(LABELS[name].strip(), estimate, _TILES.get(name, "")))
    return (*figures, Figure.plain("cases in the Mistake Book", summary.book_size, tone=tone_of("cases", 0)))


def _why_masked(record: EpisodeRecord, played: RoundRecord) -> str:
    why = record.to_problem_report(played).candidates[0].internal_error or "the rules mask it for lack of evidence"
    return f"{record.problem_id} ({why})"


def _remarks(summary: Summary, masked: Sequence[str]) -> Iterator[Remark]:
    n, named = summary.n_rounds, list(dict.fromkeys(masked))
    if masked:
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        problems = f"{', '.join(named[:_MOST_NAMED])}{more}"
        yield Remark(
            f"{len(masked)} of {n} rounds {'is' if len(masked) == 1 else 'are'} masked, and in no figure: {problems}.",
            True,
        )
    if summary.zero_evidence.mean >= MUCH:
        yield Remark(f"For {summary.zero_evidence.mean:.0%} of the valid programs no case is evidence.", True)
    if summary.n_unasked_rounds:
        yield Remark(f"{summary.n_unasked_rounds} of {n} rounds had no tester's turn: the program did not load.")


def _unfinished_remarks(path: Path, config: RunConfig, summary: Summary) -> Iterator[Remark]:
    if ends_half_written(path):
        yield Remark("The last episode is incomplete and left out.")
    if summary.n_episodes < config.episodes:
        yield Remark(f"The run is unfinished: {summary.n_episodes} of {config.episodes} episodes are recorded.")


def _time_panel(metrics: dict[str, Any]) -> Iterator[Panel]:
    spent = metrics.get("time")
    if not isinstance(spent, dict):
        return
    named = (("judging", "judging_s"), ("agents", "agents_s"), ("the rest", "rest_s"))
    known = [(label, spent[key]) for label, key in named if isinstance(spent.get(key), int | float)]
    series = tuple(Series(label, (Point(0.0, float(seconds)),), tone_of(label, 0)) for label, seconds in known)
    if series:
        yield Panel(
            "time",
            "Where the time went",
            "Seconds of the whole run.",
            series,
            "run",
            0.0,
            stacked=True,
            bar_width=BAR,
            y_label="seconds",
        )
