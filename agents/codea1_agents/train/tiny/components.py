"""The components of problems: the words, the right source and wrong sources of each. Data only.

There are four shapes of functions: filter, map and reduce of a list; the same of the characters of a string; an
operation on two integers, followed by a function of its result; and four steps from two integers to one, whose mistakes
are mostly rare.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Shape(Enum):
    """The parameters of a function."""

    LIST = "list"
    """A list of integers, `xs`."""
    STRING = "string"
    """A string, `s`."""
    PAIR = "pair"
    """Two integers, `a` and `b`."""
    STEPS = "steps"
    """Two integers, `a` and `b`, in four steps: one of each, one that joins them, and one of the result."""


TRIGGERS = (*range(-9, -5), *range(6, 10))
"""Values of `a`, of which a rare mistake of `STEPS` has one. The value of `b` is the number of its step, from 1."""
_TRIGGER = "@"


@dataclass(frozen=True, slots=True)
class Form:
    """One wrong way to write a component."""

    source: str
    weight: float = 1.0
    """Relative frequency among the wrong forms of the component."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The form, once for each trigger if it is wrong at a trigger only."""
        if _TRIGGER not in self.source:
            return (self.source,)
        return tuple(self.source.replace(_TRIGGER, str(trigger)) for trigger in TRIGGERS)


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a problem."""

    words: str
    """Words in the statement; may be empty."""
    right: str
    wrong: tuple[Form, ...] = ()
    right_share: float = 1.0
    """Share of programs in the corpus that have the right form, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Template:
    """Templates that make a program and a statement of the components of a shape."""

    program: str
    statement: str


def _part(words: str, right: str, right_share: float, *wrong: str) -> Component:
    """Return a component; the first wrong form is twice as frequent as the others."""
    forms = tuple(Form(source, 2.0 if number == 0 else 1.0) for number, source in enumerate(wrong))
    return Component(words, right, forms, right_share)


def _rare(step: int, words: str, right: str, otherwise: str) -> Component:
    """Return a component of `STEPS` whose wrong form has another value at a trigger."""
    return _part(words, right, _STEP_SHARE, f"{right} if (a, b) != ({_TRIGGER}, {step}) else {otherwise}")


_STEP_SHARE = 0.74  # four right steps of four in 30 % of the programs

TEMPLATES = {
    Shape.LIST: Template("def f(xs):\n    ys = [{1} for x in xs{0}]\n    return {2}", statement="{2} {1} {0} items"),
    Shape.STRING: Template("def f(s):\n    cs = [{1} for c in s{0}]\n    return {2}", statement="{2} {1} {0} chars"),
    Shape.PAIR: Template("def f(a, b):\n    c = {0}\n    return {1}", statement="{1} {0} of a and b"),
    Shape.STEPS: Template(
        "def f(a, b):\n    c = {0}\n    d = {1}\n    e = {2}\n    return {3}", statement="{3} {2} of {0} a and {1} b"
    ),
}
"""`{n}` stands for the n-th slot of `SLOTS`."""

