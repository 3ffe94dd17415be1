"""Finds the recorded programs that failed a case, in the runs of a Mistake Book."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from itertools import chain
from pathlib import Path

from codea1_env.rules.mistake_book import BookKey
from codea1_env.runs.folder import iter_episodes
from codea1_env.runs.records import CaseRecord


class Failures:
    """Recorded programs by the cases that they failed."""

    def __init__(self) -> None:
        self._programs: dict[tuple[str, bytes], dict[str, None]] = defaultdict(dict)
        self._by_digest: dict[str, str] = {}

    def add(self, problem_id: str, program: str, cases: Iterable[CaseRecord]) -> None:
        """Add one program and the results of its cases."""
        self._by_digest.setdefault(sha256(program.encode("utf-8", "surrogatepass")).hexdigest(), program)
        for case in cases:
            if case.verdict.is_failure:
                key = BookKey(case.expression, case.imports, case.expected.encode())
                self._programs[problem_id, key.digest()].setdefault(program)

    def of(self, problem_id: str, key: BookKey, first_sha256: str, *, most: int) -> tuple[str, ...]:
        """Return at most `most` distinct programs that failed a case.

        Args:
            problem_id: the case's problem.
            key: the case.
            first_sha256: digest of the first program that failed it; if recorded, this program comes first.
            most: at least 1.
        """
        found = dict(self._programs.get((problem_id, key.digest()), {}))
        first = self._by_digest.get(first_sha256)
        programs = dict.fromkeys(([first] if first is not None else []) + list(found))
        return tuple(programs)[:most]


def failures_in(run: Path) -> Failures:
    """Read all recorded programs of a run folder.

    Raises:
        BrokenInput: the folder is not a run, or has a corrupted line.
    """
    failures = Failures()
    for record in iter_episodes(run):
        for played in record.rounds:
            cases = chain(played.replayed, *(suite.cases for suite in played.suites))
            failures.add(record.problem_id, played.candidate.program, cases)
    return failures
