"""Asserts of 70 forms on mutants and right variants of the solutions of HumanEval, `starter` and `tiny`.

The variants return equal values of other types, floats with small errors, change their arguments or keep state. Asserts
are plain, have several calls, or state properties.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from drawn import LIMITS, Program, Subject, Test, generator, holding, shares
from plain_python import Ended, Mode, PlainPython, Question

from codea1_agents.scripted.fuzz_inputs import InputSource
from codea1_agents.scripted.literals import call_text
from codea1_agents.scripted.mutation import Mutant, mutants, without_docstrings
from codea1_agents.scripted.signatures import read_interface
from codea1_agents.train.tiny.problems import load as load_tiny
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources import load_problems

_N_TINY = 40
_N_INPUTS = 6
_MUTANTS_PER_VARIANT = 3
_LONGEST_VALUE = 300
_PER_FORM = 4
_FEWEST_PROGRAMS = 4  # of a problem, so that a small run takes few problems


def subjects(n_programs: int, seed: int, plain: PlainPython) -> list[Subject]:
    """Draw programs and asserts of a sample of the problems."""
    problems = [*load_problems("humaneval"), *load_problems("starter"), *list(load_tiny("train"))[:_N_TINY]]
    n_problems = min(len(problems), max(1, n_programs // _FEWEST_PROGRAMS))
    problems = sorted(random.Random(seed).sample(problems, n_problems), key=lambda problem: problem.id)
    drawn = [(problem, asserts_of(problem, plain, generator(seed, problem.id))) for problem in problems]
    usable = [(problem, asserts) for problem, asserts in drawn if asserts]
    return [
        Subject(problem, tuple(programs_of(problem, number, generator(seed, problem.id))), tuple(asserts))
        for (problem, asserts), number in zip(usable, shares(n_programs, len(usable)), strict=True)
    ]


# -- programs --

_WRAPPED = """
_solved = {name}
{before}
def {name}(*args, **kwargs):
    {body}
"""
_CHANGED_NUMBERS = """
def _changed(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(_changed, value))
    if isinstance(value, dict):
        return {{key: _changed(item) for key, item in value.items()}}
    return {number} if type(value) in {types} else value
