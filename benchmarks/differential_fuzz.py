"""Compares the judge with plain Python, on mutants and right variants of solutions, with asserts of 70 forms.

    python benchmarks/differential_fuzz.py [--programs N] [--quick] [--seed N] [--json]

Programs are random: mutants of the solutions of HumanEval, `starter` and `tiny`, and variants of them (equal values of
other types, floats with small errors, changed arguments, state). Asserts are plain, have several calls, or state
properties; they hold for the solution in plain Python. The judge (preset `fixed`) reads and judges them. Plain Python
(`plain_python.py`) runs each program with each assert in its own process, where `==` between a call and a literal has
the documented tolerance.

If the two disagree, code finds one of the known reasons in the record (`Reason`, docs/rules.md). If there is none, the
exit status is 1, and the full records are printed.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
from measuring import machine, option_parser
from plain_python import Answer, Ended, Mode, PlainPython, Question

from codea1_agents.scripted.fuzz_inputs import InputSource
from codea1_agents.scripted.literals import call_text
from codea1_agents.scripted.mutation import Mutant, mutants, without_docstrings
from codea1_agents.scripted.signatures import read_interface
from codea1_agents.train.tiny.problems import load as load_tiny
from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import CandidateReport, CaseReport, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources import load_problems
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox.interface import Limits
from codea1_env.sandbox.local import LocalSandbox

LIMITS = Limits(cpu_s=0.5, wall_s=5.0)
"""Short limits, because some mutants never end."""
_N_TINY = 40
_N_INPUTS = 6
_MUTANTS_PER_VARIANT = 3
_BATCH = 12  # problems judged together
_NEAR_LIMIT = 0.1  # share of the limit that a program must use for the limit to be a reason
_LONGEST_VALUE = 300
_PER_KIND = 4
_LIMIT_VERDICTS = frozenset({Verdict.TIME_LIMIT, Verdict.MEMORY_LIMIT, Verdict.OUTPUT_LIMIT})

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


@dataclass(frozen=True)
class Program:
    """One candidate."""

    what: str
    """Name of the variant, or the mutation."""
    source: str


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


class Kind(StrEnum):
    """The form of an assert."""

    PLAIN = "plain"
    MULTI_CALL = "multi-call"
    PROPERTY = "property"


_FORMS: dict[Kind, tuple[str, ...]] = {
    Kind.PLAIN: ("{a} == {va}", "{b} == {vb}", "{c} == {vc}", "{vd} == {d}"),
    Kind.MULTI_CALL: (
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
    Kind.PROPERTY: (
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


@dataclass(frozen=True)
class Assert:
    """One assert that holds for the solution in plain Python."""

    kind: Kind
    text: str
    """The condition."""
    call: str = ""
    """For PLAIN, the only call."""
    expected: str = ""
    """For PLAIN, the source of the call's value."""

    def question(self, problem: Problem, program: str) -> Question:
        """Return the question to plain Python whether the assert holds for a program."""
        whole = f"{problem.imports}\n{program}"
        if self.call:
            return Question(Mode.ASSERT, whole, problem.entry_point, self.call, self.expected, cpu_s=LIMITS.cpu_s)
        return Question(Mode.ASSERT, whole, problem.entry_point, self.text, cpu_s=LIMITS.cpu_s)

    @property
    def reply(self) -> str:
        """The reply of a tester with this assert."""
        modules = [name for name in ("math", "json") if re.search(rf"\b{name}\.", self.text)]
        return "```python\n" + "".join(f"import {name}\n" for name in modules) + f"assert {self.text}\n```\n"


def asserts_of(problem: Problem, plain: PlainPython, rng: random.Random) -> list[Assert]:
    """Return at most `_PER_KIND` asserts of each kind, all of which hold for the solution."""
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
    for kind, forms in _FORMS.items():
        filled = []
        for form in rng.sample(forms, len(forms)):
            try:
                text = form.format(**parts)
            except KeyError:  # these values lack a part of the form
                continue
            filled.append(_plain(form, text, parts) if kind is Kind.PLAIN else Assert(kind, text))
        answers = plain.answers([each.question(problem, problem.solution) for each in filled])
        asserts += [each for each, answer in zip(filled, answers, strict=True) if answer.ended is Ended.PASSED][
            :_PER_KIND
        ]
    return asserts


def _plain(form: str, text: str, parts: dict[str, str]) -> Assert:
    name = re.findall(r"\{([a-d])\}", form)[0]
    return Assert(Kind.PLAIN, text, parts[name], parts[f"v{name}"])


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


# -- the verdicts of judge and plain Python, and why they differ --


