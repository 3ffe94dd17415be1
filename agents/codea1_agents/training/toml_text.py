"""Settings as TOML text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codea1_agents.training.options import TrainingConfig


def to_toml(config: TrainingConfig) -> str:
    """Return all settings of a run, `load_training` reads them back; what is unset is left out."""
    return "\n".join(_lines(config.model_dump(mode="json", exclude_none=True), ())) + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Yield a table's own values before its sub-tables, as TOML wants it."""
    own = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if path and own:
        yield ""
        yield f"[{'.'.join(map(_key, path))}]"
    for key, value in own.items():
        yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _lines(value, (*path, key))


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").replace("-", "").isalnum() else _value(key)


def _value(value: object) -> str:
    """Write a value. TOML's basic strings are JSON's but for DEL, which TOML wants escaped."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"TOML cannot hold {value!r} here")
