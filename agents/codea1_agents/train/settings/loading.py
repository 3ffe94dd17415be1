"""Reads a TOML file or a preset, applies overrides, and returns a checked `TrainingConfig`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
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
        settings, where = _extend(dict(source), Path(), ()), "settings"
    elif source == "":
        settings, where = {}, "settings"
    else:
        settings, where = _read(str(source), Path(), ()), str(source)
    return _check(_override(settings, overrides), where)


def apply_changes(config: TrainingConfig, changes: Iterable[str] | Mapping[str, Any]) -> TrainingConfig:
    """Return settings with overrides applied; see `load_training`."""
    return _check(_override(config.model_dump(exclude_none=True), changes), "settings")


def _override(settings: Settings, overrides: Iterable[str] | Mapping[str, Any]) -> Settings:
    """Return nested tables with overrides applied; see `load_training`."""
    changes: Settings = {}
    for key, value in read_overrides(overrides):
        nested = value
        for part in reversed(key.split(".")):
            nested = {part: nested}
        changes = _merge_tables(changes, nested)  # what is set together contradicts itself, and is not replaced
    return _replace(settings, changes)


def _check(settings: Settings, where: str) -> TrainingConfig:
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
        fault = error.errors(include_url=False, include_context=False)[0]
        path = [str(part) for part in fault["loc"]]
        if fault["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
            raise BrokenInput(f"{where}: {fault_of(error)}") from error
        if path[:-1] == ["rollout"]:
            refuse_truncation(path[-1:])
        raise UnknownName(f"{where}: {_unknown('.'.join(path))}") from error


def _read(name: str, folder: Path, seen: tuple[str, ...]) -> Settings:
    """Return the settings of a preset, or of a file whose path begins in a folder, with those that it extends."""
    path = folder / name
    if name in preset_names():
        path = _PRESETS / f"{name}.toml"
    elif path.suffix != ".toml" and not path.is_file():
        raise UnknownName(f"{UnknownName.of('preset', name, preset_names())}; or give the path of a .toml file")
    if str(path) in seen:
        raise UserError(f"{path}: extends itself")
    try:
        content = read_toml(str(path), read_file(path))
    except FileNotFoundError as error:
        raise BrokenInput(f"{path}: no such file") from error
    except OSError as error:
        raise BrokenInput(f"{path}: {error.strerror or error}") from error
    return _extend(content, path.parent, (*seen, str(path)))


def _extend(content: Settings, folder: Path, seen: tuple[str, ...]) -> Settings:
    base = content.pop(_EXTENDS, "")
    if not isinstance(base, str):
        raise UserError(f"{_EXTENDS}: must be the name of a preset or a path, got {base!r}")
    if not base:
        return content
    settings = _read(base, folder, seen)
    settings.pop("about", None)
    return _replace(settings, content)


def _merge_tables(base: Settings, over: Mapping[str, Any]) -> Settings:
    """Return the settings of `base` with those of `over` in their place, table by table."""
    merged = dict(base)
    for key, value in over.items():
        mine = merged.get(key)
        merged[key] = _merge_tables(mine, value) if isinstance(mine, dict) and isinstance(value, Mapping) else value
    return merged


def _replace(base: Settings, over: Mapping[str, Any]) -> Settings:
    """Return the settings of `base` with those of `over` in their place, without the players that these replace.

    They replace a model by an agent, and two models by a shared one or a base.
    """
    agents, changes = base.get("agents"), over.get("agents")
    if not isinstance(agents, Mapping) or not isinstance(changes, Mapping):
        return _merge_tables(base, over)

    def sets(name: str, *kinds: str) -> bool:
        options = changes.get(name)
        return isinstance(options, Mapping) and any(options.get(kind) for kind in kinds or ("model", "agent"))

    sets_roles, sets_shared = sets("coder") or sets("tester"), sets("shared")
    kept: Settings = {}
    for name, options in agents.items():
        if name == "base" and (sets_shared or sets("coder", "model") or sets("tester", "model")):
            continue
        is_replaced = sets(name) or bool(changes.get("base")) or (sets_roles if name == "shared" else sets_shared)
        if name in _PLAYERS and is_replaced and isinstance(options, Mapping):
            options = {key: value for key, value in options.items() if key not in ("model", "agent")}  # noqa: PLW2901
        kept[name] = options
    return _merge_tables({**base, "agents": kept}, over)


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
        try:
            yield key.strip(), read_toml(text, f"value = {value.strip()}".encode("utf-8", "surrogatepass"))["value"]
        except BrokenInput:
            yield key.strip(), value.strip()


def _unknown(name: str) -> str:
    """Say that a setting is unknown; a key without its section is answered with the sections that have it."""
    known = list(_setting_names(TrainingConfig))
    full = [key for key in known if key.partition(".")[2] == name]
    if full:
        return f"unknown setting {name!r}: did you mean {' or '.join(map(repr, full))}?"
    table = name.rpartition(".")[0]
    return str(UnknownName.of("setting", name, [key for key in known if key.rpartition(".")[0] == table]))


def _setting_names(table: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of all settings in a table, with those of its tables, which may be optional."""
    models = {} if is_dataclass(table) else table.model_fields
    names = {name: field.annotation for name, field in models.items()} or get_type_hints(table)
    for name, hint in names.items():
        yield prefix + name
        for kind in (hint, *get_args(hint)):
            if is_dataclass(kind) or hasattr(kind, "model_fields"):
                yield from _setting_names(kind, f"{prefix}{name}.")
