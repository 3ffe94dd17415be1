"""Agents of the two toy problems: they reply by the entry point."""

from __future__ import annotations

from codea1_env.agent import Observation
from tests.support.toys import RIGHT, WRONG, fenced

GOOD = {"add": RIGHT, "last": fenced("def last(items):\n    return items[-1] if items else None")}
BAD = {"add": WRONG, "last": fenced("def last(items):\n    return items[-1]")}
SUITE = {
    "add": "assert add(1, 2) == 3\nassert add(0, 0) == 0",
    "last": "assert last([]) == None\nassert last([1]) == 1",
}


def good(observation: Observation) -> str:
    return GOOD[observation["entry_point"]]


def bad(observation: Observation) -> str:
    return BAD[observation["entry_point"]]


def asserting(observation: Observation) -> str:
    return SUITE[observation["entry_point"]]
