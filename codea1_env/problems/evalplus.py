"""EvalPlus' own JSONL (HumanEvalPlus, MbppPlus): inputs without expected values.

The canonical solution computes the expected values. So the golden test is a harness that contains the canonical
solution in a separate namespace, runs it on every input, and compares the candidate's value with its value as EvalPlus
does: exactly, or for floats within `atol` (and a relative 1e-7). The candidate never runs in the process of the
harness, so the solution stays secret.

Two kinds of facts are in EvalPlus' code rather than in its data, and are repeated here as tables: which MBPP+ inputs
are tuples, sets or complex numbers, which JSON cannot express, and which problems have more than one right answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from codea1_env.errors import BrokenInput
from codea1_env.problems.columns import Row, text
from codea1_env.problems.examples import find_examples
from codea1_env.problems.problem import GoldenHarness, Problem
from codea1_env.problems.python_source import before_function, imports_of, join_sources, whole_solution

_LICENCES = {"HumanEval": "MIT AND Apache-2.0", "Mbpp": "CC-BY-4.0 AND Apache-2.0"}

_EXACT = "exact"
_RULES = {
    "find_zero": "zero of the polynomial",
    "check_str": "truth",
    "text_match_three": "truth",
    "text_starta_endb": "truth",
    "similar_elements": "set",
    "find_char_long": "set",
    "common_in_nested_lists": "set",
    "extract_singly": "set",
    "larg_nnum": "set",
    "intersection_array": "set",
    "find_dissimilar": "set",
    "Diff": "set",
}
"""By entry point, how two values are compared if a problem has several right answers."""

_HARNESS = """
import copy as _copy
from math import inf, nan

_SOLUTION = {solution!r}
_INPUTS = {inputs!r}
_ATOL = {atol!r}
_RULE = {rule!r}


def _is_floats(value):
    return isinstance(value, float) or (
        isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(item, float) for item in value)
    )


def _close(found, expected, atol):
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(found, (list, tuple))
            and len(found) == len(expected)
            and all(_close(a, b, atol) for a, b in zip(found, expected))
        )
    if found == expected:
        return True
    numbers = (int, float, complex)
    if not isinstance(found, numbers) or not isinstance(expected, numbers):
        return False
    if found != found or expected != expected:
        return found != found and expected != expected
    return abs(found - expected) <= atol + 1e-7 * abs(expected)


def _same(arguments, found, expected):
    if _RULE == "zero of the polynomial":
        return abs(sum(c * found**i for i, c in enumerate(arguments[0]))) <= (_ATOL or 1e-4)
    if _RULE == "set":
        return set(found) == set(expected)
    if _RULE == "truth":
        return (found if isinstance(found, bool) else found is not None) == (
            expected if isinstance(expected, bool) else expected is not None
        )
    if found == expected:
        return True
    atol = _ATOL or (1e-6 if _is_floats(expected) else 0)
    return bool(atol) and _close(found, expected, atol)


def check(candidate):
    namespace = {{"__name__": "solution"}}
    exec(_SOLUTION, namespace)
    solution = namespace[{entry_point!r}]
    n_compared = 0
    for arguments in _INPUTS:
        try:
            expected = solution(*_copy.deepcopy(arguments))
        except Exception:
            continue  # says nothing about the candidate
        found = candidate(*_copy.deepcopy(arguments))
        assert _same(arguments, found, expected), f"{{arguments}}: {{found}} is not {{expected}}"
        n_compared += 1
    if not n_compared:
        raise ValueError("the solution fails on every input")
"""


def problem_from_row(row: Row) -> Problem:
    """Return the problem of a row with `base_input` and `plus_input` (rows with `test` are read as HumanEval's).

    Raises:
        UserError: a column is missing or of the wrong type, or the solution does not define the entry point.
    """
    task_id, prompt, entry_point = text(row, "task_id"), text(row, "prompt"), text(row, "entry_point")
    family = task_id.partition("/")[0]
    solution = whole_solution(prompt, text(row, "canonical_solution"), entry_point)
    harness = _HARNESS.format(
        solution=solution,
        inputs=restore_types(task_id, [*_inputs(row, "base_input"), *_inputs(row, "plus_input")]),
        atol=_atol(row),
        rule=_RULES.get(entry_point, _EXACT) if family in _LICENCES else _EXACT,
        entry_point=entry_point,
    )
    return Problem(
        id=task_id,
        statement=prompt,
        entry_point=entry_point,
        solution=solution,
        golden=(GoldenHarness(join_sources(before_function(prompt, entry_point), harness)),),
        imports=imports_of(prompt),
        examples=find_examples(prompt, entry_point),
        source="EvalPlus",
        licence=_LICENCES.get(family, ""),
    )


def _inputs(row: Row, column: str) -> list[list[Any]]:
    inputs = row.get(column)
    if inputs in (None, {}):  # MbppPlus writes {} for "none"
        return []
    if not isinstance(inputs, list) or not all(isinstance(arguments, list) for arguments in inputs):
        raise BrokenInput(f"column {column!r} must be a list of argument lists")
    return inputs


def _atol(row: Row) -> float:
    atol = row.get("atol", 0)
    if isinstance(atol, bool) or not isinstance(atol, int | float):
        raise BrokenInput(f"column 'atol' must be a number, got {type(atol).__name__}")
    return float(atol)


def restore_types(task_id: str, inputs: list[list[Any]]) -> list[list[Any]]:
    """Return the inputs with the tuples, sets and complex numbers of MBPP+, which are lists and strings in JSON.

    Args:
        task_id: e.g. `Mbpp/2`; the inputs of other families are returned as they are.
        inputs: one list of arguments per call.

    Raises:
        BrokenInput: an input does not have the shape of its problem's inputs.
    """
    family, _, number = task_id.partition("/")
    restore = _RESTORED.get(number) if family == "Mbpp" else None
    if restore is None:
        return inputs
    try:
        return [restore(arguments) for arguments in inputs]
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise BrokenInput(f"an input of {task_id} does not have the shape that EvalPlus gives it: {error}") from error


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


_TABLE: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "2 116 132 143 222 261 273 394 399 421 424 429 470 560 579 596 616 630 726 740 744 809": lambda inputs: [
        tuple(argument) for argument in inputs
    ],
    "63 64 70 94 120 237 272 299 400 409 417 438 473 614 780": lambda inputs: [
        [tuple(item) for item in argument] for argument in inputs
    ],
    "75 413 444 753": lambda inputs: [[tuple(item) for item in inputs[0]], *inputs[1:]],
    "106 750": lambda inputs: [inputs[0], tuple(inputs[1]), *inputs[2:]],
    # In this problem an empty list is an empty dict, not an empty set.
    "115": lambda given: [[set(item) if isinstance(item, list) and item else {} for item in given[0]]],
    "124": lambda given: [float(given[0]), complex(given[1])],
    "250 307 405 446 617 720 763 808": lambda given: [tuple(given[0]), *given[1:]],
    "259 401 445": lambda given: [tuple(tuple(item) for item in argument) for argument in given],
    "278": lambda given: [tuple(tuple(item) if isinstance(item, list) else item for item in given[0])],
    "722": lambda given: [{key: tuple(value) for key, value in given[0].items()}, *given[1:]],
    "252": lambda given: [complex(given[0])],
    "580 615 791": lambda given: list(map(_freeze, given)),
}
"""By the numbers of problems, how the arguments of a call are restored."""
_RESTORED = {number: restore for numbers, restore in _TABLE.items() for number in numbers.split()}
