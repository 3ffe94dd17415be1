"""The components of problems: the words, the right source and wrong sources of each, read from `components.toml`.

There are four shapes of functions: filter, map and reduce of a list; the same of the characters of a string; an
operation on two integers, followed by a function of its result; and four steps from two integers to one, whose mistakes
are mostly rare.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files


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


def _component(words: str, right_share: float, right: str, *wrong: str) -> Component:
    """Return a component; the first wrong form is twice as frequent as the others."""
    forms = tuple(Form(source, 2.0 if number == 0 else 1.0) for number, source in enumerate(wrong))
    return Component(words, right, forms, right_share)


_DATA = tomllib.loads(files("codea1_agents.train.tiny").joinpath("components.toml").read_text("utf-8"))

TEMPLATES = {shape: Template(_DATA[shape.value]["program"], _DATA[shape.value]["statement"]) for shape in Shape}
"""`{n}` stands for the n-th slot of `SLOTS`."""

SLOTS: dict[Shape, tuple[tuple[Component, ...], ...]] = {
    shape: tuple(tuple(_component(*each) for each in slot) for slot in _DATA[shape.value]["slots"]) for shape in Shape
}
"""By shape, the components for each slot of its template."""
