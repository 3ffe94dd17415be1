"""Jobs and their reports as JSON: their fields by name, calls as lists, bytes in base64."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from codea1_env.errors import BrokenInput
from codea1_env.records.faults import first_fault, read_json
from codea1_env.sandbox.interface import Job, JobReport

_T = TypeVar("_T")

_CONFIG = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")
MOST_ITEMS = 65_536
"""Most jobs of a request. Each broken job is answered with an error up to a hundred times its size."""
_NOT_SENT = {"__all__": {"problem_id"}}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@cache
def _jobs() -> TypeAdapter[list[Job]]:
    return TypeAdapter(list[Job], config=_CONFIG)


@cache
def _reports() -> TypeAdapter[list[JobReport]]:
    return TypeAdapter(list[JobReport], config=_CONFIG)


def jobs_to_json(jobs: Sequence[Job]) -> bytes:
    """Return jobs as a JSON array, without `problem_id`, which only people here read.

    UTF-8 has no lone surrogates. A source with one is a syntax error, and so is one with NUL, which replaces it.
    """
    try:
        return _jobs().dump_json([*jobs], exclude=_NOT_SENT)
    except PydanticSerializationError:
        text = json.dumps(_jobs().dump_python([*jobs], mode="json", exclude=_NOT_SENT), ensure_ascii=False)
        return _LONE_SURROGATE.sub(r"\\u0000", text).encode()


def jobs_from_json(data: bytes) -> list[Job]:
    """Return the jobs of a JSON array.

    Raises:
        BrokenInput: it is none of jobs; the message names the first fault.
    """
    given = read_json("the body", data)
    lists = [given, *(each.get("calls") for each in given if isinstance(each, dict))] if isinstance(given, list) else ()
    if any(isinstance(each, list) and len(each) > MOST_ITEMS for each in lists):
        raise BrokenInput(f"expected at most {MOST_ITEMS} jobs, with at most {MOST_ITEMS} calls each")
    del given, lists  # what follows makes as much again
    return _read(_jobs(), data)


def reports_to_json(reports: Sequence[JobReport]) -> bytes:
    """Return reports as a JSON array."""
    return _reports().dump_json([*reports])


def reports_from_json(data: bytes) -> list[JobReport]:
    """Return the reports of a JSON array.

    Raises:
        BrokenInput: it is none of reports.
    """
    return _read(_reports(), data)


def _read(adapter: TypeAdapter[_T], data: bytes) -> _T:
    try:
        return adapter.validate_json(data, strict=True)
    except ValidationError as error:
        raise BrokenInput(first_fault(error)) from error
