"""The parts that the JSON objects of several commands share; `documents.json` is their JSON Schema."""

from __future__ import annotations

from typing import Any

from codea1_env.problems import ProblemSet
from codea1_env.runs.config import problems_digest


def problems_document(source: str, problems: ProblemSet) -> dict[str, Any]:
    """Return which problems a command used.

    Args:
        source: as the user named it.
        problems: those that were used.
    """
    return {"source": source, "name": problems.name, "digest": problems_digest(problems), "n": len(problems)}
