"""Who takes part: names of agents, training runs and their checkpoints, as agents that can be loaded.

==================  ================================================================================================
`RUN`               both roles of a run of `codea1 train` as they are now: its exported models, else its last checkpoint
`RUN@40`            after step 40, from `RUN/checkpoints/step-0040`
`RUN@base`          the models that its training began with
`RUN/models/coder`  one exported model
`mutant`            any agent, by name and options, `module:attribute` too; for the roles that it plays
`NAME=...`          any of these under a name of one's own
==================  ================================================================================================

Models of a run are asked as in its training: same prompts, length of replies, temperature and view of the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from codea1_env.agent import Role
from codea1_env.errors import BrokenInput, UserError
from codea1_env.plugins import resolve
from codea1_env.secret import read_secrets, without_secrets

_ROLES: tuple[Role, ...] = ("coder", "tester")
_NAMED = re.compile(r"(?P<name>[\w.+@-]+)=(?P<target>.+)", re.DOTALL)
_BATCH = 64

View = Literal["white_box", "black_box"]


@dataclass(frozen=True, slots=True)
class Player:
    """Somebody who can play a role."""

    name: str
    """For tables; unique among those of its role."""
    asked: str
    """As it was named on the command line, without secrets."""
    spec: str
    """What `load_agent` takes."""
    role: Role
    view: View = "white_box"
    """Of a tester: whether it sees programs."""


def players_of(texts: Sequence[str], scratch: Path, *, role: Role | None = None) -> tuple[Player, ...]:
    """Return the players that some texts name, in order, coder before tester.

    Args:
        texts: each as in the module's text.
        scratch: a folder for models that are taken out of checkpoints; it must outlive the players.
        role: the only one that is wanted; None: every one that somebody plays.

    Raises:
        UserError: no such agent, run or checkpoint, or it does not play this role.
    """
    found: list[Player] = []
    for number, text in enumerate(texts):
        mine = list(_players(text, scratch / str(number), (role,) if role else _ROLES))
        if not mine:
            raise UserError(f"{without_secrets(text)} plays no {role}")
        found += mine
    return _distinct(found)


def _players(text: str, scratch: Path, roles: Sequence[Role]) -> Iterator[Player]:
    match = _NAMED.fullmatch(text)
    name, target = (match["name"], match["target"]) if match and not Path(text).exists() else ("", text)
    path, at, step = target.rpartition("@")
    if _is_run(Path(target)):
        found = _of_run(Path(target), "", scratch, roles)
    elif at and _is_run(Path(path)):
        found = _of_run(Path(path), step, scratch, roles)
    elif Path(target).is_dir():
        found = _of_model(Path(target), roles)
    else:
        found = _by_name(target, roles)
    for player in found:
        yield replace(player, name=name or player.name, asked=without_secrets(target))


def _is_run(path: Path) -> bool:
    return (path / "config.toml").is_file() and (path / "run.json").is_file()


def _by_name(spec: str, roles: Sequence[Role]) -> Iterator[Player]:
    plays = getattr(resolve("agents", spec.split(",")[0]), "plays", None)
    for role in roles:
        if plays in (None, role):
            yield Player(without_secrets(spec), "", read_secrets(spec), role)


def _of_model(path: Path, roles: Sequence[Role]) -> Iterator[Player]:
    """Yield the player of an exported model within a run."""
    run = path.resolve().parent.parent
    if path.resolve().parent.name != "models" or not _is_run(run):
        raise BrokenInput(
            f"{path}: neither a training run nor a model in one; another model is named with how to ask it, as in"
            f" transformers,model={path},prompts=default,max_tokens=512"
        )
    module = path.resolve().name
    for role in roles:
        if module in (role, "shared"):
            yield _asked_as_in(run, role, path.resolve(), "")


def _of_run(run: Path, step: str, scratch: Path, roles: Sequence[Role]) -> Iterator[Player]:
    from codea1_agents.train.loop.folder import stored_run  # noqa: PLC0415  slow to import

    config, _ = stored_run(run)
    for role in roles:
        agent = getattr(config.agents, role).agent
        if agent:
            yield Player(f"{_short(run)}:{agent}", "", agent, role)
        else:
            yield _asked_as_in(run, role, _model(run, role, step, scratch), step)


def _model(run: Path, role: Role, step: str, scratch: Path) -> Path:
    """Return the folder of a run's model, made if need be."""
    from codea1_agents.train.loop.building import models_of  # noqa: PLC0415  slow to import
    from codea1_agents.train.loop.export import export_model  # noqa: PLC0415  slow to import
    from codea1_agents.train.loop.folder import stored_run  # noqa: PLC0415  slow to import

    if step == "base":
        models = models_of(stored_run(run)[0])
        return Path((models.get(role) or models["shared"]).path)
    if not step:
        for module in (role, "shared"):
            if (run / "models" / module / "config.json").is_file():
                return run / "models" / module
    source = run
    if step:
        if not step.isdecimal():
            raise UserError(f"{run}@{step}: after the @ stands a step's number, or base")
        source = run / "checkpoints" / f"step-{int(step):04d}"
        if not source.is_dir():
            there = ", ".join(str(int(each.name[5:])) for each in sorted((run / "checkpoints").glob("step-*")))
            raise UserError(f"{run}: no checkpoint of step {step}; there are: {there or 'none'}")
    return export_model(source, role, scratch / role)


def _asked_as_in(run: Path, role: Role, model: Path, step: str) -> Player:
    from codea1_agents.train.loop.folder import stored_run  # noqa: PLC0415  slow to import

    config, _ = stored_run(run)
    if "," in str(model):
        raise UserError(f"{model}: a model's path cannot hold a comma here")
    length = getattr(config.agents, role).max_tokens or config.agents.shared.max_tokens
    spec = f"transformers,model={model},prompts={config.rollout.prompts},temperature={config.rollout.temperature}"
    spec += f",batch_size={_BATCH}" + (f",max_tokens={length}" if length else "")
    return Player(f"{_short(run)}@{step}" if step else _short(run), "", spec, role, config.game.tester_view)


def _short(run: Path) -> str:
    """Return the last parts of a run's path that tell something."""
    parts = run.resolve().parts[-2:]
    return parts[-2] if parts[-1] == "run" and len(parts) > 1 else parts[-1]


def _distinct(players: Sequence[Player]) -> tuple[Player, ...]:
    """Give those of equal names a number; leave out who takes part twice."""
    found: dict[tuple[str, Role], Player] = {}
    for player in players:
        name, n = player.name, 1
        while (name, player.role) in found and found[name, player.role].spec != player.spec:
            n += 1
            name = f"{player.name}#{n}"
        found.setdefault((name, player.role), replace(player, name=name))
    return tuple(found.values())
