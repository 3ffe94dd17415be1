"""Reads the players that the command line names: agents, training runs and their checkpoints.

==================  ================================================================================================
`RUN`               both roles of a run of `codea1 train`: its exported models, or else its last checkpoint
`RUN@40`            both roles after step 40, from `RUN/checkpoints/step-0040`
`RUN@base`          both roles before training: the models that training began with
`RUN/models/coder`  one exported model
`mutant`            any agent by name and options, or as `module:attribute`, in the roles that it plays; before a
                    folder of the same name, which is `./mutant`
`NAME=...`          any of these under another name
==================  ================================================================================================

Models of a run play with the settings of its training: prompts, length of replies, temperature, view of the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from codea1_env.agent import Role
from codea1_env.errors import BrokenInput, UserError
from codea1_env.plugins import names, resolve

_ROLES: tuple[Role, ...] = ("coder", "tester")
_NAMED = re.compile(r"(?P<name>[\w.+@-]+)=(?P<target>.+)", re.DOTALL)
_BATCH = 64

View = Literal["white_box", "black_box"]


@dataclass(frozen=True, slots=True)
class PlayerSpec:
    """One agent in one role, before it is loaded."""

    name: str
    """For tables; unique within its role."""
    argument: str
    """The text of the command line without `NAME=`."""
    spec: str
    """The argument of `load_agent`."""
    role: Role
    view: View = "white_box"
    """Whether a tester sees programs."""


def read_players(texts: Sequence[str], scratch: Path, *, role: Role | None = None) -> tuple[PlayerSpec, ...]:
    """Return the players that the texts name, in order, for each text the coder before the tester.

    Args:
        texts: each in a form that the module's docstring lists.
        scratch: a folder for models that are exported from checkpoints; it must exist as long as the players.
        role: return this role only; None: every role that the agent plays.

    Raises:
        UserError: the agent, run or checkpoint does not exist, or does not play this role.
    """
    specs: list[PlayerSpec] = []
    for number, text in enumerate(texts):
        named = list(_read_player(text, scratch / str(number), (role,) if role else _ROLES))
        if not named:
            raise UserError(f"{text} does not play the {role}")
        specs += named
    return _distinct(specs)


def _read_player(text: str, scratch: Path, roles: Sequence[Role]) -> Iterator[PlayerSpec]:
    match = _NAMED.fullmatch(text)
    name, target = (match["name"], match["target"]) if match and not Path(text).exists() else ("", text)
    path, at, step = target.rpartition("@")
    if target.split(",")[0] in names("agents"):
        specs = _by_name(target, roles)
    elif _is_run(Path(target)):
        specs = _of_run(Path(target), "", scratch, roles)
    elif at and _is_run(Path(path)):
        specs = _of_run(Path(path), step, scratch, roles)
    elif Path(target).is_dir():
        specs = _of_model(Path(target), roles)
    elif "/" in target.partition(",")[0]:
        raise UserError(f"{target}: no such run or model")
    else:
        specs = _by_name(target, roles)
    for player in specs:
        yield replace(player, name=name or player.name, argument=target)


def _is_run(path: Path) -> bool:
    return (path / "config.toml").is_file() and (path / "run.json").is_file()


def _by_name(spec: str, roles: Sequence[Role]) -> Iterator[PlayerSpec]:
    plays = getattr(resolve("agents", spec.split(",")[0]), "plays", None)
    for role in roles:
        if plays in (None, role):
            yield PlayerSpec(spec, "", spec, role)


def _of_model(path: Path, roles: Sequence[Role]) -> Iterator[PlayerSpec]:
    """Yield the player for an exported model within a run."""
    run = path.resolve().parent.parent
    if path.resolve().parent.name != "models" or not _is_run(run):
        raise BrokenInput(
            f"{path}: neither a training run nor a model in one; name another model with its settings, as in"
            f" transformers,model={path},prompts=default,max_tokens=512"
        )
    module = path.resolve().name
    for role in roles:
        if module in (role, "shared"):
            yield _with_training_settings(run, role, path.resolve(), "")


def _of_run(run: Path, step: str, scratch: Path, roles: Sequence[Role]) -> Iterator[PlayerSpec]:
    from codea1_agents.train.loop.folder import stored_run  # noqa: PLC0415  slow to import

    config, _ = stored_run(run)
    for role in roles:
        agent = getattr(config.agents, role).agent
        if agent:
            yield PlayerSpec(f"{_short(run)}:{agent}", "", agent, role)
        else:
            yield _with_training_settings(run, role, _model(run, role, step, scratch), step)


def _model(run: Path, role: Role, step: str, scratch: Path) -> Path:
    """Return the folder of a run's model; export it from a checkpoint if necessary."""
    from codea1_agents.train.loop.export import export_model  # noqa: PLC0415  slow to import
    from codea1_agents.train.loop.folder import checkpoint_of, stored_run  # noqa: PLC0415  slow to import
    from codea1_agents.train.settings.run_parts import models_of  # noqa: PLC0415  slow to import

    if step == "base":
        models = models_of(stored_run(run)[0])
        return Path((models.get(role) or models["shared"]).path)
    if not step:
        for module in (role, "shared"):
            if (run / "models" / module / "config.json").is_file():
                return run / "models" / module
        return export_model(run, role, scratch / role)
    if not step.isdecimal():
        raise UserError(f"{run}@{step}: expected the number of a step, or base, after the @")
    return export_model(checkpoint_of(run, int(step)), role, scratch / role)


def _with_training_settings(run: Path, role: Role, model: Path, step: str) -> PlayerSpec:
    from codea1_agents.train.loop.folder import stored_run  # noqa: PLC0415  slow to import

    config, _ = stored_run(run)
    if "," in str(model):
        raise UserError(f"{model}: the path of a model must not contain a comma here")
    length = getattr(config.agents, role).max_tokens or config.agents.shared.max_tokens
    spec = f"transformers,model={model},prompts={config.rollout.prompts},temperature={config.rollout.temperature}"
    spec += f",batch_size={_BATCH}" + (f",max_tokens={length}" if length else "")
    return PlayerSpec(f"{_short(run)}@{step}" if step else _short(run), "", spec, role, config.game.tester_view)


def _short(run: Path) -> str:
    """Return the name of a run's folder; that of its parent if the folder is called `run`."""
    parts = run.resolve().parts[-2:]
    return parts[-2] if parts[-1] == "run" and len(parts) > 1 else parts[-1]


def _distinct(players: Sequence[PlayerSpec]) -> tuple[PlayerSpec, ...]:
    """Number players of equal names; drop a player that is named twice."""
    by_place: dict[tuple[str, Role], PlayerSpec] = {}
    for player in players:
        name, n = player.name, 1
        while (name, player.role) in by_place and by_place[name, player.role].spec != player.spec:
            n += 1
            name = f"{player.name}#{n}"
        by_place.setdefault((name, player.role), replace(player, name=name))
    return tuple(by_place.values())
