"""Packs episodes for the page: an index with the columns that can be filtered, and the texts in compressed pages.

Theory of operation. A browser would be slow if it had to parse ten thousand episodes before it shows one. So pages of a
few dozen groups are deflated and written in base64, and the script unpacks a page when one of its episodes is opened.
Within a page a table holds each distinct text once, and everything else refers to it by number. The filters need the
index only, which the script unpacks at the start.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from codea1_agents.play.person import why_dropped
from codea1_agents.play.summary import MEASURES, can_win, new_cases
from codea1_agents.statistics import known_mean
from codea1_env import values
from codea1_env.facts.verdicts import Verdict
from codea1_env.rendering import harmless
from codea1_env.runs.records import CaseRecord, RewardRecord, RoundRecord, SuiteRecord
from codea1_lab.report.material import Group
from codea1_lab.report.outcomes import Outcome, outcome_of

GROUPS_PER_PAGE = 40
_MAX_TEXT = 100_000
_MAX_VALUE = 400
_OUTCOMES = tuple(Outcome)
_VERDICTS = tuple(Verdict)


def pack(data: object) -> str:
    """Return plain data as JSON, compressed (zlib, RFC 1950) and in base64."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def cut(text: str) -> str:
    """Return a text of at most a hundred thousand characters, and a line that tells how many are missing."""
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:_MAX_TEXT]}\n… cut, {len(text) - _MAX_TEXT} more characters"


@dataclass(frozen=True, slots=True)
class Duel:
    """A candidate that may be shown before all others."""

    row: int
    problem_id: str
    program: str
    beaten_share: float
    """Share of the right new tests that beat it; 2: only others beat it; 3: none of its suites did."""

    @property
    def is_won_right(self) -> bool:
        """Whether a right test that copies no example beats it."""
        return self.beaten_share <= 1


@dataclass(slots=True)
class _Texts:
    """A table of distinct texts."""

    texts: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        text = cut(text)
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


