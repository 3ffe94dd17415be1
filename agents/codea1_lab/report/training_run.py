"""Reads a run of `codea1 train` for a report: the figures of its steps, and the rollouts that it kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import accumulate, groupby
from math import nan, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from codea1_agents.statistics import INTERVAL_ENDS, WINDOW, recorded_estimate, steps_interval
from codea1_agents.train.loop.folder import read_metrics, read_restarts
from codea1_env.book.store import MistakeBook
from codea1_env.errors import BrokenInput
from codea1_env.facts.judge_version import UNSTATED_JUDGE, judge_version_in
from codea1_env.records.faults import read_file, read_json, read_toml
from codea1_env.records.file_errors import file_errors, require_run
from codea1_env.rules.funnel import KILLING
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import PRESETS, Ruleset
from codea1_env.runs.config import flat
from codea1_env.runs.folder import iter_episodes, stored_config
from codea1_env.runs.records import EpisodeRecord, RewardsRecord, RoundRecord
from codea1_lab.report.conclusion import of_training
from codea1_lab.report.game_run import known_problems
from codea1_lab.report.material import (
    MAX_BINS,
    MOVES,
    SHARE,
    Figure,
    Group,
    Panel,
    PanelSpec,
    Point,
    Remark,
    RunMaterial,
    book_panels,
    by_role,
    judge_remark,
    judge_text,
    reply_panels,
)
from codea1_lab.report.palette import tone_of

_MIN_WIDTH = 4  # steps per bin, which an interval needs
_LOST = "tests_lost_"
_MANY = 1 << 53  # more than a count of tests or problems
_KEPT = "Problems and episodes below are of the rollouts that the run kept, not of all rollouts."
_TENTHS = {
    "coder_reward": ("coder reward", "coder"),
    "tester_reward": ("tester reward", "tester"),
    "right_kill_rate": ("suites that beat a program", "tester"),
    "kill_rate": ("suites that beat a program, wrong answers too", "tester"),
    "suite_validity": ("suite validity", tone_of("valid", 0)),
}
_Line: TypeAlias = Mapping[str, Any]
"""A line of `metrics.jsonl`."""

_PANELS = (
    PanelSpec("rewards", "Rewards", "Mean rewards of the rollouts.", by_role("reward")),
    *reply_panels("valid_candidates", {"golden_pass_rate": "golden"}),
    PanelSpec(
        "parts",
        "Parts of the rewards",
        "Means of the parts, without their weights.",
        {
            "validity": "validity",
            "adversarial": "adversarial",
            "coder_pass_new": "pass new",
            "coder_pass_replayed": "pass replayed",
        },
    ),
    PanelSpec(
        "spread",
        "Groups whose rewards differ",
        "Share of groups whose rewards differ; in the others all advantages are 0.",
        by_role("spread_share"),
        SHARE,
    ),
    PanelSpec(
        "variety",
        "Distinct programs and suites",
        "Share of a problem's programs and suites that are distinct.",
        {"distinct_programs": "programs", "distinct_suites": "suites"},
        SHARE,
    ),
    PanelSpec(
        "turns",
        "Repairs",
        "Share of the second turn's candidates that pass all tests after it; share whose reward fell.",
        {"fixed_turn_2": "fixed", "broke_turn_2": "broke"},
        SHARE,
    ),
    PanelSpec("tokens", "Length of replies", "Tokens.", by_role("tokens"), (0.0, None)),
    PanelSpec("cut", "Replies that were cut", "Share of replies at the token limit.", by_role("cut_share"), SHARE),
)
_OF_MODULES = (
    ("kl", "Divergence from the initial models", "In nats per token."),
    ("entropy", "Entropy of the next token", "In nats."),
    ("clip_share", "Clipped tokens", "Share of tokens whose ratio was clipped."),
    ("grad_norm", "Norm of the gradient", "Before clipping."),
)
_TIMES = {"generate_s": "sampling", "judge_s": "judging", "learn_s": "learning", "sync_s": "weights"}

_EVALUATIONS = {
    "coder_": ("Held-out problems: coder", "Programs that pass all golden tests, and golden tests passed."),
    "tester_validity/": ("Held-out problems: validity", "Share of the requested tests that are valid, by opponent."),
    "tester_right_kill_rate/": (
        "Held-out problems: suites that beat",
        "Share of suites that beat a program by a right test, by opponent.",
    ),
    "tester_kill_rate/": (
        "Held-out problems: suites that beat, wrong answers too",
        "Share of suites with a test that a program fails with the solution's answer, by opponent.",
    ),
    "tester_aim/": ("Held-out problems: aim", "How much more often than golden tests its cases fail a program."),
}
"""Prefix of the figures' names -> title and note."""


