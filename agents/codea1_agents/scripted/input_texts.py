"""Inputs of programs that are given texts, made from the examples of a statement.

An input is a text of lines of words. Most inputs begin with counts: of the lines that follow, of the words in a line,
of the letters in a word. A number that agrees with such a count is taken for it, and is corrected when the counted
things change. So most of the new inputs still have the format of the example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codea1_env.facts.problem_kinds import ProblemKind

_NEARBY = (-1, 1, 2)
_LARGE = 10**9
_TRIES = 20  # draws for each wanted text
_LINES_BELOW, _LETTERS = -1, -2

_Lines = list[list[str]]
_Texts = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class TextInputs:
    """The way in which agents without a model write programs of one kind, and calls of such programs."""

    everything: str
    """An expression of all that a program is given, as one text."""
    names: tuple[str, ...] | None
    """Names of the texts of a call; None: as many as it has."""
    joined: Callable[[_Texts], str]
    """Writes the texts of a call as one input."""
    split: Callable[[str], _Texts]
    """The inverse."""

    def edges(self, examples: Sequence[_Texts]) -> list[_Texts]:
        """Return calls with extreme values in the format of the examples; see `edge_texts`."""
        return [self.split(text) for text in edge_texts([*map(self.joined, examples)])]

    def random(self, examples: Sequence[_Texts], rng: np.random.Generator, n: int) -> list[_Texts]:
        """Return at most n different calls near the examples; see `random_texts`."""
        return [self.split(text) for text in random_texts([*map(self.joined, examples)], rng, n)]


TEXT_INPUTS: Mapping[str, TextInputs] = {
    ProblemKind.STDIN: TextInputs("open(0).read()", ("text",), lambda texts: str(texts[0]), lambda text: (text,)),
    ProblemKind.COMMAND_LINE: TextInputs(
        "' '.join(__import__('sys').argv[1:])",
        None,
        lambda texts: " ".join(map(str, texts)),
        lambda text: (*text.split(),),
    ),
}
"""By kind of problem, for programs that are given texts."""


@dataclass(frozen=True, slots=True)
class _Count:
    """A number that states how many things follow it."""

    line: int
    word: int
    counted: int
    """The line whose words are counted; `_LINES_BELOW`: all lines below the number; `_LETTERS`: the letters of a word
    in the next line, whose number is never changed."""


def random_texts(examples: Sequence[str], rng: np.random.Generator, n: int) -> list[str]:
    """Return at most n different inputs near the examples, none of which is an example."""
    known = {_to_text(_lines(example)) for example in examples}
    texts: dict[str, None] = {}
    for _ in range(n * _TRIES if examples else 0):
        text = _random_text(examples[_below(len(examples), rng)], rng)
        if text not in known:
            texts[text] = None
        if len(texts) == n:
            break
    return list(texts)


def edge_texts(examples: Sequence[str]) -> list[str]:
    """Return inputs with extreme values in the format of the examples, the most classical first, none twice."""
    inputs = [_lines(example) for example in examples]
    texts = dict.fromkeys(_to_text(edge) for lines in inputs for edge in _edges(lines))
    return [text for text in texts if text not in map(_to_text, inputs)]


def _random_text(example: str, rng: np.random.Generator) -> str:
    lines = _lines(example)
    counts = [count for count in _counts(lines) if count.counted != _LETTERS]
    if counts and rng.random() < 0.7:
        count = counts[_below(len(counts), rng)]
        _resize(lines, count, 1 + _below(2 * int(lines[count.line][count.word]) + 1, rng), rng)
    if not counts and rng.random() < 0.5:
        lines = _rearrange(lines, rng)
    share, words = rng.random(), [word for line in lines for word in line]
    for line, word in _free_words(lines):
        if rng.random() < share:
            lines[line][word] = _change_word(lines[line][word], words, rng)
    return _to_text(lines)


def _rearrange(lines: _Lines, rng: np.random.Generator) -> _Lines:
    """Return some of the lines, perhaps several times; mostly, the last line stays the last one."""
    chosen = [list(lines[_below(len(lines), rng)]) for _ in range(_below(2 * len(lines) + 1, rng))]
    return [*chosen, list(lines[-1])] if rng.random() < 0.7 else chosen


def _change_word(word: str, known: Sequence[str], rng: np.random.Generator) -> str:
    """Return another word of the same sort: a number near the known ones, a known word, or letters of such words."""
    if _is_number(word):
        return str(_change_number(int(word), [int(other) for other in known if _is_number(other)], rng))
    others = [other for other in known if not _is_number(other)]
    if rng.random() < 0.5:
        return others[_below(len(others), rng)]
    letters = sorted({letter for other in others if len(other) == len(word) for letter in other})
    return "".join(letters[_below(len(letters), rng)] for _ in word)


def _change_number(number: int, known: Sequence[int], rng: np.random.Generator) -> int:
    low, high = min(0, *known), max(known)
    near = [number + step for step in _NEARBY]
    choices = [
        *near,
        known[_below(len(known), rng)],
        0,
        1,
        *(low + _below(max(1, 2 * high - low + 2), rng) for _ in range(4)),
    ]
    return max(low, choices[_below(len(choices), rng)])


def _edges(lines: _Lines) -> Iterator[_Lines]:
    counts = [count for count in _counts(lines) if count.counted != _LETTERS]
    if not counts:
        yield from ([], lines[:1], lines[-1:], lines[::-1], [*lines[:1], *lines])
    for count in counts:
        for size in (1, 2, 0):
            resized = _copy(lines)
            _resize(resized, count, size, np.random.default_rng(0))
            yield resized
    yield from _edges_of_numbers(lines)
    for order in (sorted, reversed):
        yield [lines[0], *([*order(line)] for line in lines[1:])]


def _edges_of_numbers(lines: _Lines) -> Iterator[_Lines]:
    places = [(line, word) for line, word in _free_words(lines) if _is_number(lines[line][word])]
    numbers = [int(lines[line][word]) for line, word in places]
    if not numbers:
        return
    for number in (0, 1, min(numbers), max(numbers), -1, _LARGE):
        yield _with_words(lines, dict.fromkeys(places, number))
    for place, number in zip(places, numbers, strict=True):
        yield from (_with_words(lines, {place: number + step}) for step in _NEARBY)


def _with_words(lines: _Lines, words: dict[tuple[int, int], int]) -> _Lines:
    changed = _copy(lines)
    for (line, word), number in words.items():
        changed[line][word] = str(number)
    return changed


def _counts(lines: _Lines) -> list[_Count]:
    """Return the numbers that agree with a number of lines, words or letters below; each of these is counted once."""
    counts: dict[int, _Count] = {}
    for position, line in enumerate(lines[:-1]):
        below = lines[position + 1 :]
        sizes = {_LINES_BELOW: len(below), position + 1: len(below[0])}
        if len(below[0]) == 1:
            sizes[_LETTERS] = len(below[0][0])
        for word, text in enumerate(line):
            counted = next((each for each, size in sizes.items() if text == str(size) and each not in counts), None)
            if counted is not None:
                counts[counted] = _Count(position, word, counted)
    return list(counts.values())


def _resize(lines: _Lines, count: _Count, size: int, rng: np.random.Generator) -> None:
    """Repeat or remove counted things, and correct their number."""
    if count.counted == _LINES_BELOW:
        below = lines[count.line + 1 :]
        lines[count.line + 1 :] = [list(below[i]) for i in _choose_positions(len(below), size, rng)]
    else:
        words = lines[count.counted]
        lines[count.counted] = [words[i] for i in _choose_positions(len(words), size, rng)]
    lines[count.line][count.word] = str(size)


def _choose_positions(n: int, size: int, rng: np.random.Generator) -> list[int]:
    """Return `size` positions below n: the first ones, or random ones if there are too few."""
    return list(range(size)) if size <= n else [_below(n, rng) for _ in range(size)]


def _free_words(lines: _Lines) -> list[tuple[int, int]]:
    """Return the place (line, word) of each word that is not a count."""
    counts = {(count.line, count.word) for count in _counts(lines)}
    places = [(i, j) for i, line in enumerate(lines) for j in range(len(line))]
    return [place for place in places if place not in counts]


def _below(n: int, rng: np.random.Generator) -> int:
    return int(rng.integers(n))


def _lines(text: str) -> _Lines:
    return [line.split() for line in text.rstrip("\n").split("\n")]


def _copy(lines: _Lines) -> _Lines:
    return [list(line) for line in lines]


def _to_text(lines: _Lines) -> str:
    return "".join(" ".join(line) + "\n" for line in lines)


def _is_number(word: str) -> bool:
    return word.isascii() and word.removeprefix("-").isdecimal() and len(word) <= 15
