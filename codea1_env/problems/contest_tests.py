"""Converts the inputs and outputs of contest data into golden cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codea1_env.errors import BrokenInput
from codea1_env.facts.problem_kinds import RUN
from codea1_env.problems.columns import checked_text
from codea1_env.problems.problem import GoldenCase

_DEEPEST = 64
"""Levels of lists in one value; Python's parser refuses about 200 levels of brackets."""


def printed_cases(inputs: object, outputs: object, what: str) -> list[GoldenCase]:
    """Return one case per input of a program on standard input.

    Args:
        inputs: one text per case, or one list of lines.
        outputs: likewise.
        what: the column, for messages.

    Raises:
        BrokenInput: they are not lists of equal length of texts.
    """
    return [
        GoldenCase(f"{RUN}({_lines(text, f'an input of {what}')!r})", repr(_lines(printed, f"an output of {what}")))
        for text, printed in _pairs(inputs, outputs, what)
    ]


def call_cases(entry_point: str, arguments: object, answers: object, what: str) -> list[GoldenCase]:
    """Return one case per call of an entry point.

    Args:
        entry_point: the function under test.
        arguments: one list of plain values per call.
        answers: one plain value per call.
        what: the column, for messages.

    Raises:
        BrokenInput: they are not lists of equal length, or a value is nested too deeply.
    """
    return [
        GoldenCase(f"{entry_point}({_arguments(values, what)})", _source(answer, what))
        for values, answer in _pairs(arguments, answers, what)
    ]


def unwrap(answers: object) -> object:
    """Return the answers of APPS and TACO, which some of their sources store as lists of one item each."""
    if isinstance(answers, list) and all(isinstance(answer, list) and len(answer) == 1 for answer in answers):
        return [answer[0] for answer in answers]
    return answers


def _pairs(inputs: object, outputs: object, what: str) -> list[tuple[Any, Any]]:
    for each in (inputs, outputs):
        if not isinstance(each, Sequence) or isinstance(each, str | bytes):
            raise BrokenInput(f"{what}: inputs and outputs must be lists, got {type(each).__name__}")
    all_inputs, all_outputs = list(inputs), list(outputs)  # type: ignore[call-overload]  # just checked
    if len(all_inputs) != len(all_outputs):
        raise BrokenInput(f"{what} has {len(all_inputs)} inputs, but {len(all_outputs)} outputs; each input needs one")
    return list(zip(all_inputs, all_outputs, strict=True))


def _lines(value: object, what: str) -> str:
    if isinstance(value, list):
        return "\n".join(checked_text(line, f"a line of {what}") for line in value)
    return checked_text(value, what)


def _arguments(values: object, what: str) -> str:
    if not isinstance(values, list):
        raise BrokenInput(f"{what}: the input of a call must be a list of arguments, got {type(values).__name__}")
    return ", ".join(_source(each, what) for each in values)


def _source(value: object, what: str) -> str:
    _refuse_depth(value, _DEEPEST, what)
    return repr(value)


def _refuse_depth(value: object, levels: int, what: str) -> None:
    if not isinstance(value, list | dict):
        return
    if not levels:
        raise BrokenInput(f"{what} contains a value nested deeper than {_DEEPEST} levels")
    for item in value.values() if isinstance(value, dict) else value:
        _refuse_depth(item, levels - 1, what)
