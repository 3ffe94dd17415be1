"""From a TOML file, a preset's name and overrides to a checked `TrainingConfig`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from codea1_agents.train.loop.options import TrainingConfig
from codea1_env.errors import BrokenInput, UnknownName, UserError
from codea1_env.secret import without_secrets

_PRESETS = Path(__file__).parents[2] / "presets"
_EXTENDS = "extends"
_SEATS = ("coder", "tester", "shared")

Settings = dict[str, Any]


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in _PRESETS.glob("*.toml")))


def load_training(
    source: str | Path | Mapping[str, Any] = "", overrides: Iterable[str] | Mapping[str, Any] = ()
) -> TrainingConfig:
    """Return the settings of a run.

    Args:
        source: a preset's name, the path of a TOML file, or its content as a mapping; empty: the defaults. Its
            `extends` names another one (a preset, or a path from the file's folder), whose settings it replaces one by
            one.
        overrides: `section.key=value` with TOML values (text may go without quotes), or a mapping of dotted keys.

    Raises:
        UserError: no such file or preset, not TOML, an unknown setting, a value of the wrong type or out of range.
    """
    if isinstance(source, Mapping):
        settings, where = _extended(dict(source), Path(), ()), "settings"
    elif source == "":
        settings, where = {}, "settings"
    else:
        settings, where = _read(str(source), Path(), ()), str(source)
    return checked(with_overrides(settings, overrides), where)


def with_overrides(settings: Mapping[str, Any], overrides: Iterable[str] | Mapping[str, Any]) -> Settings:
    """Return nested tables with some settings replaced; see `load_training`."""
    found = dict(settings)
    for key, value in _pairs(overrides):
        found = _merged(found, _nested(key, value))
    return found


def checked(settings: Mapping[str, Any], where: str) -> TrainingConfig:
    """Return settings as a model.

    Args:
        settings: nested tables.
        where: they come from, for errors.

    Raises:
        UserError: the first fault, with its key's path.
    """
    try:
        return TrainingConfig.model_validate(settings)
    except ValidationError as error:
        raise _fault(error, where) from error


def _read(name: str, beside: Path, seen: tuple[str, ...]) -> Settings:
    path = _found(name, beside)
    if str(path) in seen:
        raise UserError(f"{path}: extends itself")
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BrokenInput(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
        raise BrokenInput(f"{path}: not TOML ({error})") from error
    return _extended(content, path.parent, (*seen, str(path)))


def _found(name: str, beside: Path) -> Path:
    if name in preset_names():
        return _PRESETS / f"{name}.toml"
    path = beside / name
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise BrokenInput(f"{path}: no such file")
        return path
    raise UnknownName(f"{UnknownName.of('preset', name, preset_names())}; or give the path of a .toml file")


def _extended(content: Settings, folder: Path, seen: tuple[str, ...]) -> Settings:
    base = content.pop(_EXTENDS, "")
    if not isinstance(base, str):
        raise UserError(f"{_EXTENDS}: must be the name of a preset or a path, not {base!r}")
    if not base:
        return content
    found = _read(base, folder, seen)
    found.pop("about", None)
    return _merged(found, content)


def _merged(base: Settings, over: Mapping[str, Any]) -> Settings:
    """Return the settings with others in their place, table by table."""
    return _merged_tables(_vacated(base, over), over)


def _merged_tables(base: Settings, over: Mapping[str, Any]) -> Settings:
    merged = dict(base)
    for key, value in over.items():
        mine = merged.get(key)
        merged[key] = _merged_tables(mine, value) if isinstance(mine, dict) and isinstance(value, Mapping) else value
    return merged


def _vacated(base: Settings, over: Mapping[str, Any]) -> Settings:
    """Take off their seats those whom `over` replaces: a model by an agent, two models by a shared one."""
    agents, told = base.get("agents"), over.get("agents")
    if not isinstance(agents, Mapping) or not isinstance(told, Mapping):
        return dict(base)
    left: dict[str, Any] = {}
    shares, separates = _takes(told, "shared"), _takes(told, "coder") or _takes(told, "tester")
    for seat, options in agents.items():
        leaves = _takes(told, seat) or (shares and seat in ("coder", "tester")) or (separates and seat == "shared")
        is_table = isinstance(options, Mapping)
        left[seat] = (
            {k: v for k, v in options.items() if k not in ("model", "agent")} if leaves and is_table else options
        )
    return {**base, "agents": left}


def _takes(agents: Mapping[str, Any], seat: str) -> bool:
    options = agents.get(seat)
    return seat in _SEATS and isinstance(options, Mapping) and bool(options.get("model") or options.get("agent"))


def _pairs(overrides: Iterable[str] | Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
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
        return tomllib.loads(f"it = {text}")["it"]
    except tomllib.TOMLDecodeError:
        return text


def _nested(key: str, value: Any) -> Settings:
    settings: Settings = value
    for part in reversed(key.split(".")):
        settings = {part: settings}
    return settings


def _fault(error: ValidationError, where: str) -> UserError:
    fault = error.errors(include_url=False, include_context=False)[0]
    path = [str(part) for part in fault["loc"]]
    name = ".".join(path)
    if fault["type"] == "extra_forbidden":
        known = _known(path[:-1])
        return UnknownName(f"{where}: {UnknownName.of('setting', name, known)}")
    said = fault["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return BrokenInput(without_secrets(f"{where}: {name} {said}, not {fault['input']!r}"))


def _known(path: Iterable[str]) -> list[str]:
    """Return the dotted names of the settings beside one."""
    model: type[BaseModel] = TrainingConfig
    for part in path:
        told = model.model_fields[part].annotation
        model = next(each for each in (told, *get_args(told)) if hasattr(each, "model_fields"))  # or: it, or nothing
    prefix = "".join(f"{part}." for part in path)
    return [prefix + name for name in model.model_fields]
