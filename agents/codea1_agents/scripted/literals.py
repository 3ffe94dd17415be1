"""Writes plain data as Python source that is the same in every process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def literal(value: object) -> str:
    """Return ASCII source of a value, for `ast.literal_eval`.

    The elements of a set are sorted by their source, since the set's own order depends on the hash seed.

    Raises:
        ValueError: the value, or a part of it, cannot be written as a literal.
    """
    if value is None or isinstance(value, bool | int | str | bytes):
        return ascii(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, tuple):
        items = [literal(item) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, set):
        return "{" + ", ".join(sorted(map(literal, value))) + "}" if value else "set()"
    raise ValueError(f"{type(value).__name__} cannot be written as a literal")


_CHANGED = "changed"
_CHANGEABLE = (list, dict, set)


def call_text(entry_point: str, arguments: Sequence[object], names: Sequence[str | None] = ()) -> str:
    """Return the source of one call.

    Args:
        entry_point: name of the function.
        arguments: plain values.
        names: for each argument the keyword to pass it by, or None; may be shorter than `arguments`.
    """
    keywords = [*names, *[None] * len(arguments)]
    parts = (
        literal(value) if name is None else f"{name}={literal(value)}"
        for value, name in zip(arguments, keywords, strict=False)
    )
    return f"{entry_point}({', '.join(parts)})"


def effect_text(entry_point: str, arguments: Sequence[object], names: Sequence[str | None] = ()) -> str:
    """Return the source of the first argument that can be changed, as it is after one call; see `call_text`.

    Without such an argument, it is the source of the call.
    """
    changed = next((n for n, value in enumerate(arguments) if isinstance(value, _CHANGEABLE)), None)
    if changed is None:
        return call_text(entry_point, arguments, names)
    keywords = [*names, *[None] * len(arguments)]
    texts = [_CHANGED if n == changed else literal(value) for n, value in enumerate(arguments)]
    parts = (text if name is None else f"{name}={text}" for text, name in zip(texts, keywords, strict=False))
    call = f"{entry_point}({', '.join(parts)})"
    return f"(lambda {_CHANGED}: ({call}, {_CHANGED})[1])({literal(arguments[changed])})"


def unique(values: Iterable[object]) -> list[object]:
    """Return the values without repetition, in order; 1, 1.0 and True are three different values."""
    first: dict[str, object] = {}
    for value in values:
        first.setdefault(literal(value), value)
    return list(first.values())


def _float(value: float) -> str:
    if value != value:
        raise ValueError("nan cannot be written as a literal")
    return repr(value).replace("inf", "1e999")
