"""All problems that the components make, in splits, with right and wrong programs. Pure.

Problems behave differently: of compositions with the same values on 200 inputs one is a problem, so splits share no
behaviour. The hash of the statement decides which one, and its split. Unseen problems are compositions that no corpus
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
from codea1_agents.train.tiny.inputs import Arguments, mixed_inputs, probes

VERSION = 2
"""Version of the family; another version has other problems in its splits. Version 1 split by statement only."""


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
    DEEP_RARE = "deep-rare"
    """Problems of four steps. Three quarters of the components have a wrong form that differs at one value only, which
    is drawn anew with each program. Naive inputs are narrower in this variant, too."""
    RAREST = "rarest"
    """As `DEEP_RARE`, with 128 inputs instead of 32 of which a mistake shows at one."""

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of its problems."""
        return (_OF_STEPS[self],) if self.is_deep else (Shape.LIST, Shape.STRING, Shape.PAIR)

    @property
    def is_deep(self) -> bool:
        """Whether its problems have four steps."""
        return self in _OF_STEPS

    @property
    def is_rare(self) -> bool:
        """Whether naive inputs miss most mistakes."""
        return self is not Variant.PLAIN


_OF_STEPS = {Variant.DEEP_RARE: Shape.STEPS, Variant.RAREST: Shape.RAREST_STEPS}


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


_QUOTAS = {Shape.LIST: 28, Shape.STRING: 10, Shape.PAIR: 10, Shape.STEPS: 48, Shape.RAREST_STEPS: 48}
"""Problems of each split but `REST`."""
_N_PROBES = 200
_MAGIC_NUMBERS = (*range(-9, -4), *range(5, 10))
_MAGIC_CHARACTERS = "xyzXYZ089"
_LENGTHS = (4, 5, 6)
_RARE_SHARE = 0.85  # of the wrong programs of the variant RARE
_RARE_RIGHT_SHARE = 0.2


def family(variant: Variant = Variant.PLAIN) -> dict[Split, tuple[Composition, ...]]:
    """Return all problems of a variant by split, in the order of the hashes of their statements."""
    return _family(variant.shapes)


@cache
def _family(shapes: tuple[Shape, ...]) -> dict[Split, tuple[Composition, ...]]:
    found: dict[Split, list[Composition]] = {split: [] for split in Split}
    for shape in shapes:
        ordered = _distinct(shape)
        quota = _QUOTAS[shape]
        for number, split in enumerate((Split.TRAIN, Split.HELD_OUT, Split.UNSEEN)):
            found[split] += ordered[number * quota : (number + 1) * quota]
        found[Split.REST] += ordered[3 * quota :]
    return {split: tuple(sorted(those, key=_rank)) for split, those in found.items()}


def _distinct(shape: Shape) -> list[Composition]:
    """Return one composition of each behaviour, in order."""
    ordered = sorted((Composition(shape, parts) for parts in product(*SLOTS[shape])), key=_rank)
    by_behaviour: dict[tuple[str | None, ...], Composition] = {}
    for each in ordered:
        by_behaviour.setdefault(_values(each.solution, shape), each)
    return list(by_behaviour.values())


def compositions(*splits: Split, variant: Variant = Variant.PLAIN) -> tuple[Composition, ...]:
    """Return the compositions of some splits."""
    return tuple(each for split in splits for each in family(variant)[split])


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
    form = draws.choices(part.wrong, [form.weight for form in part.wrong])[0]
    return draws.choice(form.sources)


@lru_cache(maxsize=4096)
def mutants(composition: Composition, variant: Variant = Variant.PLAIN) -> tuple[str, ...]:
    """Return the programs that have one mistake and differ from the solution on some input, in a fixed order."""
    found = _rare_programs(composition) if variant is Variant.RARE else _one_wrong(composition)
    right = _values(composition.solution, composition.shape)
    return tuple(program for program in dict.fromkeys(found) if _values(program, composition.shape) != right)


def _one_wrong(composition: Composition) -> list[str]:
    rights = [part.right for part in composition.parts]
    return [
        composition.program(*rights[:slot], source, *rights[slot + 1 :])
        for slot, part in enumerate(composition.parts)
        for form in part.wrong
        for source in form.sources
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


def _values(program: str, shape: Shape) -> tuple[str | None, ...]:
    """Return a program's answers to the probes of its shape: its behaviour."""
    return tuple(answer_of(program, probe) for probe in _probes(shape))


@cache
def _probes(shape: Shape) -> tuple[Arguments, ...]:
    return probes(shape, _N_PROBES, Random(f"probes/{shape.value}"))


@lru_cache(maxsize=8192)
def drawn_inputs(
    composition: Composition, count: int, purpose: str, *, is_narrow: bool = False
) -> tuple[Arguments, ...]:
    """Return distinct inputs, alternately naive ones and edge cases; the same ones for the same arguments.

    Args:
        composition: the function that the inputs are for.
        count: number of inputs.
        purpose: separates these draws from others.
        is_narrow: see `naive_input`.
    """
    return mixed_inputs(composition.shape, count, _draws(composition, purpose), is_narrow=is_narrow)


def drawn_probes(composition: Composition, count: int, purpose: str) -> tuple[Arguments, ...]:
    """Return distinct inputs that include all triggers; see `inputs.probes`."""
    return probes(composition.shape, count, _draws(composition, purpose))


def _draws(composition: Composition, purpose: str) -> Random:
    return Random(f"{purpose}/{composition.statement}")
