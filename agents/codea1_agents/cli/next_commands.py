"""The next two commands to type after a command is done, as they run in the current folder."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast, get_type_hints

from typer.models import OptionInfo

from codea1_agents.cli.console import Page
from codea1_agents.cli.evaluate import CoderOptions, EvaluationOptions, SelectOptions, TesterOptions
from codea1_agents.cli.experiment import ExperimentOptions
from codea1_agents.cli.options import Options
from codea1_agents.cli.play import PlayOptions
from codea1_agents.cli.train import TrainOptions
from codea1_env.agent import Role
from codea1_env.secret import without_secrets

_BASELINES: dict[str, tuple[str, str]] = {"coder": ("mutant", "reference"), "tester": ("fuzz", "boundary")}
"""By role, the agent to compare with, and the one for a comparison with that agent itself."""


def show_next(page: Page, options: Options, out: Path | None, runs: Sequence[Path] = ()) -> None:
    """Print the commands of `next_commands`, for people who read everything."""
    for command in () if page.quiet or page.as_json else next_commands(options, out, runs):
        page.say(f"next: {command}")


def next_commands(options: Options, out: Path | None, runs: Sequence[Path] = ()) -> tuple[str, str]:
    """Return the next two commands after a command is done.

    Args:
        options: of that command.
        out: its folder; None: it wrote none.
        runs: the folders of trainings in an experiment.

    Raises:
        TypeError: no commands follow this one.
    """
    match options:
        case PlayOptions():
            assert out is not None
            return _report([out], out), _line("rescore", out, "--sweep", "alpha=0,.25,.5,.75,1")
        case TrainOptions():
            assert out is not None
            return _report([out], out), _with_models(out)
        case CoderOptions() | TesterOptions():
            return _comparison("coder" if isinstance(options, CoderOptions) else "tester", options, out)
        case SelectOptions():
            given: dict[str, Any] = {"problems": options.problems, "limit": options.limit, "without": options.without}
            return (
                _as_typed("eval coder", CoderOptions(agent=options.coder, **given)),
                _as_typed("eval tester", TesterOptions(agent=options.tester, **given)),
            )
        case ExperimentOptions():
            assert out is not None
            again = replace(options, out=out, quiet=False, as_json=False, report_only=not runs)
            n_seeds = options.seeds if options.only else (options.seeds or 1) + 1
            more = replace(again, only="", seeds=n_seeds, report_only=False)
            return _report(runs, out) if runs else _as_typed("experiment", again), _as_typed("experiment", more)
    raise TypeError(f"no commands follow {type(options).__name__}")


def _line(*words: object) -> str:
    return shlex.join(["codea1", *map(str, words)])


def _report(runs: Sequence[Path], out: Path) -> str:
    return _line("report", *runs, "-o", out.with_name(f"{out.name}.html"))


def _comparison(role: str, options: EvaluationOptions, out: Path | None) -> tuple[str, str]:
    """Return the same evaluation of a scripted agent, and then the comparison; or first, how to store this one."""
    usual, other = _BASELINES[role]
    agent = str(cast(Any, options).agent)
    baseline = other if agent.split(",")[0] == usual else usual
    if out is None:
        stored = replace(options, out=Path(f"eval-{role}"))
        return _as_typed(f"eval {role}", stored), _as_typed(f"eval {role}", replace(options, **_agent(baseline)))
    place = out.with_name(f"{out.name}-{baseline}")
    evaluated = replace(options, out=place, quiet=False, as_json=False, **_agent(baseline))
    return _as_typed(f"eval {role}", evaluated), _line("eval", "compare", place, out)


def _agent(name: str) -> dict[str, Any]:
    return {"agent": name, "temperature": None}


def _with_models(run: Path) -> str:
    """Return a command with the models of a training: an evaluation on held-out problems, or else a game."""
    from codea1_agents.lab.crossplay.player_specs import read_players  # noqa: PLC0415  slow to import
    from codea1_agents.train.loop.folder import stored_run  # noqa: PLC0415  slow to import
    from codea1_agents.train.settings.modules import models_of  # noqa: PLC0415  slow to import

    config, _ = stored_run(run)
    specs: dict[Role, str] = {}
    for module in models_of(config):
        place = run / "models" / module
        if not place.is_dir():
            return _line("export", "model", run, "--role", module, "-o", place)
        for player in read_players([f"./{place}" if not place.is_absolute() else str(place)], run):
            specs[player.role] = player.spec.replace(str(place.resolve()), str(place))
    if not config.evaluation.problems:
        roles = [word for role, spec in specs.items() for word in (f"--{role}", spec)]
        return _line("play", "--problems", config.game.problems, *roles)
    role: Role = "coder" if "coder" in specs else "tester"
    return _line("eval", role, "--agent", specs[role], "--problems", config.evaluation.problems)


def _as_typed(command: str, options: Options) -> str:
    """Return the command line with these options, without those that have their default and without secrets."""
    words = []
    hints = get_type_hints(type(options), include_extras=True)
    for each in fields(options):
        value = getattr(options, each.name)
        if value == each.default or value is None:
            continue
        declared = next(one for one in hints[each.name].__metadata__ if not isinstance(one, str))
        flag = _flag(each.name, declared)
        words += [*flag, *([] if value is True else [without_secrets(str(value))])]
    return _line(*command.split(), *words)


def _flag(name: str, declared: Any) -> list[str]:
    """Return the long name of an option; nothing for an argument."""
    if not isinstance(declared, OptionInfo):
        return []
    return [next((one for one in declared.param_decls or () if one.startswith("--")), f"--{name.replace('_', '-')}")]
