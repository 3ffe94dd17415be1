"""Inputs of programs on standard input, made from the examples of a statement.

An input is a text of lines of words. Most inputs begin with counts: of the words in a line, of the lines that follow,
of the letters in a word. A number that agrees with such a count is taken for it, and is corrected when the counted
things change. So most of the new inputs still have the format of the example.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_NEARBY = (-1, 1, 2)
_LARGE = 10**9
_MAX_TRIES = 20  # draws for each wanted text

_Lines = list[list[str]]


@dataclass(frozen=True, slots=True)
class _Count:
    """A number that states how many things follow it."""

    line: int
    word: int
    counted: int
    """The line whose words are counted; -1: all lines that follow `line` are counted."""


def random_texts(examples: Sequence[str], rng: np.random.Generator, n: int) -> list[str]:
    """Return at most n different inputs near the examples, none of which is an example."""
    found: dict[str, None] = {}
    for _ in range(n * _MAX_TRIES if examples else 0):
        if len(found) >= n:
            break
        found[_random_text(examples[int(rng.integers(len(examples)))], rng)] = None
        for example in examples:
            found.pop(_written(_lines(example)), None)
    return list(found)


def edge_texts(examples: Sequence[str]) -> list[str]:
    """Return inputs with extreme values in the format of the examples, the most classical first, none twice."""
    found: dict[str, None] = {}
    for example in examples:
        lines = _lines(example)
        found.update(dict.fromkeys(map(_written, _edges(lines))))
    for example in examples:
        found.pop(_written(_lines(example)), None)
    return list(found)


def _random_text(example: str, rng: np.random.Generator) -> str:
    lines = _lines(example)
    for count in _counts(lines):
        if rng.random() < 0.5:
            _resize(lines, count, int(rng.integers(1, 2 * int(lines[count.line][count.word]) + 2)), rng)
    share = rng.random()
    known = [int(word) for line in lines for word in line if _isint(word)]
    for line, word in _free_words(lines):
        if rng.random() < share:
            lines[line][word] = _changed(lines[line][word], known, rng)
    return _written(lines)


def _changed(word: str, known: Sequence[int], rng: np.random.Generator) -> str:
    """Return another word of the same sort: a number near the known ones, or other letters of the same word."""
    if not _isint(word):
        return "".join(word[i] for i in rng.integers(0, len(word), len(word)))
    number = int(word)
    low = min(0, *known)
    choices = [number + step for step in _NEARBY] + [known[int(rng.integers(len(known)))], 0, 1]
    choices += rng.integers(low, 2 * max(known) + 2, 4).tolist()
    return str(max(low, choices[int(rng.integers(len(choices)))]))


def _edges(lines: _Lines) -> Iterator[_Lines]:
    rng = np.random.default_rng(0)
    for count in _counts(lines):
        for size in (1, 2, 0):
            resized = _copied(lines)
            _resize(resized, count, size, rng)
            yield resized
    numbers = [int(lines[i][j]) for i, j in _free_words(lines) if _isint(lines[i][j])]
    for number in (0, 1, *([min(numbers), max(numbers), -1, _LARGE] if numbers else ())):
        yield _filled(lines, str(number))
    for order in (sorted, reversed):
        yield [list(order(line)) if position else list(line) for position, line in enumerate(lines)]
    for line, word in _free_words(lines):
        if _isint(lines[line][word]):
            for step in _NEARBY:
                changed = _copied(lines)
                changed[line][word] = str(int(lines[line][word]) + step)
                yield changed


def _filled(lines: _Lines, number: str) -> _Lines:
    filled = _copied(lines)
    for line, word in _free_words(lines):
        if _isint(filled[line][word]):
            filled[line][word] = number
    return filled


def _counts(lines: _Lines) -> list[_Count]:
    """Return the numbers that agree with the number of words in the next lines, or of lines that follow."""
    found = []
    for position, line in enumerate(lines[:-1]):
        for word, text in enumerate(line):
            if not _isint(text):
                continue
            if int(text) == len(lines) - position - 1:
                found.append(_Count(position, word, -1))
            elif int(text) == len(lines[position + 1]):
                found.append(_Count(position, word, position + 1))
    return found[:2]


def _resize(lines: _Lines, count: _Count, size: int, rng: np.random.Generator) -> None:
    """Repeat or remove counted things, and correct their number."""
    things: list[list[str]] | list[str] = lines[count.line + 1 :] if count.counted < 0 else lines[count.counted]
    if not things:
        return
    kept = [things[i] for i in (range(size) if size <= len(things) else rng.integers(0, len(things), size))]
    if count.counted < 0:
        lines[count.line + 1 :] = [list(thing) for thing in kept]
    else:
        lines[count.counted] = [str(thing) for thing in kept]
    lines[count.line][count.word] = str(size)


def _free_words(lines: _Lines) -> Iterator[tuple[int, int]]:
    """Yield the place (line, word) of each word that is no count."""
    counts = {(count.line, count.word) for count in _counts(lines)}
    for i, line in enumerate(lines):
        for j in range(len(line)):
            if (i, j) not in counts:
                yield i, j


def _lines(text: str) -> _Lines:
    return [line.split() for line in text.rstrip("\n").split("\n")]


def _copied(lines: _Lines) -> _Lines:
    return [list(line) for line in lines]


def _written(lines: _Lines) -> str:
    return "".join(" ".join(line) + "\n" for line in lines)


def _isint(word: str) -> bool:
    return word.removeprefix("-").isdecimal() and word.isascii()
