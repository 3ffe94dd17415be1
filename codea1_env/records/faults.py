"""What a failed validation of pydantic says, in one line."""

from __future__ import annotations

from pydantic import ValidationError


def first_fault(error: ValidationError) -> str:
    """Return the first fault of a failed validation in one line: its place, its message, the number of other faults."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    where, what = ".".join(map(str, faults[0]["loc"])) or "the whole", faults[0]["msg"]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where}: {what.replace('Input should be', 'expected')}{more}"