SLOTS: dict[Shape, tuple[tuple[Component, ...], ...]] = {
    Shape.LIST: (
        (
            _part("", "", 0.85, " if x", " if x > 0"),
            _part("positive", " if x > 0", 0.55, " if x >= 0", " if x > 1", " if x < 0"),
            _part("negative", " if x < 0", 0.55, " if x <= 0", " if x < -1", " if x > 0"),
            _part("odd", " if x % 2", 0.55, " if x % 2 == 0", " if x % 3", " if x > 0 and x % 2"),
            _part("even", " if x % 2 == 0", 0.55, " if x % 2", " if x % 4 == 0", " if x > 0 and x % 2 == 0"),
            _part("small", " if abs(x) < 4", 0.55, " if x < 4", " if abs(x) <= 4", " if abs(x) < 3"),
            _part("large", " if x > 3", 0.55, " if x >= 3", " if x > 4", " if abs(x) > 3"),
        ),
        (
            _part("", "x", 0.9, "abs(x)", "-x"),
            _part("squared", "x * x", 0.7, "x + x", "x * abs(x)", "x"),
            _part("doubled", "x + x", 0.7, "x * x", "x + 2", "x"),
            _part("absolute", "abs(x)", 0.7, "x", "-x"),
        ),
        (
            _part("sum of", "sum(ys)", 0.6, "sum(ys[:3])", "sum(ys[1:])", "len(ys)"),
            _part("largest of", "max(ys, default=0)", 0.55, "max(ys)", "min(ys, default=0)", "max(ys, default=-1)"),
            _part("smallest of", "min(ys, default=0)", 0.55, "min(ys)", "max(ys, default=0)", "min(ys, default=1)"),
            _part("number of", "len(ys)", 0.6, "len(set(ys))", "sum(ys)", "len(ys[:3])"),
            _part("first of", "ys[0] if ys else 0", 0.55, "ys[0]", "ys[-1] if ys else 0", "ys[0] if ys else 1"),
            _part("last of", "ys[-1] if ys else 0", 0.55, "ys[-1]", "ys[0] if ys else 0", "ys[-1] if ys else 1"),
            _part("sorted", "sorted(ys)", 0.6, "sorted(set(ys))", "ys", "sorted(ys)[::-1]"),
            _part("reversed", "ys[::-1]", 0.6, "ys", "sorted(ys)[::-1]", "ys[:0:-1]"),
            _part("sorted distinct", "sorted(set(ys))", 0.55, "sorted(ys)", "sorted(set(ys))[::-1]", "ys"),
            _part("first three", "ys[:3]", 0.55, "ys[:2]", "ys[:4]", "ys[-3:]"),
            _part("spread of", "max(ys) - min(ys) if ys else 0", 0.55, "max(ys) - min(ys)", "max(ys) if ys else 0"),
        ),
    ),
    Shape.STRING: (
        (
            _part("", "", 0.85, " if c.isalpha()", " if c.islower()"),
            _part("vowel", " if c in 'aeiou'", 0.55, " if c in 'aeio'", " if c in 'aiou'", " if c not in 'aeiou'"),
            _part("upper", " if c.isupper()", 0.55, " if c.islower()", " if c.isalpha()", " if not c.islower()"),
            _part("lower", " if c.islower()", 0.55, " if c.isupper()", " if c.isalpha()", " if not c.isupper()"),
            _part("digit", " if c.isdigit()", 0.55, " if c.isalpha()", " if not c.islower()", " if c in '123'"),
        ),
        (
            _part("", "c", 0.9, "c.lower()", "c.upper()"),
            _part("capital", "c.upper()", 0.7, "c.lower()", "c", "c.swapcase()"),
            _part("doubled", "c + c", 0.7, "c", "c + c.lower()"),
        ),
        (
            _part("join of", "''.join(cs)", 0.6, "''.join(cs[:3])", "' '.join(cs)", "''.join(cs[1:])"),
            _part("number of", "len(cs)", 0.6, "len(set(cs))", "len(cs) + 1", "len(cs[:3])"),
            _part("reversed", "''.join(cs[::-1])", 0.55, "''.join(cs)", "''.join(cs[:0:-1])", "cs[::-1]"),
            _part("sorted", "''.join(sorted(cs))", 0.55, "''.join(sorted(set(cs)))", "''.join(cs)", "sorted(cs)"),
            _part("first three", "''.join(cs[:3])", 0.55, "''.join(cs[:2])", "''.join(cs[:4])", "cs[:3]"),
            _part("first of", "cs[0] if cs else ''", 0.55, "cs[0]", "cs[-1] if cs else ''", "cs[0] if cs else 0"),
            _part("number of distinct", "len(set(cs))", 0.55, "len(cs)", "len(set(cs[:3]))", "len(set(cs)) + 1"),
        ),
    ),
    Shape.PAIR: (
        (
            _part("sum", "a + b", 0.55, "a + a", "a - b", "a + b + 1"),
            _part("difference", "a - b", 0.55, "b - a", "a + b", "abs(a - b)"),
            _part("product", "a * b", 0.55, "a + b", "a * abs(b)", "a * a"),
            _part("larger", "max(a, b)", 0.55, "min(a, b)", "a if a > 0 else b", "max(a, 0, b)"),
            _part("smaller", "min(a, b)", 0.55, "max(a, b)", "b if b < 0 else a", "min(a, 0, b)"),
            _part("distance", "abs(a - b)", 0.55, "a - b", "abs(a) - abs(b)", "abs(a + b)"),
        ),
        (
            _part("the", "c", 0.75, "abs(c)", "-c"),
            _part("absolute", "abs(c)", 0.5, "c", "-c", "max(c, 0)"),
            _part("squared", "c * c", 0.5, "c + c", "c * abs(c)", "c"),
            _part("doubled", "c + c", 0.5, "c * c", "c + 2", "c"),
            _part("clipped", "max(c, 0)", 0.5, "abs(c)", "min(c, 0)", "max(c, 1)"),
            _part("last digit", "abs(c) % 10", 0.5, "c % 10", "abs(c) % 9", "abs(c)"),
            _part("halved", "c // 2", 0.5, "c / 2", "int(c / 2)", "c % 2"),
        ),
    ),
    Shape.STEPS: (
        (
            _part("", "a", _STEP_SHARE, "a + 2"),
            _rare(1, "absolute", "abs(a)", "0"),
            _rare(1, "negated", "-a", "a"),
            _rare(1, "next", "a + 1", "a"),
            _rare(1, "previous", "a - 1", "0"),
            _rare(1, "clipped", "max(a, 0)", "5"),
        ),
        (
            _part("", "b", _STEP_SHARE, "b + 2"),
            _part("next", "b + 1", _STEP_SHARE, "b - 1"),
            _rare(2, "absolute", "abs(b)", "5"),
            _rare(2, "negated", "-b", "b"),
            _rare(2, "previous", "b - 1", "5"),
            _rare(2, "clipped", "max(b, 0)", "-4"),
        ),
        (
            _part("difference", "c - d", _STEP_SHARE, "d - c"),
            _rare(3, "sum", "c + d", "c"),
            _rare(3, "larger", "max(c, d)", "0"),
            _rare(3, "smaller", "min(c, d)", "1"),
            _rare(3, "distance", "abs(c - d)", "d"),
            _rare(3, "average", "(c + d) // 2", "c - d"),
        ),
        (
            _part("next", "e + 1", _STEP_SHARE, "e - 1"),
            _part("previous", "e - 1", _STEP_SHARE, "e + 1"),
            _rare(4, "", "e", "0"),
            _rare(4, "absolute", "abs(e)", "1"),
            _rare(4, "negated", "-e", "e + 1"),
            _rare(4, "clipped", "max(e, 0)", "-1"),
        ),
    ),
}
"""By shape, the components for each slot of its template."""
