"""`codea1 rescore`: a recorded run under other rules; with `--sweep`, under every combination of some."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.text import Text
from typer import Argument, Option

from codea1_agents.cli.console import Page, estimate_cells, new_table, number
from codea1_agents.cli.documents import run_problems_document
from codea1_agents.cli.options import Options, adjusted_rules, n_tests, output, rules_preset
from codea1_agents.play.summary import summarise
from codea1_agents.statistics import estimate_document
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.runs.folder import RunFolder, ends_half_written, iter_episodes, stored_config
from codea1_env.runs.records import EpisodeRecord
from codea1_lab.cli.rescore_sweep import is_training_run, run_sweep, sampled_rules
from codea1_lab.rescore import Comparison, RoleComparison, compare, rescored, with_rewards_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreOptions(Options):
    """Score a recorded run by other rules, without running any program.

    The recorded verdicts stay: rules that read replies, validate suites or compare values cannot change.

    \b
    Example:
      codea1 rescore runs/20260304-050607 --alpha 0.3
      codea1 rescore runs/20260304-050607 --sweep alpha=0,.25,.5,.75,1
    """

    run: Annotated[Path, Argument(help="Run folder of codea1 play; with --sweep also of codea1 train.")]
    alpha: Annotated[
        float | None,
        Option("--alpha", min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the run's"),
    ] = None
    rules: Annotated[str | None, rules_preset("Rules preset with the reward formulas.", show_default="the run's")] = (
        None
    )
    tests: Annotated[int | None, n_tests("Denominator K of the tester's reward.", show_default="the run's")] = None
    out: Annotated[Path | None, output("Also write the run with its new rewards into this new folder.")] = None
    sweep: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE,VALUE",
            help="Compare several settings of alpha, rules, tests (per suite) or replay (share of replayed cases that"
            " count); may be repeated to compare every combination.",
            show_default=False,
        ),
    ] = None
    picture: Annotated[Path | None, Option(help="With --sweep of one number: draw the result into this SVG file.")] = (
        None
    )


_MAX_MOVED = 5
_COMPARED = ("before", "after", "difference")


def run_rescore(options: RescoreOptions) -> None:
    """Compare a run's rewards with those under other rules; with `--out`, write the rescored run.

    Raises:
        UserError: there is no run, a number is out of range, or the new folder cannot be written.
    """
    page, run, out = Page(as_json=options.as_json), options.run, options.out
    if options.sweep and out is not None:
        raise UserError("--out writes one rescored run: it cannot be combined with --sweep")
    if options.picture is not None and not options.sweep:
        raise UserError("--picture draws a sweep: name one with --sweep")
    if is_training_run(run) and not options.sweep:
        raise UserError(
            f"{run} is a training run: use --sweep, or name one of its samples, e.g. {run}/samples/step-0001"
        )
    played = sampled_rules(run) if is_training_run(run) else stored_config(run).rules
    chosen = played if options.rules is None else with_rewards_of(played, preset(options.rules))
    chosen = adjusted_rules(chosen, alpha=options.alpha, tests_per_suite=options.tests)
    if options.sweep:
        run_sweep(page, run, options.sweep, options.picture, played=played, chosen=chosen)
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
        page.note("the last episode is half written and was left out; `codea1 play --resume` plays it again")
    if reading.n_inconsistent:
        page.note(
            f"{reading.n_inconsistent} recorded episodes do not have the rewards of the run's own rules:"
            " the run was played with another version, or edited"
        )
    for version in sorted(reading.judge_versions - {JUDGE_VERSION}):
        page.note(f"version {version} of the judge judged the run; this is version {JUDGE_VERSION}. The verdicts stay")
    _show(page, comparison, config.rules, chosen)
    page.finish(
        problems=run_problems_document(config),
        seed=config.seed,
        judge_versions=sorted(reading.judge_versions),
        **_to_json(run, out, comparison, chosen),
    )


class _Reading:
    """Yields the episodes of a run with rescored copies; counts those whose rewards do not follow its own rules."""

    def __init__(self, run: Path, played: Ruleset, chosen: Ruleset) -> None:
        self._run = run
        self._played = played
        self._chosen = chosen
        self.n_inconsistent = 0
        self.judge_versions: set[int] = set()

    def pairs(self) -> Iterator[tuple[EpisodeRecord, EpisodeRecord]]:
        for record in iter_episodes(self._run):
            self.judge_versions.add(record.judge_version)
            self.n_inconsistent += rescored(record, self._played) != record
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
        return f"{role}: the order of the rounds does not change"
    return (
        f"{role}: of {order.n_pairs} pairs of rounds {order.n_reversed} change their order,"
        f" {order.n_merged} become equal, {order.n_split} become unequal"
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
        **{name: estimate_document(getattr(found, name)) for name in _COMPARED},
        "order": asdict(found.order),
        "moved": [asdict(each) for each in found.moved],
    }
