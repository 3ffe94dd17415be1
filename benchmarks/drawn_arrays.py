"""Tests that compare arrays and numbers of numpy: golden harnesses, and asserts of a tester.

A problem has one right value, an expression over an array. Its programs return this value in other types, shapes and
containers, with errors of some sizes, or another value. Its tests compare what a program returns with the right value,
as those of published benchmarks do, and in most ways that numpy has for it. Every third problem has asserts.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import partial

from drawn import Draw, Program, Subject, Test, drawn_subjects, holding
from plain_python import PlainPython

from codea1_env.problems.problem import GoldenHarness, Problem

_PROGRAMS_PER_PROBLEM, _TESTS_PER_PROBLEM = 8, 6
_SHARE_RIGHT = 0.85

_INPUTS = (
    "[1, 2, 3]",
    "[[1, 2], [3, 4]]",
    "[0.5, -1.25, 1e300]",
    "[3, 1, 2, 1]",
    "[]",
    "[[]]",
    "[[1.5], [2.5], [-0.0]]",
    "[True, False]",
    "5",
    "2.5",
    "[0]",
    "[[[1, 2]], [[3, 4]]]",
    "(1, 2)",
    "['a', 'bc']",
    "[1j, 2]",
    "[float('nan'), 1.0]",
    "[float('inf'), -1.0]",
    "[None, 1]",
    "[2**70, 1]",
    "np.array([1, 2, 3])",
    "np.arange(6).reshape(2, 3)",
    "np.float64(1.5)",
    "np.array(7)",
    "np.array([1, 2], dtype='>i2')",
    "np.arange(6)[::2]",
)

_VALUES = (
    "a",
    "a * 2",
    "a + 0.5",
    "a / 3",
    "a - a",
    "a == 1",
    "a.T",
    "a[::-1]",
    "a[:1]",
    "a[0]",
    "a.sum()",
    "a.mean()",
    "a.max()",
    "a.sum(axis=0)",
    "np.cumsum(a)",
    "np.sort(a, axis=None)",
    "np.argsort(a)",
    "np.unique(a)",
    "np.unique(a, return_counts=True)",
    "np.where(a > 1, a, np.nan)",
    "np.divide(a, 0)",
    "np.log(a)",
    "np.array(a.sum())",
    "np.array(2.5)",
    "np.array(None)",
    "np.nonzero(a)",
    "np.zeros((0, 3))",
    "np.zeros((2, 0), dtype=int)",
    "np.eye(2)",
    "np.full((2, 2), np.inf)",
    "np.array([np.nan, 1.0])",
    "np.array([[1, 2], [3]], dtype=object)",
    "np.array([[1, 2], (3, 4), None], dtype=object)[:2]",
    "np.array(['x', 'yz'])",
    "np.array([b'x', b'yz'])",
    "np.array(['2020-01-01'], dtype='M8[D]')",
    "np.array([(1, 2.5)], dtype=[('a', 'i4'), ('b', 'f8')])",
    "np.datetime64('2020-01-01')",
    "np.float64('nan')",
    "np.float32(0.1)",
    "np.int8(5)",
    "np.bool_(True)",
    "np.longdouble(1) / 3",
    "np.complex64(1 + 2j)",
    "np.str_('x')",
    "np.bytes_(b'x')",
    "np.inf",
    "np.pi",
    "a.tolist()",
    "a.shape",
    "a.ndim",
    "a.dtype",
    "a.dtype.name",
    "list(a)",
    "[a, a]",
    "(a, a.shape)",
    "{'a': a}",
    "{int(n): a[n] for n in range(len(a))}",
    "[a.sum(), a.min()]",
    "set(a.ravel())",
    "np.linalg.norm(a)",
    "np.dot(a, a)",
    "np.broadcast_to(a, (2, *a.shape))",
    "np.asfortranarray(a)",
    "np.ma.masked_array(a, mask=False)",
    "np.asmatrix(a)",
    "np.polyfit([0, 1, 2], [0, 1, 4], 2)",
    "np.histogram(a, bins=2)",
    "np.linalg.eig(np.eye(2))",
    "np.meshgrid(a, a)",
    "np.array_split(a, 2)",
    "np.where(a == 1)[0]",
    "x",
    "None",
)

_VARIANTS: dict[str, str] = {
    "as it is": "return value",
    "a list": "return value.tolist()",
    "an array": "return np.array(value)",
    "an array of objects": "return np.array(value, dtype=object)",
    "a tuple": "return tuple(value)",
    "items": "return list(value)",
    "floats": "return value.astype(float)",
    "short floats": "return np.asarray(value).astype(np.float32)",
    "half floats": "return np.asarray(value).astype('f2')",
    "long floats": "return np.asarray(value).astype(np.longdouble)",
    "other byte order": "return np.asarray(value).astype('>f8')",
    "integers": "return np.asarray(value).astype(int)",
    "small integers": "return np.asarray(value).astype(np.uint8)",
    "complex": "return np.asarray(value).astype(complex)",
    "texts": "return np.asarray(value).astype(str)",
    "truth": "return np.asarray(value).astype(bool)",
    "Python's number": "return value.item()",
    "numpy's number": "return np.asarray(value)[()]",
    "no dimensions": "return np.array(value).reshape(())",
    "one more dimension": "return np.array([value])",
    "flat": "return np.ravel(value)",
    "column": "return np.reshape(value, (-1, 1))",
    "a little off": "return value * (1 + 1e-12)",
    "more off": "return value * (1 + 1e-6)",
    "off by one": "return value + 1",
    "negative": "return -value",
    "a view of a view": "return np.asarray(value)[...]",
    "reversed twice": "return np.asarray(value)[::-1][::-1]",
    "read only": "value = np.array(value); value.flags.writeable = False; return value",
    "a subclass": "class Own(np.ndarray): pass\n    return np.asarray(value).view(Own)",
    "a matrix": "return np.asmatrix(value)",
    "masked": "return np.ma.masked_array(value)",
    "a generator": "return (each for each in value)",
    "an iterator": "return iter(value)",
    "a flat iterator": "return value.flat",
    "a map": "return map(float, value)",
    "a pair": "return value, value",
    "a dict": "return dict(enumerate(value))",
    "a memory view": "return memoryview(value)",
    "bytes": "return np.asarray(value).tobytes()",
    "an array of the standard library": "import array\n    return array.array('d', value)",
    "a deque": "import collections\n    return collections.deque(value)",
    "a named tuple": "import collections\n    return collections.namedtuple('P', 'a b')(value, value)",
    "a data class": (
        "import dataclasses\n    @dataclasses.dataclass\n    class P:\n        a: object\n    return P(value)"
    ),
    "fractions": "from fractions import Fraction\n    return [Fraction(each) for each in value]",
    "decimals": "from decimal import Decimal\n    return [Decimal(each) for each in value]",
    "nothing": "return None",
    "nan": "return np.nan",
    "infinite": "return np.full_like(value, np.inf, dtype=float)",
    "its argument": "return x",
    "changes its argument": "a[...] = 0\n    x *= 2\n    return value",
    "prints": "print(value)\n    return value",
    "raises": "raise np.linalg.LinAlgError('no')",
    "raises for numbers": "raise FloatingPointError('no')",
    "a function": "return lambda: value",
    "an object with data": "class A:\n        __array__ = lambda self, dtype=None, copy=None: value\n    return A()",
    "its own equality": "class A:\n        __eq__ = lambda self, other: True\n    return A()",
    "the same array each time": "return kept.setdefault('value', value)",
}

_FORMS: dict[str, tuple[str, ...]] = {
    "equal": (
        "assert v == w",
        "assert (v == w).all()",
        "assert np.all(v == w)",
        "assert np.array_equal(v, w)",
        "assert np.array_equal(v, w, equal_nan=True)",
        "assert np.array_equiv(v, w)",
        "np.testing.assert_array_equal(v, w)",
        "np.testing.assert_equal(v, w)",
        "assert not (v != w)",
        "assert np.asarray(v).tolist() == np.asarray(w).tolist()",
        "assert v.tolist() == w.tolist()",
        "assert list(v) == list(w)",
        "assert tuple(v) == tuple(w)",
        "assert sorted(v) == sorted(w)",
        "assert set(v) == set(w)",
        "for p, q in zip(v, w): assert p == q",
        "for p, q in zip(v, w, strict=True): assert np.array_equal(p, q)",
        "assert v in [w]",
        "assert [v] == [w]",
        "assert (v, 1) == (w, 1)",
        "assert w == v",
        "assert np.equal(v, w).all()",
    ),
    "close": (
        "assert np.allclose(v, w)",
        "assert np.allclose(v, w, equal_nan=True)",
        "assert np.allclose(w, v, rtol=1e-7, atol=0)",
        "assert np.isclose(v, w).all()",
        "np.testing.assert_allclose(v, w)",
        "np.testing.assert_allclose(v, w, rtol=1e-7, atol=1e-6)",
        "np.testing.assert_almost_equal(v, w)",
        "np.testing.assert_array_almost_equal(v, w, decimal=3)",
        "assert math.isclose(v, w)",
        "assert abs(v - w) < 1e-6",
        "assert np.max(np.abs(np.asarray(v) - w)) < 1e-6",
        "assert np.linalg.norm(v - w) < 1e-6",
        "assert round(float(v), 3) == round(float(w), 3)",
        "if not (v == w):\n        np.testing.assert_allclose(v, w, atol=1e-6)",
        "exact = v == w\n    exact = exact if type(exact) is bool else np.all(exact)\n"
        "    assert exact or np.allclose(v, w)",
        "if isinstance(w, float) or isinstance(w, list):\n        assert np.allclose(v, w)\n    else:\n"
        "        assert v == w",
        "assert all(np.isclose(p, q) for p, q in zip(v, w))",
    ),
    "property": (
        "assert v.shape == w.shape",
        "assert np.shape(v) == np.shape(w)",
        "assert len(v) == len(w)",
        "assert v.dtype == w.dtype",
        "assert np.asarray(v).dtype.kind == np.asarray(w).dtype.kind",
        "assert v.ndim == w.ndim and v.size == w.size",
        "assert np.isnan(v).any()",
        "assert not np.any(np.isnan(v))",
        "assert np.isfinite(v).all()",
        "assert np.isinf(v).any()",
        "assert isinstance(v, np.ndarray)",
        "assert isinstance(v, (int, float))",
        "assert isinstance(v, (list, tuple, dict))",
        "assert isinstance(v, type(w))",
        "assert type(v) == type(w)",
        "assert np.sum(v) == np.sum(w)",
        "assert v.sum() == w.sum()",
        "assert sum(v) == sum(w)",
        "assert max(v) == max(w)",
        "assert v[0] == w[0]",
        "assert np.all(v[-1] == w[-1])",
        "assert np.array_equal(v[:1], w[:1])",
        "assert str(v) == str(w)",
        "assert repr(v) == repr(w)",
        "assert json.dumps(v) == json.dumps(w)",
        "assert float(v) == float(w)",
        "assert int(v) == int(w)",
        "assert bool(v) == bool(w)",
        "assert v",
        "assert not v",
        "assert v is not None",
        "assert v is None or np.all(v == w)",
        "assert np.array_equal(np.transpose(v), np.transpose(w))",
        "assert np.array_equal(v @ v, w @ w)",
        "assert (v * 2 == w * 2).all()",
        "assert np.array_equal(v + v, w + w)",
        "assert np.array_equal(np.array(v) + 1, np.array(w) + 1)",
        "v += 1\n    w = w + 1\n    assert np.array_equal(v, w)",
        "v[0] = 9\n    assert v[0] == 9",
        "v.sort()\n    assert list(v) == sorted(w)",
        "assert np.array_equal(v.copy(), w)",
        "assert np.array_equal(copy.deepcopy(v), w)",
        "assert hash(v) == hash(w)",
        "assert {v: 1}[w] == 1",
        "assert np.iscomplexobj(v) == np.iscomplexobj(w)",
        "assert np.issubdtype(np.asarray(v).dtype, np.floating)",
        "assert np.count_nonzero(v) == np.count_nonzero(w)",
        "assert next(iter(v)) == next(iter(w))",
        "assert callable(v) == callable(w)",
        "assert v.keys() == w.keys()",
        "assert f'{v}' == f'{w}'",
        "assert '%s' % (v,) == '%s' % (w,)",
        "assert np.vstack([v, v]).shape == np.vstack([w, w]).shape",
        "assert np.concatenate([np.ravel(v), np.ravel(w)]).size == 2 * np.size(w)",
        "assert [np.array(each).tolist() for each in v] == [np.array(each).tolist() for each in w]",
        "p, q = v\n    assert np.array_equal(p, q)",
        "assert v > 0",
        "assert (np.asarray(v) >= np.asarray(w)).all()",
        "assert range(10)[v] == range(10)[w]",
        "assert np.arange(9)[v] == np.arange(9)[w]",
        "assert round(v, 2) == round(w, 2)",
        "assert v is True or v is False",
        "assert v == True",
        "assert v // 2 == w // 2 and v % 2 == w % 2",
        "assert divmod(v, 2) == divmod(w, 2)",
        "assert v / 2 == w / 2",
        "assert v ** 2 == w ** 2",
    ),
    "several calls": (
        "assert np.array_equal(candidate(x), candidate(x))",
        "candidate(x)\n    assert np.all(candidate(x) == w)",
        "u = candidate(v)\n    assert np.allclose(u, want(w))",
        "assert np.allclose(np.add(v, candidate(x)), np.multiply(w, 2))",
        "assert np.array_equal([candidate(x), candidate(x)], [w, w])",
        "given = np.array(x)\n    candidate(given)\n    assert np.array_equal(given, np.array(x))",
        "given = np.array(x)\n    assert np.array_equal(candidate(given), want(given))",
        "assert np.array_equal(candidate(x=x), w)",
        "try:\n        candidate(x, x)\n    except TypeError:\n        pass\n    else:\n        assert False",
        "try:\n        candidate(x)\n    except (ValueError, IndexError):\n        assert False\n"
        "    except Exception:\n        pass",
        "try:\n        candidate(None)\n    except Exception as error:\n"
        "        assert isinstance(error, TypeError), error",
        "assert np.array_equal(np.vectorize(candidate)([1, 2]), [want(1), want(2)])",
        "assert list(map(candidate, [x, x])) == [w, w]",
    ),
}

_PROGRAM = """import numpy as np
kept = {{}}
def f(x):
    a = np.array(x)
    value = {value}
    {variant}
