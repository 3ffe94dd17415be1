"""Random arguments of functions: naive ones, and edge cases."""

from __future__ import annotations

from itertools import product
from random import Random

from codea1_agents.train.tiny.components import TRIGGERS, Shape

Arguments = tuple[object, ...]
"""Arguments of one call."""

_LETTERS = "abceio"
_COMMON_CHARACTERS = _LETTERS + _LETTERS.upper() + "123"
_ALL_CHARACTERS = _COMMON_CHARACTERS + "uxyzUXYZ0789 "

_SMALL_SHARE = 0.6  # of naive inputs; models of this size compute badly with larger numbers
_EMPTY_SHARE = 0.01
_TRIGGERS = {shape: sorted(pair for pairs in by_step.values() for pair in pairs) for shape, by_step in TRIGGERS.items()}
_LENGTHS = (0.35, 0.3, 0.2, 0.15)  # shares of naive inputs with one item, two, ...


def naive_input(shape: Shape, draws: Random, *, is_narrow: bool = False) -> Arguments:
    """Return an ordinary short input.

    Args:
        shape: what kind of function the inputs are for.
        draws: source of random numbers.
        is_narrow: whether it is shorter and of a smaller range, so that it does not reach rare bugs.
    """
    largest = 4 if is_narrow or draws.random() < _SMALL_SHARE else 9
    lengths = _LENGTHS[:3] if is_narrow else _LENGTHS
    length = 0 if draws.random() < _EMPTY_SHARE else draws.choices((1, 2, 3, 4)[: len(lengths)], lengths)[0]
    if shape is Shape.LIST:
        return ([draws.randint(-largest, largest) for _ in range(length)],)
    if shape is Shape.STRING:
        return ("".join(draws.choice(_COMMON_CHARACTERS) for _ in range(length)),)
    return draws.randint(-largest, largest), draws.randint(-largest, largest)


def edge_input(shape: Shape, draws: Random) -> Arguments:
    """Return an input that is long, empty, repetitive, of one kind, or at a bound; of steps, one at a trigger."""
    if shape in _TRIGGERS:
        return draws.choice(_TRIGGERS[shape])
    length = draws.choice((0, 1, 1, 2, 4, 5, 6, 7))
    if shape is Shape.LIST:
        values = draws.choice((range(-9, 10), range(-9, 10), range(-9, 10), (0, 1, -1), (3, 4, 5), range(-9, 0)))
        return ([draws.choice(values) for _ in range(length)],)
    if shape is Shape.STRING:
        text = draws.choice((_ALL_CHARACTERS, _ALL_CHARACTERS, _ALL_CHARACTERS, "aeu", "AEX", "123890"))
        return ("".join(draws.choice(text) for _ in range(length)),)
    a = draws.choice((*range(-9, 10), 0, 9, -9))
    return a, draws.choice((*range(-9, 10), a, -a, 0))


def probes(shape: Shape, count: int, draws: Random) -> tuple[Arguments, ...]:
    """Return distinct inputs, alternately naive ones and edge cases; of steps, all triggers and then any others.

    Args:
        shape: what kind of function the inputs are for.
        count: number of inputs; of steps, at most 361.
        draws: source of random numbers.
    """
    if shape in _TRIGGERS:
        triggers = _TRIGGERS[shape]
        rest = [pair for pair in product(range(-9, 10), repeat=2) if pair not in triggers]
        return (*triggers, *draws.sample(rest, count - len(triggers)))
    return mixed_inputs(shape, count, draws)


def mixed_inputs(shape: Shape, count: int, draws: Random, *, is_narrow: bool = False) -> tuple[Arguments, ...]:
    """Return distinct inputs, alternately naive ones and edge cases.

    Args:
        shape: what kind of function the inputs are for.
        count: number of inputs.
        draws: source of random numbers.
        is_narrow: see `naive_input`.
    """
    found: dict[str, Arguments] = {}
    while len(found) < count:
        is_naive = len(found) % 2 == 0
        arguments = naive_input(shape, draws, is_narrow=is_narrow) if is_naive else edge_input(shape, draws)
        found.setdefault(repr(arguments), arguments)
    return tuple(found.values())