def training_run(path: Path, name: str) -> RunMaterial:
    """Read the folder of a training run.

    Raises:
        BrokenInput: no training run in this folder, or a corrupted line.
    """
    lines = read_metrics(path)
    steps = [line for line in lines if line.get("figures")]
    samples = samples_of(path)
    settings, judge = _settings(path), _judge_version(path)
    problems, remarks = known_problems(stored_config(samples[0][1])) if samples else ((), ())
    figures, stated = _figures(steps, lines), flat(settings)
    rules = PRESETS.get(stated.get("game.rules", "fixed"))
    return RunMaterial(
        name=name,
        kind="training",
        axis="step",
        facts=(*_facts(settings, steps, samples), ("judge", judge_text({judge}))),
        conclusion=of_training(figures, steps, lines),
        figures=tuple(figures.values()),
        panels=tuple(_panels(steps, lines)),
        groups=partial(sampled_groups, samples),
        remarks=(
            *judge_remark({judge}),
            *_restarts(read_restarts(path)),
            *_alarms(steps),
            *remarks,
            Remark(_KEPT if samples else "The run kept no rollouts, so there are no episodes to read."),
        ),
        settings=stated,
        defaults={} if rules is None else flat({"game": asdict(rules)}),
        tests=_tests(steps),
        book=_book_of(path),
        problems=problems,
    )


def samples_of(path: Path) -> tuple[tuple[int, Path], ...]:
    """Return the rollouts that a training run kept, in order: number of the step and run folder."""
    groups = []
    for folder in (path / "samples").glob("step-*"):
        number = re.fullmatch(r"step-(\d+)", folder.name)
        if number and (folder / "episodes.jsonl").is_file():
            groups.append((int(number[1]), folder))
    return tuple(sorted(groups))


def sampled_groups(samples: Sequence[tuple[int, Path]]) -> Iterator[Group]:
    """Yield one group per step and problem. The folders hold one duel per suite; duels of one candidate are merged.

    With several turns, each turn of a candidate is a member of its own, the earlier ones with the suite that was shown.
    """
    for step, folder in samples:
        rules = stored_config(folder).rules
        for task, duels in groupby(iter_episodes(folder), key=lambda record: record.episode_id.partition("-")[0]):
            members: dict[str, RoundRecord] = {}
            problem_id = ""
            for number, same in groupby(duels, key=lambda record: record.episode_id.rpartition("-")[0]):
                records = list(same)
                problem_id = records[0].problem_id
                turns = (*records[0].rounds[:-1], _merge_records(records, rules))
                for turn, record in enumerate(turns, start=1):
                    which = f", turn {turn} of {len(turns)}" if len(turns) > 1 else ""
                    members[f"candidate {_number(number)}{which}"] = record
            yield Group(step, task, problem_id, members)


def _number(episode_id: str) -> str:
    last = episode_id.rpartition("-")[2]
    return str(int(last) + 1) if last.isdecimal() else last


def _merge_records(records: Sequence[EpisodeRecord], rules: Ruleset) -> RoundRecord:
    """Return one candidate's last turn with all of its suites, and its rewards over all of them, as in training."""
    first = records[0].rounds[-1]
    if len(records) == 1:
        return first
    suites = tuple(suite for record in records for suite in record.rounds[-1].suites)
    replies = [record.rounds[-1].tester_reply for record in records]
    whole = first.model_copy(
        update={
            "suites": suites,
            "tester_reply": "\n\n# --- next suite ---\n\n".join(reply for reply in replies if reply is not None),
        }
    )
    return whole.model_copy(update={"rewards": RewardsRecord.model_validate(score(whole.to_report(), rules))})


def _tests(steps: Sequence[_Line]) -> dict[str, int]:
    """Return the tests of the last steps by the reason why they beat no program."""
    counts: Counter[str] = Counter()
    for line in _ends(steps)[1]:
        for name, n in line["figures"].items():
            if name.startswith(_LOST) or name == f"tests_{KILLING}":
                counts[name.removeprefix(_LOST).removeprefix("tests_")] += int(min(n, _MANY))
    return counts


