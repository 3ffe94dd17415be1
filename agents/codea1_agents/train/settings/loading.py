"""Reads a TOML file or a preset, applies overrides, and returns a checked `TrainingConfig`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pydantic import ValidationError

from codea1_agents.train.declared import fault_of
from codea1_agents.train.grpo.hyperparameters import refuse_truncation
from codea1_agents.train.settings.options import TrainingConfig
from codea1_env.errors import BrokenInput, UnknownName, UserError
from codea1_env.records.faults import read_file, read_toml
from codea1_env.secret import require_no_secrets

_PRESETS = Path(__file__).parents[2] / "presets"
_EXTENDS = "extends"
_PLAYERS = ("coder", "tester", "shared")

Settings = dict[str, Any]


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in _PRESETS.glob("*.toml")))


def load_training(
    source: str | Path | Mapping[str, Any] = "", overrides: Iterable[str] | Mapping[str, Any] = ()
) -> TrainingConfig:
    """Return the settings of a run.

    Args:
        source: the name of a preset, the path of a TOML file, or its content as a mapping; empty: the defaults. Its
            `extends` names another source (a preset, or a path from the file's folder), and its settings replace
            those of that source one by one.
        overrides: `section.key=value` with TOML values (text needs no quotes), or a mapping of dotted keys.

    Raises:
        UserError: the file or preset does not exist or is not TOML, or a setting is unknown, of the wrong type or
            out of range.
    """
    if isinstance(source, Mapping):
        settings, where = _extended(dict(source), Path(), ()), "settings"
    elif source == "":
        settings, where = {}, "settings"
    else:
        settings, where = _read(str(source), Path(), ()), str(source)
    return checked(with_overrides(settings, overrides), where)


def with_overrides(settings: Mapping[str, Any], overrides: Iterable[str] | Mapping[str, Any]) -> Settings:
    """Return nested tables with overrides applied; see `load_training`."""
    changes: Settings = {}
    for key, value in read_overrides(overrides):
        nested = value
        for part in reversed(key.split(".")):
            nested = {part: nested}
        changes = _merged_tables(changes, nested)  # what is set together contradicts itself, and is not replaced
    return _merged(dict(settings), changes)


def changed(config: TrainingConfig, changes: Iterable[str] | Mapping[str, Any]) -> TrainingConfig:
    """Return settings with overrides applied; see `load_training`."""
    return checked(with_overrides(config.model_dump(exclude_none=True), changes), "settings")


def checked(settings: Mapping[str, Any], where: str) -> TrainingConfig:
    """Return settings as a checked model.

    Args:
        settings: nested tables.
        where: origin of the settings, for errors.

    Raises:
        UserError: the first fault, with its key; or the settings hold a key of a service.
    """
    require_no_secrets(repr(settings))
    try:
        return TrainingConfig.model_validate(settings)
    except ValidationError as error:
        raise _fault(error, where) from error


def _read(name: str, folder: Path, seen: tuple[str, ...]) -> Settings:
    path = _found(name, folder)
    if str(path) in seen:
        raise UserError(f"{path}: extends itself")
    try:
        content = read_toml(str(path), read_file(path))
    except OSError as error:
        raise BrokenInput(f"{path}: {error.strerror or error}") from error
    return _extended(content, path.parent, (*seen, str(path)))


def _found(name: str, folder: Path) -> Path:
    if name in preset_names():
        return _PRESETS / f"{name}.toml"
    path = folder / name
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise BrokenInput(f"{path}: no such file")
        return path
    raise UnknownName(f"{UnknownName.of('preset', name, preset_names())}; or give the path of a .toml file")


def _extended(content: Settings, folder: Path, seen: tuple[str, ...]) -> Settings:
    base = content.pop(_EXTENDS, "")
    if not isinstance(base, str):
        raise UserError(f"{_EXTENDS}: must be the name of a preset or a path, got {base!r}")
    if not base:
        return content
    found = _read(base, folder, seen)
    found.pop("about", None)
    return _merged(found, content)


def _merged(base: Settings, over: Mapping[str, Any]) -> Settings:
    """Return the settings of `base` with those of `over` in their place, table by table."""
    return _merged_tables(_without_replaced_players(base, over), over)


def _merged_tables(base: Settings, over: Mapping[str, Any]) -> Settings:
    merged = dict(base)
    for key, value in over.items():
        mine = merged.get(key)
        merged[key] = _merged_tables(mine, value) if isinstance(mine, dict) and isinstance(value, Mapping) else value
    return merged


def _without_replaced_players(base: Settings, over: Mapping[str, Any]) -> Settings:
    """Remove the players that `over` replaces: a model by an agent, two models by a shared one or a base."""
    agents, changes = base.get("agents"), over.get("agents")
    if not isinstance(agents, Mapping) or not isinstance(changes, Mapping):
        return dict(base)
    kept: dict[str, Any] = {}
    sets_shared = _sets_player(changes, "shared")
    sets_roles = _sets_player(changes, "coder") or _sets_player(changes, "tester")
    sets_base = bool(changes.get("base"))
    sets_model = sets_shared or any(_sets_player(changes, role, "model") for role in ("coder", "tester"))
    for name, options in agents.items():
        if name == "base" and sets_model:
            continue
        is_replaced = _sets_player(changes, name) or sets_base or (sets_roles if name == "shared" else sets_shared)
        if name in _PLAYERS and is_replaced and isinstance(options, Mapping):
            kept[name] = {key: value for key, value in options.items() if key not in ("model", "agent")}
        else:
            kept[name] = options
    return {**base, "agents": kept}


def _sets_player(agents: Mapping[str, Any], name: str, *kinds: str) -> bool:
    options = agents.get(name)
    wanted = kinds or ("model", "agent")
    return name in _PLAYERS and isinstance(options, Mapping) and any(options.get(kind) for kind in wanted)


def read_overrides(overrides: Iterable[str] | Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield dotted keys and values.

    Raises:
        UserError: a text is not `section.key=value`.
    """
    if isinstance(overrides, Mapping):
        yield from overrides.items()
        return
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set {text}: expected section.key=value")
        yield key.strip(), _value(value.strip())


def _value(text: str) -> Any:
    try:
        return read_toml(text, f"value = {text}".encode("utf-8", "surrogatepass"))["value"]
    except BrokenInput:
        return text


def _fault(error: ValidationError, where: str) -> UserError:
    fault = error.errors(include_url=False, include_context=False)[0]
    path = [str(part) for part in fault["loc"]]
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        if path[:-1] == ["rollout"]:
            refuse_truncation(path[-1:])
        return UnknownName(f"{where}: {_unknown(path)}")
    return BrokenInput(f"{where}: {fault_of(error)}")


def _unknown(path: Sequence[str]) -> str:
    """Say that a setting is unknown; a key without its section is answered with the sections that have it."""
    name = ".".join(path)
    tables = {each: field.annotation for each, field in TrainingConfig.model_fields.items()}
    full = [f"{each}.{name}" for each, table in tables.items() if _is_section(table) and name in _names_in(table)]
    if full:
        return f"unknown setting {name!r}: did you mean {' or '.join(map(repr, full))}?"
    return str(UnknownName.of("setting", name, _known(path[:-1])))


def _known(path: Iterable[str]) -> list[str]:
    """Return the dotted names of the settings in a table."""
    section: Any = TrainingConfig
    for part in path:
        hint = get_type_hints(section)[part]
        section = next(each for each in (hint, *get_args(hint)) if _is_section(each))  # the section may be optional
    prefix = "".join(f"{part}." for part in path)
    return [prefix + each for each in _names_in(section)]


def _is_section(hint: Any) -> bool:
    return hasattr(hint, "model_fields") or is_dataclass(hint)


def _names_in(section: Any) -> list[str]:
    return [each.name for each in fields(section)] if is_dataclass(section) else list(section.model_fields)
