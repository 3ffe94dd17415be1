"""The components of problems: the words, the right source and wrong sources of each, read from `components.toml`.

There are four shapes of functions: filter, map and reduce of a list; the same of the characters of a string; an
operation on two integers, followed by a function of its result; and four steps from two integers to one, whose mistakes
are mostly rare. The shape decides how rare: a mistake of `STEPS` shows at one input of 32, of `RAREST_STEPS` of 128.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files

from codea1_env.records.faults import read_toml


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
    RAREST_STEPS = "rarest-steps"
    """The same steps; a rare mistake has four times as many inputs at which it may show."""


_FAR = (*range(-9, -5), *range(6, 10))
TRIGGERS = {
    Shape.STEPS: {step: [(a, step) for a in _FAR] for step in range(1, 5)},
    Shape.RAREST_STEPS: {
        step: [(a, b) for a in _FAR for b in (step, step + 4, -step, -step - 4)] for step in range(1, 5)
    },
}
"""By shape and by step, from 1, the inputs `(a, b)` of which a rare mistake of this step shows at one."""
_TRIGGER = re.compile(r"@(\d)")


@dataclass(frozen=True, slots=True)
class Form:
    """One wrong way to write a component."""

    sources: tuple[str, ...]
    """The form, once for each trigger if it is wrong at a trigger only."""
    weight: float = 1.0
    """Relative frequency among the wrong forms of the component."""


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


def _component(shape: Shape, words: str, right_share: float, right: str, *wrong: str) -> Component:
    """Return a component; the first wrong form is twice as frequent as the others."""
    forms = tuple(Form(_sources(shape, form), 2.0 if number == 0 else 1.0) for number, form in enumerate(wrong))
    return Component(words, right, forms, right_share)


def _sources(shape: Shape, form: str) -> tuple[str, ...]:
    at = _TRIGGER.search(form)
    if at is None:
        return (form,)
    return tuple(form.replace(at[0], f"({a}, {b})") for a, b in TRIGGERS[shape][int(at[1])])


_DATA = read_toml("components", files("codea1_agents.train.tiny").joinpath("components.toml").read_bytes())
_DATA[Shape.RAREST_STEPS.value] = _DATA[Shape.STEPS.value]

TEMPLATES = {shape: Template(_DATA[shape.value]["program"], _DATA[shape.value]["statement"]) for shape in Shape}
"""`{n}` stands for the n-th slot of `SLOTS`."""

SLOTS: dict[Shape, tuple[tuple[Component, ...], ...]] = {
    shape: tuple(tuple(_component(shape, *each) for each in slot) for slot in _DATA[shape.value]["slots"])
    for shape in Shape
}
"""By shape, the components for each slot of its template."""
