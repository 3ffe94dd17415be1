"""JSON of somebody else: what it holds, or what is wrong with it, in one line."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from codea1_env.errors import BrokenInput


def read_json(what: str, data: bytes) -> Any:
    """Return what JSON holds in which no name is given twice and numbers are finite.

    Raises:
        BrokenInput: it is none; the message begins with `what`.
    """
    try:
        return json.loads(data, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BrokenInput(f"{what}: {error if isinstance(error, BrokenInput) else 'expected JSON'}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in given:
            raise BrokenInput(f"expected each name once, got {name!r:.60} twice")
        given[name] = value
    return given


def _refuse(constant: str) -> None:
    raise BrokenInput(f"expected finite numbers, got {constant}")


def first_fault(error: ValidationError) -> str:
    """Return the first fault of a failed validation in one line: its place, its message, the number of other faults."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    where, what = ".".join(map(str, faults[0]["loc"])) or "the whole", faults[0]["msg"]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where}: {what.replace('Input should be', 'expected')}{more}"
