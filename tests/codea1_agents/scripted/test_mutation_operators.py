from __future__ import annotations

import pytest

from codea1_agents.scripted.mutation import mutants
from codea1_agents.scripted.mutation_operators import Operator

CASES = [
    (Operator.BOUNDARY, "if a < b:\n    g()", "if a <= b:\n    g()"),
    (Operator.COMPARISON, "return a in b", "return a not in b"),
    (Operator.COMPARISON, "return a < b < c", "return a < b > c"),
    (Operator.ARITHMETIC, "return a + b", "return a - b"),
    (Operator.ARITHMETIC, "a += b", "a -= b"),
    (Operator.OPERANDS, "return a - b", "return b - a"),
    (Operator.CONSTANT, "return a * 10", "return a * 9"),
    (Operator.CONSTANT, "return a[0]", "return a[1]"),
    (Operator.TEXT, "return a in 'aeiou'", "return a in 'aeio'"),
    (Operator.BOOLEAN, "return a and b", "return a or b"),
    (Operator.BOOLEAN, "return True", "return False"),
    (Operator.NEGATION, "return not a", "return a"),
    (Operator.NEGATION, "return a if b else c", "return a if not b else c"),
    (Operator.GUARD, "if not a:\n    return 0\nreturn g(a)", "return g(a)"),
    (Operator.STATEMENT, "if a:\n    g(b)\nreturn b", "return b"),
    (Operator.STATEMENT, "a.sort()\nreturn a", "return a"),
    (Operator.STATEMENT, "a.sort()", "pass"),
    (Operator.SLICE, "return a[b:]", "return a[b + 1:]"),
    (Operator.SLICE, "return a[:b]", "return a[:b - 1]"),
    (Operator.RANGE, "for i in range(a, b):\n    g(i)", "for i in range(a, b - 1):\n    g(i)"),
    (Operator.RANGE, "for i in range(a):\n    g(i)", "for i in range(1, a):\n    g(i)"),
    (Operator.RETURN, "return len(a)", "return len(a) + 1"),
    (Operator.RETURN, "b = []\nreturn b", "b = []\nreturn b[:-1]"),
    (Operator.LOOP, "for i in a:\n    break", "for i in a:\n    continue"),
    (Operator.ARGUMENTS, "return g(a, b, c)", "return g(b, a, c)"),
    (Operator.EXTREME, "return max(a)", "return min(a)"),
    (Operator.CALL, "return sorted(a)", "return list(a)"),
    (Operator.CALL, "return abs(a)", "return a"),
    (Operator.METHOD, "return a.lower()", "return a.upper()"),
    (Operator.METHOD, "return a.strip()", "return a.lstrip()"),
    (Operator.METHOD, "return a.pop()", "return a.pop(0)"),
]


def function(body: str) -> str:
    return "def f(a, b, c):\n" + "\n".join(f"    {line}" for line in body.split("\n"))


@pytest.mark.parametrize(("operator", "right", "wrong"), CASES)
def test_the_operator_makes_this_fault(operator: Operator, right: str, wrong: str) -> None:
    found = {(mutant.operator, mutant.program) for mutant in mutants(function(right))}
    assert (operator, function(wrong)) in found


def test_every_operator_is_covered_here_with_a_subtlety_of_the_scale_of_wrong_programs() -> None:
    assert {operator for operator, _, _ in CASES} | {Operator.DEFAULT} == set(Operator)
    assert {operator.subtlety for operator in Operator} == {1, 2, 3, 4}
    found = {(mutant.operator, mutant.program) for mutant in mutants("def f(a=3, *, b=True):\n    pass")}
    assert (Operator.DEFAULT, "def f(a=4, *, b=True):\n    pass") in found
    assert (Operator.DEFAULT, "def f(a=3, *, b=False):\n    pass") in found


@pytest.mark.parametrize("body", ["while a < 10:\n    a += 1\nreturn a", "while a:\n    a.pop()"])
def test_the_step_of_a_while_loop_is_never_removed(body: str) -> None:
    step = body.split("\n")[1].strip().split("1")[0]
    found = mutants(function(body))
    assert found
    assert {mutant.operator for mutant in found if step not in mutant.program} <= {Operator.METHOD}
    assert [mutant.program for mutant in found if "+= 0" in mutant.program] == []


@pytest.mark.parametrize("body", ["return '%s' % a", "return f'{a}: b'", "return min(a, a)", "return a[::-1]"])
def test_edits_that_would_only_break_or_not_change_the_program_are_left_out(body: str) -> None:
    unlikely = {Operator.OPERANDS, Operator.ARGUMENTS, Operator.SLICE, Operator.TEXT, Operator.ARITHMETIC}
    texts = [mutant for mutant in mutants(function(body)) if mutant.operator in unlikely]
    assert [mutant.program for mutant in texts if "'%" not in mutant.program] == []