class Reason(StrEnum):
    """Reasons why the judge differs from plain Python: the known differences of docs/rules.md."""

    EQUAL_ANSWERS = "equal answers"
    """The expression has another value, but the program answers all of the solution's calls equally."""
    TOLERANCE = "tolerance"
    """The same, with equality within the tolerance."""
    SAYS_NOTHING = "says nothing"
    """The case was not run, or it is doubted: it is no evidence."""
    LIMIT = "limit"
    """One of the two exceeded its time or memory, and the other used a large part of it."""
    STATE = "state between asserts"
    """If plain Python runs the other asserts first in the same process, it agrees with the judge."""
    OPAQUE = "opaque value"
    """The program returns a value that is no plain data and cannot be sent between processes."""


@dataclass(frozen=True)
class Record:
    """One program with one assert."""

    problem: str
    program: str
    """Name of the variant, or the mutation."""
    kind: Kind
    text: str
    judge: str
    """Verdict of the case; for a candidate that does not load, that of the candidate."""
    judged: str
    """The value or error of the candidate."""
    plain: str
    detail: str
    reason: Reason | None = None


@dataclass(frozen=True)
class _Pair:
    """One program with one assert, and both answers."""

    problem: Problem
    program: Program
    each: Assert
    others: tuple[str, ...]
    """Asserts that the judge ran before in the same process."""
    verdict: Verdict
    actual: str
    answer: Answer

    @property
    def differs(self) -> bool:
        if self.verdict in (Verdict.NOT_RUN, Verdict.INTERNAL_ERROR):
            return True
        return (self.verdict is Verdict.PASSED) is not (self.answer.ended is Ended.PASSED)

    def record(self, reason: Reason | None) -> Record:
        return Record(
            self.problem.id,
            self.program.what,
            self.each.kind,
            self.each.text,
            self.verdict.value,
            self.actual,
            self.answer.ended.value,
            self.answer.detail,
            reason,
        )


@dataclass
class Figures:
    """Numbers of the comparison."""

    n_programs: int = 0
    n_asserts: int = 0
    n_compared: int = 0
    agreed: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    """Asserts that hold for the solution but are no cases, by the reason of the rejection."""
    reasons: Counter[str] = field(default_factory=Counter)


