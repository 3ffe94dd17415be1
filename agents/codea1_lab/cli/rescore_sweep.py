"""`codea1 rescore --sweep`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isnan, nan
from pathlib import Path
from typing import Any

from codea1_agents.cli.console import Page, estimate_cells, new_table, number
from codea1_agents.statistics import estimate_document
from codea1_env.errors import BrokenInput, UserError
from codea1_env.rules.ruleset import Ruleset
from codea1_env.runs.folder import ends_half_written, iter_episodes, stored_config
from codea1_lab.report.material import Panel, Point, Series
from codea1_lab.report.training_run import sampled_groups, samples_of
from codea1_lab.report.writing import write_picture
from codea1_lab.rescore_sweep import RoleEffect, Rollout, Setting, SettingEffect, settings_of, sweep

_ROLES = ("coder", "tester")


def run_sweep(
    page: Page, run: Path, sweeps: Sequence[str], picture: Path | None, *, played: Ruleset, chosen: Ruleset
) -> None:
    """Score a run, or the stored rollouts of a training run, by every combination of some settings.

    Args:
        page: the command's output.
        run: folder of a run.
        sweeps: texts of the form `NAME=VALUE,VALUE`.
        picture: SVG file to draw into; None: none.
        played: the rules of the run.
        chosen: the rules whose settings the sweeps change.

    Raises:
        UserError: a sweep cannot be read, there are no rollouts, or the picture cannot be drawn or written.
    """
    wanted = _read(sweeps)
    settings = settings_of(chosen, wanted)
    if not is_training_run(run) and ends_half_written(run):
        page.note("the last episode is half written and was left out")
    base = Setting("as played", played)
    effects = sweep(_rollouts(run), base, settings, seed=0)
    if not effects or not effects[0].coder.reward.n:
        raise BrokenInput(f"{run} has no rollouts that could be scored")
    if picture is not None:
        write_picture(_panel(effects, wanted), picture)
    if not page.as_json:
        _show(page, effects)
    page.finish(run=str(run), out=None, seed=0, settings=[_to_json(effect) for effect in effects])


def is_training_run(run: Path) -> bool:
    """Whether the folder is that of a training run, which has subfolders of rollouts."""
    return (run / "metrics.jsonl").is_file()


def sampled_rules(run: Path) -> Ruleset:
    """Return the rules of a training run's rollouts.

    Raises:
        BrokenInput: the run has no rollouts.
    """
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
            raise UserError(f"--sweep {text!r}: write NAME=VALUE,VALUE, e.g. alpha=0,.5,1")
        if name.strip() in found:
            raise UserError(f"--sweep names {name.strip()} twice")
        found[name.strip()] = wanted
    return found


def _rollouts(run: Path) -> Iterator[Rollout]:
    if is_training_run(run):
        for group in sampled_groups(samples_of(run)):
            for played in group.members.values():
                yield Rollout(f"{group.step} {group.id}", group.problem_id, played.to_report())
        return
    for record in iter_episodes(run):
        for played in record.rounds:
            yield Rollout(record.problem_id, record.problem_id, played.to_report())


def _show(page: Page, effects: Sequence[SettingEffect]) -> None:
    for role in _ROLES:
        found: list[RoleEffect] = [getattr(effect, role) for effect in effects]
        if all(map(_is_unchanged, found)):
            page.say(f"{role}: nothing changes (mean {number(found[0].reward.mean)})")
            continue
        rows = [_cells(effect, each) for effect, each in zip(effects, found, strict=True)]
        heads = (role, "mean", "95 % interval", "change", "flat", "flipped", "lost", "new", "pairs", "best")
        page.show(new_table(heads, rows, right=(1, 3, 4, 5, 6, 7, 8, 9), whole=(0, 2)))
    page.say(
        "compared with the run as it was played. flat: groups in which all advantages are 0; flipped, lost, new: signs"
        " of advantages, as shares of rollouts; pairs: pairs of one group that change their order; best: groups with"
        " another best rollout"
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


def _panel(effects: Sequence[SettingEffect], sweeps: dict[str, list[str]]) -> Panel:
    if len(sweeps) != 1 or "rules" in sweeps:
        raise UserError("--picture draws a sweep of one number: alpha, tests or replay")
    (name,) = sweeps
    by_value = sorted(((float(dict(each.setting.values)[name]), each) for each in effects), key=lambda pair: pair[0])
    series = []
    for role in _ROLES:
        rewards = [(x, getattr(effect, role).reward) for x, effect in by_value]
        series.append(Series(role, tuple(Point(x, r.mean, r.low, r.high, r.n) for x, r in rewards), role))
    signs = [(x, effect.tester.signs) for x, effect in by_value]
    flipped = tuple(Point(x, s.n_flipped / s.n if s.n else nan) for x, s in signs)
    series.append(Series("signs flipped", flipped, "t2"))
    note = "Mean rewards, and the share of the tester's advantages whose sign would have been reversed."
    return Panel("what-if", f"What if: {name}", note, tuple(series), name)


def _to_json(effect: SettingEffect) -> dict[str, Any]:
    roles = {}
    for role in _ROLES:
        found: RoleEffect = getattr(effect, role)
        estimates = {name: estimate_document(getattr(found, name)) for name in ("reward", "difference")}
        roles[role] = asdict(found) | estimates
    return {"setting": dict(effect.setting.values), **roles}