def _book_of(path: Path) -> dict[str, int]:
    """Return how many entries each problem has in the book of the last checkpoint."""
    if not (path / "book.sqlite").is_file():
        return {}
    with MistakeBook(path / "book.sqlite", read_only=True) as book:
        return {problem_id: book.size(problem_id) for problem_id in book.problem_ids()}


def _judge_version(path: Path) -> int:
    """Return the version of the judge in a run's `run.json`."""
    try:
        return judge_version_in(read_json("", read_file(path / "run.json")))
    except (OSError, BrokenInput):
        return UNSTATED_JUDGE


def _settings(path: Path) -> dict[str, Any]:
    require_run(path, "training run", "config.toml")
    with file_errors(path):
        return read_toml(f"{path / 'config.toml'}", read_file(path / "config.toml"))


def _facts(
    settings: Mapping[str, Any], steps: Sequence[_Line], samples: Sequence[tuple[int, Path]]
) -> tuple[tuple[str, str], ...]:
    def setting(*keys: str) -> str:
        value: Any = settings
        for key in keys:
            value = value.get(key, "") if isinstance(value, Mapping) else ""
        return str(value)

    def player(role: str) -> str:
        return (
            setting("agents", role, "model")
            or setting("agents", role, "agent")
            or setting("agents", "shared", "model")
            or setting("agents", "base")
        )

    shape = f"{setting('rollout', 'problems_per_step')} problems, {setting('rollout', 'n_candidates')} candidates, "
    turns = setting("rollout", "turns")
    facts = (
        ("about", setting("about")),
        ("coder", player("coder")),
        ("tester", player("tester")),
        ("problems", setting("game", "problems")),
        ("rules", setting("game", "rules")),
        ("each step", f"{shape}{setting('rollout', 'n_suites')} suites"),
        ("turns", turns if turns != "1" else ""),
        ("learning rate", setting("training", "lr")),
        ("steps", f"{len(steps)} of {setting('run', 'steps')}"),
        ("kept rollouts", f"of {len(samples)} step{'s' * (len(samples) != 1)}"),
        ("seed", setting("run", "seed")),
    )
    return tuple((name, value) for name, value in facts if value)


def _figures(steps: Sequence[_Line], lines: Sequence[_Line]) -> dict[str, Figure]:
    """Return held-out pass@1 of the first and last evaluation, and means over the first and last steps."""
    figures = {}
    evaluated = [line["evaluation"] for line in lines if "coder_pass_at_1" in line.get("evaluation", {})]
    if evaluated:
        before, after = (recorded_estimate(of, "coder_pass_at_1") for of in (evaluated[0], evaluated[-1]))
        has_begun = len(evaluated) > 1
        figures["pass_at_1"] = Figure("pass@1, held-out problems", after, "coder", before if has_begun else None)
    for key, (label, tone) in _TENTHS.items():
        before, after = (steps_interval(line["figures"].get(key, nan) for line in some) for some in _ends(steps))
        if after.n:
            figures[key] = Figure(f"{label}, last steps", after, tone, before if before.n and len(steps) > 1 else None)
    if steps and "book_size" in steps[-1]["figures"]:
        size = steps[-1]["figures"]["book_size"]
        figures["book_size"] = Figure.plain("cases in the Mistake Book", size, tone=tone_of("cases", 0))
    return figures


