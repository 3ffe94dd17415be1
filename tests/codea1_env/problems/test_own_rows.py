"""The kinds of problems in the project's own layout."""

from __future__ import annotations

from typing import Any

import pytest

from codea1_env.errors import UserError
from codea1_env.facts.answers import OutputForm
from codea1_env.facts.problem_kinds import ProblemKind, Script
from codea1_env.problems import GoldenCase, Problem
from codea1_env.problems.layouts import FoundRow, read_rows
from codea1_env.problems.own_rows import problem_from_row, problem_to_row

ARGUMENTS: dict[str, Any] = {"id": "a", "kind": "command_line", "statement": "Add.", "solution": "print(1)"}
SCRIPT: dict[str, Any] = {"id": "s", "kind": "stdin", "statement": "Add.", "solution": "print(1)"}
FUNCTION: dict[str, Any] = {"id": "f", "statement": "Add.", "entry_point": "add", "solution": "def add(a): ..."}
METHOD = FUNCTION | {"entry_point": "Solution().add", "solution": "class Solution:\n    def add(self, a): ..."}
RUN = {"golden": [{"input": "1", "output": "1"}]}
NOTHING = {"args": [], "output": ""}


def called(*tests: Any) -> dict[str, Any]:
    """The function with golden tests: text, or a pair of expression and expected value."""
    pairs = ("expression", "expected")
    golden = [each if isinstance(each, str) else dict(zip(pairs, each, strict=True)) for each in tests]
    return FUNCTION | {"golden": golden}


def test_a_program_on_standard_input_needs_no_entry_point() -> None:
    problem = problem_from_row(SCRIPT | {"golden": [{"input": "1 2\n", "output": "3\n"}, "assert run('') == '0'"]})
    assert (problem.entry_point, problem.script) == ("run", Script.WORDS)
    assert problem.golden == (GoldenCase("run('1 2\\n')", "'3\\n'"), GoldenCase("run('')", "'0'"))
    assert problem_from_row(SCRIPT | {"output": "exact"}).printed is OutputForm.EXACT


def test_a_golden_test_of_a_command_line_is_a_list_of_arguments() -> None:
    tests = [{"args": ["1 ", "'"], "output": "3\n", "input": None}, NOTHING, "assert run('1') == '0'"]
    problem = problem_from_row(ARGUMENTS | {"golden": tests})
    assert (problem.entry_point, problem.script, problem.defined) == ("run", Script.COMMAND_LINE_WORDS, "")
    assert [test.expression for test in problem.golden] == ["run('1 ', \"'\")", "run()", "run('1')"]
    assert problem_from_row(ARGUMENTS | {"output": "exact"}).script is Script.COMMAND_LINE_EXACT


def test_a_method_is_recognised_by_its_entry_point() -> None:
    assert problem_from_row(METHOD).kind is ProblemKind.METHOD
    assert problem_from_row(METHOD | {"kind": "method"}) == problem_from_row(METHOD)
    assert problem_from_row(FUNCTION).kind is ProblemKind.FUNCTION
    assert problem_from_row(METHOD).script is None


@pytest.mark.parametrize("row", [SCRIPT, SCRIPT | {"output": "exact"}, ARGUMENTS, METHOD, FUNCTION])
def test_a_row_is_read_back_and_that_of_a_function_has_no_new_fields(row: dict[str, Any]) -> None:
    problem = problem_from_row(row)
    written = problem_to_row(problem)
    assert problem_from_row(written) == problem
    assert row is not FUNCTION or not {"kind", "output"} & written.keys()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (SCRIPT | {"kind": "stdn"}, "column 'kind': unknown kind 'stdn': did you mean 'stdin'"),
        (SCRIPT | {"kind": 3}, "'kind' must be text, got int"),
        (SCRIPT | {"output": "word"}, "column 'output': unknown output 'word': did you mean 'words'"),
        (SCRIPT | {"solution": "print("}, "column 'solution' is not Python"),
        (SCRIPT | {"entry_point": "main"}, "entry point 'main' is not run, as in run.'3 4'. == '7'"),
        (SCRIPT | {"golden": [{"input": 1, "output": "1"}]}, "'input' of golden test 1 must be text, got int"),
        (SCRIPT | {"golden": [{"input": "1"}]}, "golden test 1 is neither"),
        (called("assert add(1) == 1", ("add(1", "1")), r"'expression' of golden test 2 is not Python: .* \(line 1\)"),
        (called(("add(1)", "1; 2")), "'expected' of golden test 1 is not one"),
        (called(("add(1)", ["a"])), r"must be text, got list; as text .*\['a'\]"),
        (ARGUMENTS | RUN, 'golden test 1, {input, output}, needs "kind": "stdin"'),
        (SCRIPT | {"golden": [NOTHING]}, 'golden test 1, {args, output}, needs "kind": "command_line"'),
        (ARGUMENTS | {"golden": [{"args": [], "output": "", "x": 1}]}, "neither .*, nor {args, output}, nor {source}"),
        (ARGUMENTS | {"entry_point": "main"}, "entry point 'main' is not run, as in run.'3', '4'. == '7'"),
        (ARGUMENTS | {"golden": [{"args": "1", "output": "1"}]}, "'args' of golden test 1 must be a list.*, got str"),
        (ARGUMENTS | {"golden": [{"args": ["1\0"], "output": "1"}]}, "item of 'args' of golden test 1 contains a NUL"),
        (ARGUMENTS | {"calls": {"in_place": True}}, "need a problem of one function"),
        (ARGUMENTS | {"answers": {"order": "unordered"}}, "not supported for printed outputs"),
        (FUNCTION | RUN, 'needs "kind": "stdin"'),
        (SCRIPT | RUN | {"entry_point": "main"}, "entry point 'main' is not run, as in run.'3 4'. == '7'"),
        (FUNCTION | RUN | {"entry_point": "run", "solution": "def run(x): ..."}, 'needs "kind": "stdin"'),
        (FUNCTION | {"answers": {"checker": "def chek(): ..."}}, "the checker does not define check"),
        (FUNCTION | {"solutoin": "x"}, "unknown field 'solutoin': did you mean 'solution'"),
        (FUNCTION | {"kind": "method"}, "entry point 'add' is not a method such as Solution"),
        (METHOD | {"kind": "function"}, "entry point 'Solution...add' is not a Python name"),
        (FUNCTION | {"entry_point": "ad"}, "the solution does not define ad: did you mean 'add'"),
        (METHOD | {"solution": "class Solution: ..."}, "the solution does not define add"),
        (FUNCTION | {"entry_point": ""}, "'entry_point' is empty"),
        ({name: FUNCTION[name] for name in FUNCTION if name != "entry_point"}, 'needs "kind": "stdin"'),
    ],
)
def test_a_broken_row_says_what_would_make_it_right(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        problem_from_row(row)


def test_a_column_of_another_name_is_a_note_and_a_misspelt_one_is_not() -> None:
    row = FUNCTION | {"difficulty": "hard", "tags": ["sums"]}
    notes = read_rows("rows", [FoundRow("1", row)], strict=True).notes
    assert set(notes) == {"column 'difficulty' is not used", "column 'tags' is not used"}
    with pytest.raises(UserError, match="unknown field 'exmaples': did you mean 'examples'"):
        read_rows("rows", [FoundRow("1", row | {"exmaples": []})], strict=True)


def test_a_problem_is_checked_however_it_is_made() -> None:
    with pytest.raises(UserError, match="is not a Python name"):
        Problem("x", "Add.", "run()", "print()", ())