"""
_HARNESS = """import copy, json, math
import numpy as np
def want(x):
    a = np.array(x)
    return {value}
def check(candidate):
    x = {given}
    w = want(x)
    v = candidate(x)
    {form}
"""


def _subject(plain: PlainPython, name: str, n_programs: int, rng: random.Random) -> Subject:
    value, given = rng.choice(_VALUES), rng.sample(_INPUTS, 3)
    variants = ["as it is", *rng.sample(sorted(_VARIANTS), n_programs - 1)]
    programs = [_program(value if rng.random() < _SHARE_RIGHT else rng.choice(_VALUES), each) for each in variants]
    programs[0] = _program(value, variants[0])
    problem = Problem(name, "f", "f", programs[0].source, ())
    draw = _assert if int(name.rpartition("/")[2]) % 3 == 0 else _golden
    drawn = [draw(value, rng.choice(given), rng) for _ in range(3 * _TESTS_PER_PROBLEM)]
    held = holding(Subject(problem, ()), drawn, plain)
    if draw is _assert:
        return Subject(problem, tuple(programs), tuple(dict.fromkeys(held))[:_TESTS_PER_PROBLEM])
    tests = list(dict.fromkeys([*held, *drawn[:1]]))[-_TESTS_PER_PROBLEM:]
    golden = tuple(GoldenHarness(each.harness) for each in tests)
    return Subject(replace(problem, golden=golden), tuple(programs), tuple(tests), is_golden=True)


subjects: Draw = partial(drawn_subjects, "numpy", _PROGRAMS_PER_PROBLEM, _subject)
"""Draw problems, each with some programs and with harnesses, most of which the first program passes."""


def _program(value: str, variant: str) -> Program:
    return Program(variant, _PROGRAM.format(value=value, variant=_VARIANTS[variant]))


def _assert(value: str, given: str, rng: random.Random) -> Test:
    """Return a tester's assert, in which the call and the right value stand where a harness has names."""
    form = rng.choice([form for forms in _FORMS.values() for form in forms if _is_condition(form)])
    right = re.sub(r"\bx\b(?!')", given, re.sub(r"\ba\b(?!')", f"np.array({given})", value))
    text = re.sub(r"\bv\b", f"f({given})", form.removeprefix("assert "))
    return Test("assert", re.sub(r"\bw\b", right, text))


def _is_condition(form: str) -> bool:
    """Whether a form is one condition on the result.

    The sides of an equality must be values that can be sent. Whole values, which here are equal only if both are arrays
    of one shape, are not compared: numpy compares `(0,)` with an array of one 0 as equal.
    """
    others = r"\n|candidate|copy\.|want|\bx\b|\bdtype ==|\btype\(|[(\[]?v\b(, 1\)|])? ([!=]=|in) [(\[]?w|w == v$"
    return form.startswith("assert ") and not re.search(others, form)


def _golden(value: str, given: str, rng: random.Random) -> Test:
    kind = rng.choice(sorted(_FORMS))
    harness = _HARNESS.format(value=value, given=given, form=rng.choice(_FORMS[kind]))
    return Test(kind, "(check(candidate), True)[1]", harness=harness)
