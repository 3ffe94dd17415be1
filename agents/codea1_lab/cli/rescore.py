"""`codea1 rescore`: a recorded run under other rules; with `--sweep`, under every combination of some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import isnan
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from codea1_agents.cli.console import Page, estimate_cells, new_table, number
from codea1_agents.cli.options import Options
from codea1_agents.statistics import estimate_document
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.rules.ruleset import Ruleset
from codea1_env.runs.folder import ends_half_written, iter_episodes, stored_config
from codea1_lab.report.training_run import sampled_groups, samples_of
from codea1_lab.rescore import (
    RoleEffect,
    Rollout,
    Setting,
    SettingEffect,
    described,
    rescored,
    settings_of,
    sweep,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreOptions(Options):
    """Score a recorded run by other rules, without running any program.

    The recorded verdicts stay: rules that read replies, validate suites or compare values cannot change.

    \b
    Example:
      codea1 rescore runs/20260304-050607 --sweep rules=zero_sum
      codea1 rescore runs/20260304-050607 --sweep alpha=0,.25,.5,.75,1
    """

    run: Annotated[Path, Argument(help="Run folder of codea1 play or codea1 train.")]
    sweep: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE,VALUE",
            help="Other values of alpha, rules (a preset's formulas), tests (per suite) or replay (share of replayed"
            " cases that count); may be repeated to compare every combination.",
            show_default="the run's own rules",
        ),
    ] = None


_ROLES = ("coder", "tester")


def run_rescore(options: RescoreOptions) -> None:
    """Compare a run's rewards, or those of a training run's stored rollouts, with those under other rules.

    Raises:
        UserError: the folder is not a run or has no rollouts, a number is out of range, or a sweep cannot be read.
    """
    page, run = Page(as_json=options.as_json), options.run
    is_training = (run / "metrics.jsonl").is_file()
    played = _sampled_rules(run) if is_training else stored_config(run).rules
    settings = settings_of(played, _read(options.sweep or ()))
    games = _Games(run, played)
    rollouts = _training_rollouts(run) if is_training else games.rollouts()
    effects = sweep(rollouts, Setting("as played", played), settings)
    if not effects[0].coder.reward.n:
        raise BrokenInput(f"{run} contains no rollouts to score")
    if not is_training and ends_half_written(run):
        page.note("the last episode is half written and was left out; `codea1 play --resume` plays it again")
    games.note_faults(page)
    if not page.as_json:
        _show(page, effects, played)
    page.finish(
        run=str(run),
        seed=0,
        judge_versions=sorted(games.judge_versions),
        settings=[_to_json(effect) for effect in effects],
    )


@dataclass(slots=True)
class _Games:
    """Reads a run of games; counts the episodes whose rewards do not follow its own rules."""

    run: Path
    played: Ruleset
    n_inconsistent: int = 0
    judge_versions: set[int] = field(default_factory=set)

    def rollouts(self) -> Iterator[Rollout]:
        for record in iter_episodes(self.run):
            self.judge_versions.add(record.judge_version)
            self.n_inconsistent += rescored(record, self.played) != record
            for played in record.rounds:
                yield Rollout(record.problem_id, record.problem_id, played.to_report())

    def note_faults(self, page: Page) -> None:
        if self.n_inconsistent:
            page.note(
                f"{self.n_inconsistent} recorded episodes do not have the rewards of the run's own rules:"
                " the run was played with another version, or edited"
            )
        for version in sorted(self.judge_versions - {JUDGE_VERSION}):
            page.note(
                f"version {version} of the judge judged the run; this is version {JUDGE_VERSION}. The verdicts stay"
            )


def _training_rollouts(run: Path) -> Iterator[Rollout]:
    for group in sampled_groups(samples_of(run)):
        for played in group.members.values():
            yield Rollout(f"{group.step} {group.id}", group.problem_id, played.to_report())


def _sampled_rules(run: Path) -> Ruleset:
    samples = samples_of(run)
    if not samples:
        raise BrokenInput(f"{run}: this training run stored no rollouts (logging.samples_every)")
    return stored_config(samples[0][1]).rules


def _read(sweeps: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in sweeps:
        name, equals, values = text.partition("=")
        wanted = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not wanted:
            raise UserError(f"--sweep {text!r}: expected NAME=VALUE,VALUE, e.g. alpha=0,.5,1")
        if name.strip() in found:
            raise UserError(f"--sweep names {name.strip()} twice")
        found[name.strip()] = wanted
    return found


def _show(page: Page, effects: Sequence[SettingEffect], played: Ruleset) -> None:
    for role in _ROLES:
        found: list[RoleEffect] = [getattr(effect, role) for effect in effects]
        if all(map(_is_unchanged, found)):
            page.say(f"{role}: nothing changes (mean {number(found[0].reward.mean)})")
            continue
        rows = [_cells(effect, each) for effect, each in zip(effects, found, strict=True)]
        heads = (role, "mean", "95 % interval", "change", "flat", "flipped", "lost", "new", "pairs", "best")
        page.show(new_table(heads, rows, right=(1, 3, 4, 5, 6, 7, 8, 9), whole=(0, 2)))
    page.say(
        f"compared with the run as it was played: {described(played)}. flat: groups in which all advantages are 0;"
        " flipped, lost, new: signs of advantages, as shares of rollouts; pairs: pairs of one group that change their"
        " order; best: groups with another best rollout"
    )


def _is_unchanged(found: RoleEffect) -> bool:
    order = found.order
    moved = order.n_reversed or order.n_merged or order.n_split
    return not moved and (isnan(found.difference.low) or found.difference.low == found.difference.high == 0)


def _cells(effect: SettingEffect, found: RoleEffect) -> tuple[str, ...]:
    mean, interval, _ = estimate_cells(found.reward)
    signs, order = found.signs, found.order
    shares = (
        _share(found.n_flat, found.n_groups),
        _share(signs.n_flipped, signs.n),
        _share(signs.n_vanished, signs.n),
        _share(signs.n_appeared, signs.n),
        _share(order.n_reversed, order.n_pairs),
        _share(found.n_other_best, found.n_groups),
    )
    return (effect.setting.label, mean, interval, number(found.difference.mean), *shares)


def _share(n: int, n_all: int) -> str:
    return f"{n / n_all:.1%}" if n_all else "-"


def _to_json(effect: SettingEffect) -> dict[str, Any]:
    roles = {}
    for role in _ROLES:
        found: RoleEffect = getattr(effect, role)
        estimates = {name: estimate_document(getattr(found, name)) for name in ("reward", "difference")}
        roles[role] = asdict(found) | estimates
    return {"setting": dict(effect.setting.values), **roles}
