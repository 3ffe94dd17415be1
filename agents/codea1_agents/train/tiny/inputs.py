"""Random arguments of functions: naive ones, and edge cases."""

from __future__ import annotations

from random import Random

from codea1_agents.train.tiny.components import Shape

Arguments = tuple[object, ...]
"""Arguments of one call."""

_LETTERS = "abceio"
_COMMON_CHARACTERS = _LETTERS + _LETTERS.upper() + "123"
_ALL_CHARACTERS = _COMMON_CHARACTERS + "uxyzUXYZ0789 "

_SMALL_SHARE = 0.6  # of naive inputs; models of this size compute badly with larger numbers
_EMPTY_SHARE = 0.01
_LENGTHS = (0.35, 0.3, 0.2, 0.15)  # shares of naive inputs with one item, two, ...


def naive_input(shape: Shape, draws: Random, *, is_narrow: bool = False) -> Arguments:
    """Return an ordinary short input.

    Args:
        shape: of the function.
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
    """Return an input that is long, empty, repetitive, of one kind, or at a bound."""
    length = draws.choice((0, 1, 1, 2, 4, 5, 6, 7))
    if shape is Shape.LIST:
        values = draws.choice((range(-9, 10), range(-9, 10), range(-9, 10), (0, 1, -1), (3, 4, 5), range(-9, 0)))
        return ([draws.choice(values) for _ in range(length)],)
    if shape is Shape.STRING:
        text = draws.choice((_ALL_CHARACTERS, _ALL_CHARACTERS, _ALL_CHARACTERS, "aeu", "AEX", "123890"))
        return ("".join(draws.choice(text) for _ in range(length)),)
    a = draws.choice((*range(-9, 10), 0, 9, -9))
    return a, draws.choice((*range(-9, 10), a, -a, 0))
