"""What `codea1 rescore` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from codea1_agents.cli.console import Page, estimate_cells, new_table, number
from codea1_agents.cli.playing import varied
from codea1_agents.cli.rescore import RescoreOptions
from codea1_agents.cli.rescoring_sweep import is_training_run, run_sweep, sampled_rules
from codea1_agents.lab.rescore import Comparison, RoleComparison, compare, rescored, with_rewards_of
from codea1_agents.play.summary import estimate_to_json, summarise
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.runs.folder import RunFolder, ends_half_written, iter_episodes, stored_config
from codea1_env.runs.records import EpisodeRecord

_MAX_MOVED = 5
_COMPARED = ("before", "after", "difference")


def run_rescore(asked: RescoreOptions) -> None:
    """Compare a run's rewards with those under other rules, and write the rescored run if that was asked for.

    Raises:
        UserError: no run there, a number out of range, or the new folder cannot be written.
    """
    page, run, out = Page(as_json=asked.as_json), asked.run, asked.out
    if asked.sweep and out is not None:
        raise UserError("--out writes one rescored run: it does not go with --sweep")
    if asked.picture is not None and not asked.sweep:
        raise UserError("--picture draws a sweep: name one with --sweep")
    if is_training_run(run) and not asked.sweep:
        raise UserError(
            f"{run} is a training run: use --sweep, or name one of its samples, e.g. {run}/samples/step-0001"
        )
    played = sampled_rules(run) if is_training_run(run) else stored_config(run).rules
    chosen = played if asked.rules is None else with_rewards_of(played, preset(asked.rules))
    chosen = varied(chosen, alpha=asked.alpha, tests_per_suite=asked.tests_per_suite)
    if asked.sweep:
        run_sweep(asked, asked.sweep, played=played, chosen=chosen)
        return
    config = stored_config(run)
    reading = _Reading(run, config.rules, chosen)
    with ExitStack() as stack:
        if out is not None:
            target = stack.enter_context(RunFolder.create(out, config.model_copy(update={"rules": chosen})))
            comparison = compare(_written(reading.pairs(), target), seed=config.seed)
            target.rebuild_book()
            summary = summarise(iter_episodes(out), tests_per_suite=chosen.tests_per_suite, seed=config.seed)
            judges = sorted(reading.judge_versions)
            target.write_metrics(
                {"summary": summary.to_json(), "judge_version": judges[0] if judges else JUDGE_VERSION}
            )
        else:
            comparison = compare(reading.pairs(), seed=config.seed)
    if ends_half_written(run):
        page.note("the last episode is only half written and left out; `codea1 play --resume` plays it again")
    if reading.n_not_following:
        page.note(
            f"{reading.n_not_following} recorded episodes do not follow from the run's own rules:"
            " it was played with another version, or edited"
        )
    for version in sorted(reading.judge_versions - {JUDGE_VERSION}):
        page.note(f"version {version} of the judge has judged the run, and this is {JUDGE_VERSION}; its verdicts stay")
    _show(page, comparison, config.rules, chosen)
    page.finish({"judge_versions": sorted(reading.judge_versions), **_to_json(run, out, comparison, chosen)})


class _Reading:
    """The episodes of a run, each with its rescored twin; counts those whose own rewards do not follow."""

    def __init__(self, run: Path, played: Ruleset, chosen: Ruleset) -> None:
        self._run = run
        self._played = played
        self._chosen = chosen
        self.n_not_following = 0
        self.judge_versions: set[int] = set()

    def pairs(self) -> Iterator[tuple[EpisodeRecord, EpisodeRecord]]:
        for record in iter_episodes(self._run):
            self.judge_versions.add(record.judge_version)
            self.n_not_following += rescored(record, self._played) != record
            yield record, rescored(record, self._chosen)


def _written(
    pairs: Iterator[tuple[EpisodeRecord, EpisodeRecord]], target: RunFolder
) -> Iterator[tuple[EpisodeRecord, EpisodeRecord]]:
    for before, after in pairs:
        target.append(after)
        yield before, after


def _show(page: Page, comparison: Comparison, played: Ruleset, chosen: Ruleset) -> None:
    page.show(Text(f"{_named(played)}  ->  {_named(chosen)}", style="bold"))
    rows = [
        (role if label == "before" else "", label, *estimate_cells(getattr(found, label)))
        for role, found in _roles(comparison)
        for label in _COMPARED
    ]
    page.show(new_table(("reward", "", "mean", "95 % interval", "rounds"), rows, right=(2, 4)))
    for role, found in _roles(comparison):
        page.say(_order_sentence(role, found))
    moved = [(role, each) for role, found in _roles(comparison) for each in found.moved[:_MAX_MOVED]]
    if moved:
        cells = [
            (role, m.problem_id, f"{m.rank_before} -> {m.rank_after}", f"{number(m.before)} -> {number(m.after)}")
            for role, m in moved
        ]
        page.show(new_table(("moved most", "problem", "rank", "reward"), cells, whole=(1,)))


def _roles(comparison: Comparison) -> tuple[tuple[str, RoleComparison], ...]:
    return ("coder", comparison.coder), ("tester", comparison.tester)


def _named(rules: Ruleset) -> str:
    return f"{rules.name} (alpha {rules.reward.alpha:g}, {rules.tests_per_suite} tests per suite)"


def _order_sentence(role: str, found: RoleComparison) -> str:
    order = found.order
    if not (order.n_reversed or order.n_merged or order.n_split):
        return f"{role}: the order of the rounds stays"
    return (
        f"{role}: of {order.n_pairs} pairs of rounds {order.n_reversed} change their order,"
        f" {order.n_merged} become equal, {order.n_split} cease to be equal"
    )


def _to_json(run: Path, out: Path | None, comparison: Comparison, chosen: Ruleset) -> dict[str, Any]:
    return {
        "run": str(run),
        "out": None if out is None else str(out),
        "rules": asdict(chosen),
        **{role: _role_to_json(found) for role, found in _roles(comparison)},
    }


def _role_to_json(found: RoleComparison) -> dict[str, Any]:
    return {
        **{name: estimate_to_json(getattr(found, name)) for name in _COMPARED},
        "order": asdict(found.order),
        "moved": [asdict(each) for each in found.moved],
    }
