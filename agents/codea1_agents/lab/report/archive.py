"""Episodes packed for the page: a table of what can be filtered, and the texts in compressed pages.

Theory of operation. A browser that had to parse ten thousand episodes before it could show one would be slow, so the
episodes lie in pages of a few dozen, each deflated and written in base64, and a page is unpacked when one of its
episodes is opened. Within a page every text stands once, in a table; the rest are numbers. What filters need lies
apart, in columns, and is unpacked at once.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from codea1_agents.lab.report.material import Group, Part
from codea1_agents.lab.report.outcomes import Outcome, outcome_of
from codea1_agents.play.summary import new_cases
from codea1_env import values
from codea1_env.facts.verdicts import Verdict
from codea1_env.rendering import harmless
from codea1_env.runs.records import CaseRecord, RewardRecord, SuiteRecord

GROUPS_PER_PAGE = 40
_MAX_TEXT = 100_000
_MAX_VALUE = 400
_OUTCOMES = tuple(Outcome)
_VERDICTS = tuple(Verdict)


def packed(data: object) -> str:
    """Return plain data as JSON, deflated (RFC 1950) and in base64."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@dataclass(slots=True)
class _Texts:
    """A table in which every text stands once."""

    texts: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        if len(text) > _MAX_TEXT:
            text = f"{text[:_MAX_TEXT]}\n… cut, {len(text) - _MAX_TEXT} more characters"
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


class Archive:
    """Takes in groups of runs, one run after the other; `pages` and `index` are what the page holds."""

    def __init__(self, *, with_replies: bool = True) -> None:
        """Make an archive.

        Args:
            with_replies: whether the raw replies are kept beside what was read from them.
        """
        self._with_replies = with_replies
        self.pages: list[str] = []
        """Packed; page p holds groups `p * GROUPS_PER_PAGE` and on."""
        self.n_bytes = 0
        """Length of all pages."""
        self.n_rows = 0
        self._texts = _Texts()
        self._groups: list[Any] = []
        self._n_groups = 0
        self._problems: dict[tuple[int, str], int] = {}
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def add(self, run: int, group: Group) -> None:
        """Take in one group of the run with this number."""
        problem = self._problems.setdefault((run, group.problem_id), len(self._problems))
        for number, part in enumerate(group.parts):
            self._add_row(run, group, number, part, problem)
        self._groups.append([self._texts.number(group.id), [self._part(part) for part in group.parts]])
        self._n_groups += 1
        if len(self._groups) == GROUPS_PER_PAGE:
            self._turn_page()

    def close(self) -> None:
        """Pack what is left; call it when all groups are in."""
        if self._groups:
            self._turn_page()

    def index(self) -> dict[str, Any]:
        """Return the columns and what their numbers mean."""
        return {
            "outcomes": [outcome.value for outcome in _OUTCOMES],
            "verdicts": [verdict.value for verdict in _VERDICTS],
            "problems": [[run, problem_id] for run, problem_id in self._problems],
            "perPage": GROUPS_PER_PAGE,
            "columns": self._columns,
        }

    def _turn_page(self) -> None:
        page = packed({"t": self._texts.texts, "g": self._groups})
        self.pages.append(page)
        self.n_bytes += len(page)
        self._texts, self._groups = _Texts(), []

    def _add_row(self, run: int, group: Group, number: int, part: Part, problem: int) -> None:
        played = part.played
        cases = (*new_cases(played), *played.replayed)
        testers = [reward.value for reward in played.rewards.testers if reward.value is not None]
        asked = played.tester_reply is not None and bool(testers)
        row = {
            "run": run,
            "group": self._n_groups,
            "part": number,
            "step": group.step,
            "problem": problem,
            "outcome": _OUTCOMES.index(outcome_of(played)),
            "coder": _rounded(played.rewards.coder.value),
            "tester": _rounded(sum(testers) / len(testers)) if asked else None,
            "failed": sum(case.verdict.is_failure for case in cases),
            "cases": len(cases),
        }
        for name, value in row.items():
            self._columns[name].append(value)
        self.n_rows += 1

    def _part(self, part: Part) -> list[Any]:
        played, number = part.played, self._texts.number
        candidate = played.candidate
        replies: list[Any] = [number(played.coder_reply), _optional(played.tester_reply, number)]
        return [
            number(part.label),
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
        rejections = [
            [number(each.reason.value.replace("_", " ")), number(each.source), each.line, number(each.detail)]
            for each in suite.rejections
        ]
        return [[self._case(case) for case in suite.cases], rejections]

    def _case(self, case: CaseRecord) -> list[Any]:
        number = self._texts.number
        return [
            number("; ".join((*case.imports, case.expression))),
            number(_described(case.expected)),
            None if case.prediction_right is None else int(case.prediction_right),
            None if case.prediction is None or case.prediction_right else number(case.prediction),
            _VERDICTS.index(case.verdict),
            number(case.actual) if case.actual else None,
            case.line,
        ]

    def _reward(self, reward: RewardRecord) -> list[Any]:
        number = self._texts.number
        parts = [
            [number(part.name.replace("_", " ")), _rounded(part.weight), _rounded(part.value)] for part in reward.parts
        ]
        return [_rounded(reward.value), parts]


_COLUMNS = ("run", "group", "part", "step", "problem", "outcome", "coder", "tester", "failed", "cases")


def _described(expected: str) -> str:
    try:
        return values.describe(expected.encode(), _MAX_VALUE)
    except values.Malformed:  # recorded by another version, or edited: shown as it is
        return harmless(expected[:_MAX_VALUE])


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _optional(text: str | None, number: Any) -> int | None:
    return None if text is None else int(number(text))
