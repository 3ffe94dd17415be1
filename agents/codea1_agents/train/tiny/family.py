"""All problems that the components make, in splits, with right and wrong programs. Pure.

The hash of the statement decides the split, so splits never change. Unseen problems are compositions that no corpus
has; the corpus has all their components.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from itertools import product
from random import Random
from typing import Any

from codea1_agents.train.tiny.components import SLOTS, TEMPLATES, Component, Shape
from codea1_agents.train.tiny.inputs import Arguments, edge_input, naive_input


class Split(Enum):
    """The use of a problem."""

    TRAIN = "train"
    """In the corpus, and in reinforcement learning."""
    HELD_OUT = "held-out"
    """In the corpus, never in reinforcement learning."""
    UNSEEN = "unseen"
    """Neither in the corpus nor in reinforcement learning."""
    REST = "rest"
    """In the corpus only."""


class Variant(Enum):
    """The kind of mistakes in programs."""

    PLAIN = "plain"
    """Wrong forms of components, most of which naive inputs find."""
    RARE = "rare"
    """Mostly the right program with a single bug at one value or beyond one length, which naive inputs do not reach.
    Naive inputs are narrower in this variant."""


@dataclass(frozen=True, slots=True)
class Composition:
    """One problem of the family, by its components."""

    shape: Shape
    parts: tuple[Component, ...]
    """One per slot of the shape."""

    @property
    def statement(self) -> str:
        """The statement of the problem, in one line."""
        words = TEMPLATES[self.shape].statement.format(*(part.words for part in self.parts))
        return " ".join(words.split())

    @property
    def solution(self) -> str:
        """The right program."""
        return self.program(*(part.right for part in self.parts))

    def program(self, *sources: str) -> str:
        """Return the program with these sources in its slots."""
        return TEMPLATES[self.shape].program.format(*sources)


_QUOTAS = {Shape.LIST: 28, Shape.STRING: 10, Shape.PAIR: 10}
"""Problems of each split but `REST`."""
_PROBES = 160
_MAGIC_NUMBERS = (*range(-9, -4), *range(5, 10))
_MAGIC_CHARACTERS = "xyzXYZ089"
_LENGTHS = (4, 5, 6)
_RARE_SHARE = 0.85  # of the wrong programs of the variant RARE
_RARE_RIGHT_SHARE = 0.2


@cache
def family() -> dict[Split, tuple[Composition, ...]]:
    """Return all compositions by split, in the order of the hashes of their statements."""
    found: dict[Split, list[Composition]] = {split: [] for split in Split}
    for shape, slots in SLOTS.items():
        ordered = sorted((Composition(shape, parts) for parts in product(*slots)), key=_rank)
        quota = _QUOTAS[shape]
        for number, split in enumerate((Split.TRAIN, Split.HELD_OUT, Split.UNSEEN)):
            found[split] += ordered[number * quota : (number + 1) * quota]
        found[Split.REST] += ordered[3 * quota :]
    return {split: tuple(sorted(those, key=_rank)) for split, those in found.items()}


def compositions(*splits: Split) -> tuple[Composition, ...]:
    """Return the compositions of some splits."""
    return tuple(each for split in splits for each in family()[split])


def _rank(composition: Composition) -> bytes:
    return hashlib.sha256(composition.statement.encode()).digest()


# Programs


def drawn_program(composition: Composition, draws: Random, variant: Variant = Variant.PLAIN) -> str:
    """Return a random program for a problem, as in the corpus: right or wrong."""
    if variant is Variant.RARE:
        if draws.random() < _RARE_RIGHT_SHARE:
            return composition.solution
        rare = mutants(composition, Variant.RARE)
        if rare and draws.random() < _RARE_SHARE:
            return draws.choice(rare)
    return composition.program(*(_drawn_source(part, draws) for part in composition.parts))


def _drawn_source(part: Component, draws: Random) -> str:
    if not part.wrong or draws.random() < part.right_share:
        return part.right
    return draws.choices([form.source for form in part.wrong], [form.weight for form in part.wrong])[0]


@lru_cache(maxsize=4096)
def mutants(composition: Composition, variant: Variant = Variant.PLAIN) -> tuple[str, ...]:
    """Return the programs that have one mistake and differ from the solution on some input, in a fixed order."""
    found = _rare_programs(composition) if variant is Variant.RARE else _one_wrong(composition)
    probes = drawn_inputs(composition, _PROBES, "probes")
    right = [answer_of(composition.solution, probe) for probe in probes]
    return tuple(
        program
        for program in dict.fromkeys(found)
        if any(answer_of(program, probe) != value for probe, value in zip(probes, right, strict=True))
    )


def _one_wrong(composition: Composition) -> list[str]:
    rights = [part.right for part in composition.parts]
    return [
        composition.program(*rights[:slot], form.source, *rights[slot + 1 :])
        for slot, part in enumerate(composition.parts)
        for form in part.wrong
    ]


def _rare_programs(composition: Composition) -> list[str]:
    first, *others = (part.right for part in composition.parts)
    if composition.shape is Shape.PAIR:
        at_value = [f"{others[0]} if {name} != {k} else 0" for name in "ab" for k in _MAGIC_NUMBERS]
        return [composition.program(first, source) for source in at_value]
    letter, whole, magic = (
        ("x", "xs", [str(k) for k in _MAGIC_NUMBERS])
        if composition.shape is Shape.LIST
        else ("c", "s", [repr(k) for k in _MAGIC_CHARACTERS])
    )
    left_out = [f"{first} and {letter} != {k}" if first else f" if {letter} != {k}" for k in magic]
    let_in = [f"{first} or {letter} == {k}" for k in magic] if first else []
    solution = composition.solution
    cut = [solution.replace(f"in {whole}", f"in {whole}[:{length}]", 1) for length in _LENGTHS]
    return [*(composition.program(source, *others) for source in (*left_out, *let_in)), *cut]


# Values


def answer_of(program: str, arguments: Arguments) -> str | None:
    """Return the source of the value that a program of the family returns; None if it raises.

    It runs in this process, so never call it with text that a model wrote.
    """
    try:
        return repr(_function(program)(*arguments))
    except (ValueError, IndexError):
        return None


@lru_cache(maxsize=65_536)
def _function(program: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(program, names)
    function: Callable[..., Any] = names["f"]
    return function


@lru_cache(maxsize=8192)
def drawn_inputs(
    composition: Composition, count: int, purpose: str, *, is_narrow: bool = False
) -> tuple[Arguments, ...]:
    """Return distinct inputs, alternately naive ones and edge cases; the same ones for the same arguments.

    Args:
        composition: of the inputs.
        count: number of inputs.
        purpose: separates these draws from others.
        is_narrow: see `naive_input`.
    """
    draws = Random(f"{purpose}/{composition.statement}")
    found: dict[str, Arguments] = {}
    while len(found) < count:
        is_naive = len(found) % 2 == 0
        shape = composition.shape
        arguments = naive_input(shape, draws, is_narrow=is_narrow) if is_naive else edge_input(shape, draws)
        found.setdefault(repr(arguments), arguments)
    return tuple(found.values())