def _ends(steps: Sequence[_Line]) -> tuple[Sequence[_Line], Sequence[_Line]]:
    """Return the first and the last tenth of the steps, of `WINDOW` steps at least; below twice that, both halves."""
    size = min(max(WINDOW, len(steps) // 10), max(1, len(steps) // 2))
    return steps[:size], steps[-size:]


def _panels(steps: Sequence[_Line], lines: Sequence[_Line]) -> Iterator[Panel]:
    width = max(_MIN_WIDTH, -(-len(steps) // MAX_BINS)) if len(steps) >= MAX_BINS else 1
    on_bins = (
        f" Means over {width} steps; the band is 1.96 standard errors of them on either side." if width > 1 else ""
    )
    yield from _evaluation(lines)  # whether it learns is read off these first
    for spec in (*_PANELS, *_module_panels(steps)):
        panel = spec.panel(lambda name: _points(steps, "figures", name, width), "step", remark=on_bins)
        if panel.series:
            yield panel
    yield from _book(steps)
    spent = PanelSpec("time", "Where the time goes", "Seconds per step.", _TIMES, (0.0, None)).panel(
        lambda name: _points(steps, "times", name, width, spread=False), "step"
    )
    known = tuple(line for line in spent.series if any(p.mean > 0 for p in line.points))
    if known:
        yield replace(spent, series=known, stacked=True)


def _module_panels(steps: Sequence[_Line]) -> Iterator[PanelSpec]:
    modules = sorted({name.removesuffix("_kl") for line in steps for name in line["figures"] if name.endswith("_kl")})
    for suffix, title, note in _OF_MODULES:
        curves = {f"{module}_{suffix}": module for module in modules}
        yield PanelSpec(suffix, title, note, curves, (0.0, None))


def _book(steps: Sequence[_Line]) -> Iterator[Panel]:
    size = _points(steps, "figures", "book_size", 1, spread=False)
    if size:
        moves = {}
        for key, name in (("book_added", MOVES[0]), ("book_removed", MOVES[1])):
            points = _points(steps, "figures", key, 1, spread=False)
            totals = accumulate(p.mean for p in points)
            moves[name] = [replace(p, mean=total) for p, total in zip(points, totals, strict=True)]
        yield from book_panels(size, moves, "step")


def _evaluation(lines: Sequence[_Line]) -> Iterator[Panel]:
    evaluated = [line for line in lines if line.get("evaluation")]
    names = sorted({name for line in evaluated for name in line["evaluation"] if not name.endswith(INTERVAL_ENDS)})
    for prefix, (title, note) in _EVALUATIONS.items():
        of_panel = [name for name in names if name.startswith(prefix)]
        curves = {name: name.removeprefix(prefix).replace("_", " ") for name in of_panel}
        key = f"held-out-{prefix.strip('_/').replace('_', '-')}"
        bounds = (None, None) if prefix == "tester_aim/" else SHARE
        panel = PanelSpec(key, title, f"{note} Means over held-out problems.", curves, bounds).panel(
            lambda name: _points(evaluated, "evaluation", name, 1, spread=False), "step"
        )
        if panel.series:
            yield panel


def _points(lines: Sequence[_Line], part: str, name: str, width: int, *, spread: bool = True) -> tuple[Point, ...]:
    """Return means over bins of `width` steps, with 95 % intervals over the steps of a bin unless `spread` is False.

    Without bins, a figure has the interval that its lines give.
    """
    known = [(line["step"], of[name], of) for line in lines if name in (of := line.get(part, {}))]
    points = []
    for start in range(0, len(known), width):
        some = known[start : start + width]
        x, _, figures = some[-1]
        if width == 1 or not spread:
            low, high = (figures.get(f"{name}{end}", nan) for end in INTERVAL_ENDS)
            points.append(Point(x, sum(value for _, value, _ in some) / len(some), low, high, n=len(some)))
            continue
        values = [value for _, value, _ in some]
        mean = fmean(values)
        half = 1.96 * sqrt(fmean((value - mean) ** 2 for value in values) / len(some))
        points.append(Point(x, mean, mean - half, mean + half, len(some)))
    return tuple(points)


def _restarts(lines: Sequence[_Line]) -> Iterator[Remark]:
    """Yield a remark if the run was started again, with the last reason."""
    if lines:
        last = f"{lines[-1].get('fault')} (step {lines[-1].get('step')})"
        yield Remark(f"started again after the loss of a learner ({len(lines)}): {last}", is_alarm=True)


def _alarms(steps: Sequence[_Line]) -> Iterator[Remark]:
    """Yield one remark per alarm: its first step, its number of steps, and its last message."""
    raised: dict[str, list[tuple[int, str]]] = {}
    for line in steps:
        for name, sentence in dict(line.get("alarms") or {}).items():
            raised.setdefault(name, []).append((line["step"], str(sentence)))
    for name, times in raised.items():
        first, last = times[0][0], times[-1]
        n = f"{len(times)} steps from step {first} on" if len(times) > 1 else f"step {first}"
        yield Remark(f"{name.replace('_', ' ')} ({n}): {last[1]} (step {last[0]})", is_alarm=True)