"""
_VARIANTS: dict[str, tuple[str, str]] = {
    "as it is": ("", "return _solved(*args, **kwargs)"),
    "counts its calls": ("_n = [0]", "_n[0] += 1; return _solved(*args, **kwargs)"),
    "remembers": (
        "_known = {}",
        "key = repr((args, kwargs)); return _known[key] if key in _known else "
        "_known.setdefault(key, _solved(*args, **kwargs))",
    ),
    "integers as floats": (
        _CHANGED_NUMBERS.format(number="float(value)", types="(int,)"),
        "return _changed(_solved(*args, **kwargs))",
    ),
    "floats a little off": (
        _CHANGED_NUMBERS.format(number="value * (1 + 1e-12)", types="(float,)"),
        "return _changed(_solved(*args, **kwargs))",
    ),
    "numbers a little off": (
        _CHANGED_NUMBERS.format(number="value * (1 + 1e-12)", types="(int, float)"),
        "return _changed(_solved(*args, **kwargs))",
    ),
    "a little off, or wrong": (
        "",
        "value = _solved(*args, **kwargs); number = type(value) in (int, float)\n"
        "    return None if len(repr(args)) % 2 else value + 1e-12 if number else value",
    ),
    "copies its arguments": (
        "import copy as _copy",
        "args, kwargs = _copy.deepcopy((args, kwargs)); return _solved(*args, **kwargs)",
    ),
    "reverses its arguments in place": (
        "",
        "value = _solved(*args, **kwargs)\n    for each in args:\n"
        "        if isinstance(each, list): each.reverse()\n    return value",
    ),
    "right once": (
        "_seen = []",
        "_seen.append(1); return _solved(*args, **kwargs) if len(_seen) == 1 else 'wrong'",
    ),
    "wrong from the fifth call on": (
        "_seen = []",
        "_seen.append(1); return _solved(*args, **kwargs) if len(_seen) < 5 else 'wrong'",
    ),
    "iterators for lists": (
        "",
        "value = _solved(*args, **kwargs); return iter(value) if type(value) is list else value",
    ),
    "subclasses": (
        "_class = {kind: type('Own', (kind,), {}) for kind in (int, float, str, list, tuple, dict, set)}",
        "value = _solved(*args, **kwargs); return _class[type(value)](value) if type(value) in _class else value",
    ),
    "tuples for lists": (
        "",
        "value = _solved(*args, **kwargs); return tuple(value) if type(value) is list else value",
    ),
    "frozen sets, reversed dicts": (
        "",
        "value = _solved(*args, **kwargs); kind = type(value)\n"
        "    return frozenset(value) if kind is set else dict(reversed(value.items())) if kind is dict else value",
    ),
    "numbers for truth": (
        "",
        "value = _solved(*args, **kwargs); return int(value) if type(value) is bool else value",
    ),
    "deep recursion": (
        "def _deep(n, args, kwargs): return _solved(*args, **kwargs) if n == 0 else _deep(n - 1, args, kwargs)",
        "return _deep(800, args, kwargs)",
    ),
    "prints": ("", "print(args, flush=True); return _solved(*args, **kwargs)"),
    "other exceptions": (
        "",
        "try: return _solved(*args, **kwargs)\n    except Exception as error: raise LookupError('other') from error",
    ),
    "wrong for what is long": (
        "",
        "value = _solved(*args, **kwargs); return value if len(repr(args)) < 12 else None",
    ),
}


def programs_of(problem: Problem, number: int, rng: random.Random) -> list[Program]:
    """Return `number` different variants and mutants."""
    variants = [
        Program(name, problem.solution + _WRAPPED.format(name=problem.entry_point, before=before, body=body))
        for name, (before, body) in rng.sample(sorted(_VARIANTS.items()), len(_VARIANTS))
    ]
    variants[0] = (
        Program("without docstrings", without_docstrings(problem.solution)) if rng.random() < 0.2 else variants[0]
    )
    faulty = mutants(problem.solution, entry_point=problem.entry_point)
    n_variants = sum(rng.random() * (1 + _MUTANTS_PER_VARIANT) < 1 for _ in range(number))
    drawn = rng.sample(faulty, min(len(faulty), number - n_variants))
    # One in six mutants also has small errors in its floats, which must not hide its mistake.
    noisy = [rng.random() < 1 / 6 for _ in drawn]
    return [
        *(_mutant(problem, mutant, is_noisy=is_noisy) for mutant, is_noisy in zip(drawn, noisy, strict=True)),
        *variants[: number - len(drawn)],
    ]


def _mutant(problem: Problem, mutant: Mutant, *, is_noisy: bool) -> Program:
    if not is_noisy:
        return Program(f"mutant: {mutant.note}", mutant.program)
    before, body = _VARIANTS["floats a little off"]
    wrapped = _WRAPPED.format(name=problem.entry_point, before=before, body=body)
    return Program(f"mutant, floats a little off: {mutant.note}", mutant.program + wrapped)


# -- asserts --


class Form(StrEnum):
    """The form of an assert."""

    PLAIN = "plain"
    MULTI_CALL = "multi-call"
    PROPERTY = "property"


_FORMS: dict[Form, tuple[str, ...]] = {
    Form.PLAIN: ("{a} == {va}", "{b} == {vb}", "{c} == {vc}", "{vd} == {d}"),
    Form.MULTI_CALL: (
        "[{a}, {b}] == [{va}, {vb}]",
        "all({f}(*x) == y for x, y in [({xa}, {va}), ({xb}, {vb}), ({xc}, {vc})])",
        "{a} == {va} and {b} == {vb} and {c} == {vc}",
        "sorted([{a}, {b}, {c}]) == {sorted_abc}",
        "{a} < {b}",
        "{b} <= {c}",
        "{a} != {b}",
        "{b} != {d}",
        "max({a}, {b}) == {max_ab}",
        "sum({f}(*x) == y for x, y in [({xa}, {va}), ({xb}, {vb}), ({xd}, {vd})]) == 3",
        "[{f}(*x) for x in [{xb}, {xc}, {xd}]] == [{vb}, {vc}, {vd}]",
        "{{str({f}(*x)) for x in [{xa}, {xb}, {xc}]}} == {strings_abc}",
        "{a} + {b} == {sum_ab}",
        "[str({f}(*x)) for x in [{xa}, {xd}]] == [str({va}), str({vd})]",
        "dict(zip('abc', [{a}, {b}, {c}])) == {{'a': {va}, 'b': {vb}, 'c': {vc}}}",
        "{f}({f}(*{xa})) == {f}(*{xa})",
        "{f}({f}(*{xb})) == {f}({vb})",
        "({a}, {a}) == ({va}, {va})",
        "{b} is not None and {b} == {vb}",
        "any({f}(*x) == {va} for x in [{xb}, {xa}])",
        "(lambda u, v: u == {va} and v == {vb})({a}, {b})",
        "len([y for y in map(lambda x: {f}(*x), [{xa}, {xb}, {xc}, {xd}]) if y == {va}]) >= 1",
    ),
    Form.PROPERTY: (
        "isinstance({b}, {type_b})",
        "isinstance({c}, (int, float, str, list))",
        "type({a}) == {type_a}",
        "len({a}) == {len_a}",
        "sorted({b}) == {sorted_b}",
        "list({c}) == list({vc})",
        "tuple({a}) == tuple({va})",
        "set({b}) == set({vb})",
        "str({c}) == str({vc})",
        "repr({d}) == repr({vd})",
        "f'{{{f}(*{xa})}}' == str({va})",
        "round({a}, 3) == round({va}, 3)",
        "abs({b} - {vb}) < 1e-6",
        "math.isclose({a}, {va})",
        "{a} is None",
        "{b} >= 0",
        "{c} in ({vc}, 'xyzzy')",
        "{a} in [{vb}, {va}]",
        "{a}[0] == {va}[0]",
        "{b}[-1] == {vb}[-1]",
        "{c}[:2] == {vc}[:2]",
        "list(reversed({a})) == list(reversed({va}))",
        "','.join(map(str, {b})) == ','.join(map(str, {vb}))",
        "''.join({c}) == ''.join({vc})",
        "all(item in {va} for item in {a})",
        "max({b}) == max({vb})",
        "sum({c}) == sum({vc})",
        "(lambda *x: ({f}(*x), x))(*{xa}) == ({va}, {after_a})",
        "(lambda *x: ({f}(*x), {f}(*x)))(*{xb}) == ({vb}, {twice_b})",
        "(lambda x: ({f}(*x), x)[1])({xc}) == {after_c}",
        "not {d} == 'xyzzy'",
        "bool({a}) is bool({va})",
        "not {b}",
        "{a} * 2 == {va} * 2",
        "json.dumps({d}) == json.dumps({vd})",
        "{a} % 2 == {va} % 2",
        "int({b}) == {vb}",
        "hash({a}) == hash({va})",
        "{a} == {va} if isinstance({a}, {type_a}) else False",
        "{c} ^ {vc} == 0",
        "[*{d}] == [*{vd}]",
        "next(iter({a})) == {va}[0]",
        "{a}.upper() == {va}.upper()",
        "{b}.count('a') == {vb}.count('a')",
        "dict({a}) == {va}",
        "sorted({b}.items()) == sorted({vb}.items())",
        "{a} is True or {a} is False",
        "1 / (1 + ({b} != {vb})) == 1.0",
    ),
}


def asserts_of(problem: Problem, plain: PlainPython, rng: random.Random) -> list[Test]:
    """Return at most `_PER_FORM` asserts of each kind, all of which hold for the solution."""
    solution = f"{problem.imports}\n{problem.solution}"
    inputs = [arguments for arguments in _inputs(problem, rng) if repr(arguments) == _read_back(arguments)]
    calls = [call_text(problem.entry_point, arguments) for arguments in inputs]
    questions = [Question(Mode.VALUE, solution, problem.entry_point, call, cpu_s=LIMITS.cpu_s / 4) for call in calls]
    found = [
        (call, arguments, answer.detail)
        for call, arguments, answer in zip(calls, inputs, plain.answers(questions), strict=True)
        if answer.ended is Ended.PASSED and len(answer.detail) <= _LONGEST_VALUE
    ]
    if len(found) < 4:
        return []
    parts = _parts(problem, found[:4])
    asserts = []
    for name, forms in _FORMS.items():
        filled = []
        for form in rng.sample(forms, len(forms)):
            try:
                text = form.format(**parts)
            except KeyError:  # these values lack a part of the form
                continue
            filled.append(_plain(form, text, parts) if name is Form.PLAIN else Test(name, text))
        asserts += holding(Subject(problem, ()), filled, plain)[:_PER_FORM]
    return asserts


def _plain(form: str, text: str, parts: dict[str, str]) -> Test:
    name = re.findall(r"\{([a-d])\}", form)[0]
    return Test(Form.PLAIN, text, parts[name], parts[f"v{name}"])


def _parts(problem: Problem, found: Sequence[tuple[str, tuple[Any, ...], str]]) -> dict[str, str]:
    """Return the texts for the names in the forms, without those that these values lack."""
    parts: dict[str, str] = {"f": problem.entry_point}
    values = []
    for name, (call, arguments, value) in zip("abcd", found, strict=True):
        live = ast.literal_eval(value)
        values.append(live)
        parts |= {name: call, f"v{name}": f"({value})" if value.startswith("-") else value}
        parts |= {f"x{name}": repr(arguments), f"type_{name}": type(live).__name__, f"len_{name}": "-1"}
        parts |= {f"after_{name}": repr(arguments), f"twice_{name}": value}
        if isinstance(live, list | tuple | str | dict | set):
            parts[f"len_{name}"] = str(len(live))
            parts |= _part(f"sorted_{name}", lambda live=live: sorted(live))
    parts |= _part("sorted_abc", lambda: sorted(values[:3]))
    parts |= _part("max_ab", lambda: max(values[:2]))
    parts |= _part("sum_ab", lambda: values[0] + values[1])
    parts |= _part("strings_abc", lambda: set(map(str, values[:3])))
    return parts


def _part(name: str, value: Any) -> dict[str, str]:
    try:
        return {name: repr(value())}
    except TypeError:
        return {}


def _read_back(arguments: object) -> str:
    try:
        return repr(ast.literal_eval(repr(arguments)))
    except (ValueError, SyntaxError):
        return ""


def _inputs(problem: Problem, rng: random.Random) -> list[tuple[Any, ...]]:
    interface = read_interface(problem.entry_point, problem.statement, "\n".join(problem.examples))
    if interface is None:
        return []
    drawn = InputSource(interface).draw(np.random.default_rng(rng.randrange(1 << 30)), _N_INPUTS)
    inputs = [tuple(arguments) for arguments in (*interface.examples, *drawn)]
    distinct = list({repr(arguments): arguments for arguments in inputs}.values())
    return rng.sample(distinct, len(distinct))