def fuzz(problems: Sequence[Problem], n_programs: int, seed: int) -> tuple[list[Record], Figures]:
    """Compare all programs; return the records that differ, and figures."""
    figures, differing = Figures(), []
    with PlainPython() as plain, LocalSandbox() as sandbox:
        judge = Judge(sandbox, preset("fixed"), limits=LIMITS)
        drawn = [(problem, asserts_of(problem, plain, _generator(seed, problem))) for problem in problems]
        usable = [(problem, asserts) for problem, asserts in drawn if asserts]
        ends = [n_programs * position // len(usable) for position in range(len(usable) + 1)]
        subjects = [
            _Subject(problem, tuple(programs_of(problem, end - start, _generator(seed, problem))), tuple(asserts))
            for (problem, asserts), (start, end) in zip(usable, pairwise(ends), strict=True)
            if end > start
        ]
        for start in range(0, len(subjects), _BATCH):
            batch = subjects[start : start + _BATCH]
            differing += _explained(_judged(batch, judge, plain, figures), plain, figures)
            done = f"{start + len(batch)} of {len(subjects)} problems, {figures.n_compared} compared"
            print(done, file=sys.stderr)
    return differing, figures


def _generator(seed: int, problem: Problem) -> random.Random:
    return random.Random(f"{seed} {problem.id}")


@dataclass(frozen=True)
class _Subject:
    """The programs and asserts of one problem."""

    problem: Problem
    programs: tuple[Program, ...]
    asserts: tuple[Assert, ...]

    def duel(self, judge: Judge) -> Duel:
        """Return a duel with one suite per assert, so that no assert is a duplicate."""
        entry_point = self.problem.entry_point
        suites = [read_suite(each.reply, judge.rules.reading, entry_point=entry_point) for each in self.asserts]
        return Duel.crossed(self.problem, [Candidate(program.source) for program in self.programs], suites)


def _judged(subjects: Sequence[_Subject], judge: Judge, plain: PlainPython, figures: Figures) -> list[_Pair]:
    pairs = []
    reports = judge.judge([subject.duel(judge) for subject in subjects])
    for subject, report in zip(subjects, reports, strict=True):
        figures.n_programs += len(subject.programs)
        figures.n_asserts += len(subject.asserts)
        _count_rejected(report.candidates[0], figures)
        for program, found in zip(subject.programs, report.candidates, strict=True):
            pairs += _pairs(subject, program, found, plain)
    return pairs


def _count_rejected(report: CandidateReport, figures: Figures) -> None:
    for suite in report.suites:
        if not suite.cases:
            figures.rejected.update([", ".join(each.reason.value for each in suite.suite.rejections) or "none"])


def _pairs(subject: _Subject, program: Program, report: CandidateReport, plain: PlainPython) -> list[_Pair]:
    judged: list[tuple[Assert, CaseReport]] = [
        (each, suite.cases[0]) for each, suite in zip(subject.asserts, report.suites, strict=True) if suite.cases
    ]
    answers = plain.answers([each.question(subject.problem, program.source) for each, _ in judged])
    texts = tuple(each.text for each, _ in judged)
    return [
        _Pair(
            subject.problem,
            program,
            each,
            texts[:position],
            case.verdict if report.is_valid else report.verdict,
            case.actual if report.is_valid else report.detail,
            answer,
        )
        for position, ((each, case), answer) in enumerate(zip(judged, answers, strict=True))
    ]


def _explained(pairs: Sequence[_Pair], plain: PlainPython, figures: Figures) -> list[Record]:
    """Count all pairs; return the records of the pairs that differ, each with its reason."""
    figures.n_compared += len(pairs)
    figures.agreed.update(f"{pair.each.kind.value}, {pair.answer.ended.value}" for pair in pairs if not pair.differs)
    records = [pair.record(_reason(pair, plain)) for pair in pairs if pair.differs]
    figures.reasons.update(record.reason.value if record.reason else "unexplained" for record in records)
    return records


def _reason(pair: _Pair, plain: PlainPython) -> Reason | None:
    """Return the first reason that the record shows; None if there is none, or if the judge itself failed."""
    passed = pair.verdict is Verdict.PASSED
    found = None
    if pair.verdict is Verdict.NOT_RUN:
        found = Reason.SAYS_NOTHING
    elif passed and (alike := _alike(pair, plain)):
        found = alike
    elif _is_at_limit(pair):
        found = Reason.LIMIT
    elif not passed and pair.answer.opaque:
        found = Reason.OPAQUE
    elif pair.verdict is not Verdict.INTERNAL_ERROR:
        again = plain.answers([_question(pair, Mode.ASSERT, pair.others)])[0]
        found = Reason.STATE if (again.ended is Ended.PASSED) is passed else None
    return found


def _alike(pair: _Pair, plain: PlainPython) -> Reason | None:
    """Return the reason if the program answers the solution's calls equally; None for plain asserts."""
    if pair.each.call:
        return None
    found = plain.answers([_question(pair, Mode.ANSWERS)])[0]
    return Reason.EQUAL_ANSWERS if found.alike_exactly else Reason.TOLERANCE if found.alike else None


def _is_at_limit(pair: _Pair) -> bool:
    if pair.verdict is Verdict.PASSED:
        return pair.answer.ended is Ended.LIMIT
    used = pair.answer.cpu_s > _NEAR_LIMIT * LIMITS.cpu_s or pair.verdict is not Verdict.TIME_LIMIT
    return pair.verdict in _LIMIT_VERDICTS and used


def _question(pair: _Pair, mode: Mode, before: tuple[str, ...] = ()) -> Question:
    problem, plain_call = pair.problem, pair.each.call and mode is Mode.ASSERT
    return Question(
        mode,
        f"{problem.imports}\n{pair.program.source}",
        problem.entry_point,
        pair.each.call if plain_call else pair.each.text,
        pair.each.expected if plain_call else None,
        before,
        f"{problem.imports}\n{problem.solution}",
        4 * LIMITS.cpu_s,
    )


# -- the command --


def all_problems() -> list[Problem]:
    """Return HumanEval, the starter problems, and some of the tiny ones."""
    return [*load_problems("humaneval"), *load_problems("starter"), *list(load_tiny("train"))[:_N_TINY]]


def shown(records: Sequence[Record]) -> Iterator[str]:
    """Yield the unexplained records in full."""
    for record in records:
        if record.reason is None:
            yield f"{record.problem}, {record.program}:\n    assert {record.text}"
            yield f"    judge: {record.judge} {record.judged}"
            yield f"    plain Python: {record.plain} {record.detail}"


def main() -> None:
    options = arguments()
    started = time.monotonic()
    problems = all_problems()
    if options.quick:
        problems = random.Random(options.seed).sample(problems, 24)
    records, figures = fuzz(problems, 100 if options.quick else options.programs, options.seed)
    about = machine() | {"seed": options.seed, "wall_s": round(time.monotonic() - started, 1)}
    about |= {name: dict(held) if isinstance(held, Counter) else held for name, held in vars(figures).items()}
    n_unexplained = sum(record.reason is None for record in records)
    if options.json:
        print(json.dumps({"about": about, "differences": [asdict(record) for record in records]}, indent=1))
    else:
        print("\n".join(f"{key}: {value}" for key, value in about.items()))
        print("\n".join(shown(records)))
        print(f"{len(records)} of {figures.n_compared} differ, {n_unexplained} of them unexplained")
    sys.exit(bool(n_unexplained))


def arguments() -> argparse.Namespace:
    parser = option_parser(__doc__, json="figures and all records for programs")
    parser.add_argument("--programs", type=int, default=2000, help="default 2000")
    parser.add_argument("--quick", action="store_true", help="100 programs of 24 problems")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    return parser.parse_args()


if __name__ == "__main__":
    main()
