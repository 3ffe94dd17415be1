"""The source of an environment's episodes: the next problem, or the one in reset's options; and the Mistake Book."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from codea1_env.book.store import MistakeBook
from codea1_env.errors import UnknownName, UserError, of_type, whole_number
from codea1_env.facts.verdicts import ProblemReport, ValidCase
from codea1_env.problems import Problem, ProblemSet
from codea1_env.rounds.trees import require_golden_tests
from codea1_env.rules.mistake_book import BookDelta, Provenance
from codea1_env.rules.ruleset import BookUpdate, Ruleset

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode before its first step."""

    problem: Problem
    number: int
    """From 0 to 2**63 - 1, drawn at random."""
    replays: bool
    """Whether the episode replays cases of the Mistake Book."""

    @property
    def id(self) -> str:
        """The number as infos and records write it."""
        return f"{self.number:016x}"


class EpisodeSource:
    """Draws an environment's episodes; it is the environment's only source of randomness."""

    def __init__(
        self,
        problems: ProblemSet,
        rules: Ruleset,
        book: MistakeBook | str | Path | None,
        options: frozenset[str] = frozenset(),
    ) -> None:
        """Open the book.

        Args:
            problems: to draw from, without replacement until each has been drawn once.
            rules: decide whether and how the book changes.
            book: a Mistake Book, or the path of one; None: a new one in memory.
            options: names of further reset options, which the environment itself reads.

        Raises:
            UserError: the book holds verdicts of another version of the judge.
        """
        self.problems, self._rules = problems, rules
        self.book = book if isinstance(book, MistakeBook) else MistakeBook(book)
        self._owns_book = not isinstance(book, MistakeBook)
        self.book.require_this_judge()
        self._options = options | {"problem_id", "problem", "replay"}
        self._rng: np.random.Generator | None = None
        self._queue: list[int] = []

    def checked(self, options: object) -> Mapping[str, Any]:
        """Return reset options; log unknown ones, as PettingZoo's conformance tests require.

        Raises:
            UserError: the options are not a mapping, or a key looks like a misspelled option.
        """
        if not isinstance(options, Mapping):
            raise UserError(f"reset options must be a mapping, got {type(options).__name__} ({options!r:.100})")
        for key in sorted(map(str, options.keys() - self._options)):
            if get_close_matches(key, self._options, n=1):
                raise UnknownName.of("reset option", key, self._options)
            known = ", ".join(sorted(self._options))
            _log.warning("reset: unknown option %r is ignored; known are %s", key, known)
        return options

    def seeded(self, seed: int | None) -> np.random.Generator:
        """Return the random generator; a seed restarts it, and with it everything random.

        Raises:
            UserError: the seed is not a whole number, or negative.
        """
        if seed is not None or self._rng is None:
            self._rng, _ = seeding.np_random(None if seed is None else whole_number("seed", seed, least=0, most=inf))
            self._queue = []
        return self._rng

    def begin(self, seed: int | None, options: Mapping[str, Any]) -> Episode:
        """Return the next episode.

        Raises:
            UserError: an option has an invalid value, or the rules pay for golden tests and the problem has none.
        """
        rng = self.seeded(seed)
        if options.get("problem") is not None:
            problem = of_type("reset option problem", options["problem"], Problem)
            require_golden_tests([problem], self._rules)
        elif options.get("problem_id") is not None:
            problem = self.problems.by_id(options["problem_id"])
        else:
            if not self._queue:
                self._queue = rng.permutation(len(self.problems)).tolist()
            problem = self.problems[self._queue.pop()]
        replays = of_type("reset option replay", options.get("replay", True), bool)
        return Episode(problem, int(rng.integers(2**63)), replays)

    def replayed(self, episode: Episode) -> tuple[ValidCase, ...]:
        """Return the book's cases that the episode's next round replays."""
        if not episode.replays or self._rules.book.update is BookUpdate.OFF:
            return ()
        entries = self.book.retrieve(episode.problem.id, self._rules.book, rng=self._rng)
        return tuple(entry.to_valid_case() for entry in entries)

    def record(self, report: ProblemReport, provenance: Provenance) -> BookDelta | None:
        """Record a round in the book and return the changes; None if the rules keep no book."""
        if self._rules.book.update is BookUpdate.OFF:
            return None
        return self.book.record(report, self._rules.book, provenance)

    def close(self) -> None:
        """Close the book if it was opened here."""
        if self._owns_book:
            self.book.close()