class Archive:
    """Collects the groups of runs, one run after the other, as `pages` and an `index`."""

    def __init__(self, *, with_replies: bool = True) -> None:
        """Make an archive.

        Args:
            with_replies: whether to keep the raw replies, too.
        """
        self._with_replies = with_replies
        self.pages: list[str] = []
        """Packed; page p begins with group `p * GROUPS_PER_PAGE`."""
        self.n_bytes = 0
        """Length of all pages together."""
        self.n_rows = 0
        """Number of candidates."""
        self.closest: dict[int, Duel] = {}
        """By run, of programs that load: the first that the smallest share of right tests beat, else others."""
        self.last: dict[int, Duel] = {}
        """By run."""
        self._texts = _Texts()
        self._groups: list[Any] = []
        self._n_groups = 0
        self._problems: dict[tuple[int, str], int] = {}
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def add(self, run: int, group: Group) -> None:
        """Add one group of the run with this number."""
        problem = self._problems.setdefault((run, group.problem_id), len(self._problems))
        for number, played in enumerate(group.members.values()):
            self._add_row(run, group, number, played, problem)
        members = [self._member(label, played) for label, played in group.members.items()]
        self._groups.append([self._texts.number(group.id), members])
        self._n_groups += 1
        if len(self._groups) == GROUPS_PER_PAGE:
            self._end_page()

    def close(self) -> None:
        """Pack the last page; call it after the last `add`."""
        if self._groups:
            self._end_page()

    def index(self) -> dict[str, Any]:
        """Return the columns and the names for their numbers."""
        return {
            "outcomes": [outcome.value for outcome in _OUTCOMES],
            "verdicts": [verdict.value for verdict in _VERDICTS],
            "problems": [[run, problem_id] for run, problem_id in self._problems],
            "perPage": GROUPS_PER_PAGE,
            "columns": self._columns,
        }

    def _end_page(self) -> None:
        page = pack({"t": self._texts.texts, "g": self._groups})
        self.pages.append(page)
        self.n_bytes += len(page)
        self._texts, self._groups = _Texts(), []

    def _add_row(self, run: int, group: Group, number: int, played: RoundRecord, problem: int) -> None:
        cases = (*new_cases(played), *played.replayed)
        row = {
            "run": run,
            "group": self._n_groups,
            "member": number,
            "step": group.step,
            "problem": problem,
            "outcome": _OUTCOMES.index(outcome_of(played)),
            **{role: finite(MEASURES[f"{role}_reward"](played, 0)) for role in ("coder", "tester")},
            "failed": sum(case.verdict.is_failure for case in cases),
            "cases": len(cases),
        }
        for name, value in row.items():
            self._columns[name].append(value)
        share = known_mean(case.verdict.is_failure for case in new_cases(played) if can_win(case))
        fallback = 2.0 if any(case.verdict.is_failure for case in new_cases(played)) else 3.0
        share = share if outcome_of(played) is Outcome.BEATEN else fallback
        self.last[run] = duel = Duel(self.n_rows, group.problem_id, played.candidate.program, share)
        if played.candidate.verdict is Verdict.PASSED:
            self.closest[run] = min(self.closest.get(run, duel), duel, key=lambda each: each.beaten_share)
        self.n_rows += 1

    def _member(self, label: str, played: RoundRecord) -> list[Any]:
        candidate, number = played.candidate, self._texts.number
        replies = [None if reply is None else number(reply) for reply in (played.coder_reply, played.tester_reply)]
        return [
            number(label),
            number(candidate.program),
            _VERDICTS.index(candidate.verdict),
            number(candidate.detail or (candidate.rejection.detail if candidate.rejection else "")),
            [self._case(case) for case in played.replayed],
            [self._suite(suite) for suite in played.suites],
            [self._reward(played.rewards.coder), [self._reward(reward) for reward in played.rewards.testers]],
            None if played.book is None else list(played.book.model_dump().values()),
            replies if self._with_replies else None,
            candidate.golden_pass_rate,
        ]

    def _suite(self, suite: SuiteRecord) -> list[Any]:
        number = self._texts.number
        rejections = [  # a search finds the rules' own word, too
            [*map(number, (why_dropped(it.reason, it.detail), it.reason.replace("_", " "), it.source)), it.line]
            for it in suite.rejections
        ]
        return [[self._case(case) for case in suite.cases], rejections]

    def _case(self, case: CaseRecord) -> list[Any]:
        number = self._texts.number
        return [
            number("; ".join((*case.imports, case.expression))),
            number(_describe_value(case.expected)),
            _prediction_code(case),
            None if case.prediction is None or case.prediction_right else number(case.prediction),
            _VERDICTS.index(case.verdict),
            number(case.actual) if case.actual else None,
            case.line,
        ]

    def _reward(self, reward: RewardRecord) -> list[Any]:
        number = self._texts.number
        parts = [
            [number(part.name.replace("_", " ")), finite(part.weight), finite(part.value)] for part in reward.parts
        ]
        return [finite(reward.value), parts]


_COLUMNS = ("run", "group", "member", "step", "problem", "outcome", "coder", "tester", "failed", "cases")


def _prediction_code(case: CaseRecord) -> int | None:
    """Return 0 for a wrong prediction, 1 for a right one, 2 for a copied example; None: nothing was predicted."""
    if case.prediction_right is None:
        return None
    return int(case.prediction_right) + int(case.prediction_right and case.is_example)


def _describe_value(expected: str) -> str:
    try:
        return values.describe(expected.encode(), _MAX_VALUE)
    except values.Malformed:  # another version recorded it, or somebody edited it: show the text itself
        return harmless(expected[:_MAX_VALUE])


def finite(value: float | None) -> float | None:
    """Return a number with six decimals; None for None, nan and inf, which JSON lacks."""
    return None if value is None or not isfinite(value) else round(value, 6)
