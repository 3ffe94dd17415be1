from __future__ import annotations

import ast
from difflib import SequenceMatcher

import pytest

from codea1_agents.scripted.mutation import mutants, without_docstrings
from codea1_agents.scripted.mutation_operators import Operator
from codea1_env.problems import humaneval

SOURCE = '''"""Module text, 1 < 2."""
import math
LIMIT = 10
UNUSED = 5

def helper(n: "int < 3" = 4) -> bool:
    """Says whether 1 < 2."""
    return n <= LIMIT

def stranger(n):
    return n + 1

@decorate(1)
def f(items: list[1]) -> int:
    """Returns 1 + 1."""
    return [item for item in items if helper(item)]
'''


def test_mutants_of_real_solutions_parse_are_distinct_and_differ_from_them_in_one_place() -> None:
    for problem in humaneval.load()[::8]:
        found = mutants(problem.solution, entry_point=problem.entry_point)
        texts, before = [mutant.program for mutant in found], ast.unparse(ast.parse(problem.solution))
        assert texts
        assert len(set(texts)) == len(texts)
        for mutant in found:
            compile(mutant.program, "mutant", "exec")
            assert 1 <= mutant.line <= problem.solution.count("\n") + 1
            lines = before.split("\n"), mutant.program.split("\n")
            opcodes = SequenceMatcher(None, *lines, autojunk=False).get_opcodes()
            assert sum(tag != "equal" for tag, *_ in opcodes) == 1


def test_hints_docstrings_decorators_and_imports_are_never_mutated_and_the_order_is_the_same() -> None:
    kept = ["Module text, 1 < 2.", "import math", "n: 'int < 3'", "-> bool", "Says whether 1 < 2.", "@decorate(1)"]
    kept += ["items: list[1]", "Returns 1 + 1."]
    found = mutants(SOURCE)
    assert found
    for mutant in found:
        assert [text for text in kept if text not in mutant.program] == []
    first = [mutant.program for mutant in mutants(SOURCE)]
    mutants.cache_clear()
    assert [mutant.program for mutant in mutants(SOURCE)] == first


def test_only_code_that_the_entry_point_reaches_is_mutated_and_all_if_it_is_not_defined() -> None:
    lines = {mutant.line for mutant in mutants(SOURCE, entry_point="f")}
    assert lines == {3, 6, 8, 16}  # LIMIT, helper's default and body, f's body; not UNUSED, not stranger
    assert mutants(SOURCE, entry_point="nowhere") == mutants(SOURCE)
    assert {4, 11} <= {mutant.line for mutant in mutants(SOURCE)}


def test_a_note_says_what_was_changed_and_what_has_nothing_to_change_has_no_mutant() -> None:
    (mutant,) = (m for m in mutants("def f(a, b):\n    return a < b") if m.operator is Operator.BOUNDARY)
    assert (mutant.line, mutant.note) == (2, "`a <= b` stands for `a < b`")
    assert mutants("def f(a):\n    return a") == ()
    with pytest.raises(SyntaxError):
        mutants("def f(:")


def test_bare_code_has_neither_docstrings_nor_comments_and_still_parses() -> None:
    source = 'def f():\n    """Only a docstring."""\n\nclass A:\n    """Text."""\n    x = 1  # why\n'
    assert without_docstrings(source) == "def f():\n    pass\n\nclass A:\n    x = 1"
