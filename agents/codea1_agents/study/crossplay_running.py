"""Playing all pairs: programs are written once, every tester answers each of them, and everything is judged.

The judge, the limits and the rewards are those of the game; there is no Mistake Book. All agents get the same turns and
seeds, so that a pair's games do not depend on who else takes part (but for *transfer*, which needs others).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import Literal

import numpy as np

from codea1_agents.evaluation.asking import Asker, Turn
from codea1_agents.study.crossplay import (
    Cells,
    CrossPlay,
    GameFigures,
    StoredProgram,
    StoredSuite,
    Submissions,
    figures_of,
)
from codea1_env.errors import AgentUnavailable
from codea1_env.golden_runs import run_golden
from codea1_env.judge import Duel, Judge
from codea1_env.problems.problem import Problem
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.ruleset import Ruleset
from codea1_env.sandbox.interface import Sandbox
from codea1_env.submissions import Candidate, Suite
from codea1_env.verdicts import CandidateReport, Verdict

_CHUNK = 16  # problems at a time

Transfer = Literal["others", "blind", "none"]
"""Which suites are stored ones: those written for the other coders' programs, those written for no program."""
View = Literal["white_box", "black_box"]


@dataclass(frozen=True, slots=True)
class Seat:
    """Somebody who plays a role."""

    name: str
    asker: Asker
    is_fixed: bool = False
    """Whether it is a scripted yardstick."""
    view: View = "white_box"
    """Of a tester: whether it sees programs."""


def play_all(
    problems: Sequence[Problem],
    coders: Sequence[Seat],
    testers: Sequence[Seat],
    sandbox: Sandbox,
    rules: Ruleset,
    *,
    samples: int = 4,
    transfer: Transfer = "others",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[CrossPlay, Submissions]:
    """Return what all pairs are worth against each other, and what they handed in.

    On policy, each tester writes one suite for each program that loads. In transfer, the n-th program of a coder meets
    the n-th suites that a tester has written for every other coder on this problem (`others`), or its n-th suite
    written from the problem alone (`blind`); nobody is asked for `others`.

    Args:
        problems: at least one; those without golden tests say nothing about which programs are right.
        coders: at least one, with different names.
        testers: likewise.
        sandbox: where everything runs.
        rules: how suites are validated and what is paid.
        samples: programs per coder and problem.
        transfer: `none` leaves it out; so does `others` with a single coder.
        progress: called with the problems that are done, and all.

    Raises:
        UserError: an agent failed.
        AgentUnavailable: one that was asked for several problems answered nothing.
        SandboxError: the sandbox cannot be used at all.
    """
    if transfer == "others" and len(coders) < 2:
        transfer = "none"
    table = _Table(coders, testers, sandbox, rules, samples, transfer)
    for start in range(0, len(problems), _CHUNK):
        table.play(problems[start : start + _CHUNK])
        progress(min(start + _CHUNK, len(problems)), len(problems))
    play = CrossPlay(
        coders=tuple(seat.name for seat in coders),
        testers=tuple(seat.name for seat in testers),
        problems=tuple(problem.id for problem in problems),
        right=np.array(table.right).reshape(len(problems), len(coders)).T,
        on_policy=Cells.of(table.on_policy),
        transfer=None if transfer == "none" else Cells.of(table.transferred),
        fixed_coders=tuple(n for n, seat in enumerate(coders) if seat.is_fixed),
        fixed_testers=tuple(n for n, seat in enumerate(testers) if seat.is_fixed),
    )
    return play, Submissions(tuple(table.programs), tuple(table.suites))


@dataclass(slots=True)
class _Written:
    """One program of a coder, and what testers have written for it."""

    coder: int
    problem: int
    """Within the chunk."""
    sample: int
    candidate: Candidate
    report: CandidateReport
    """As far as loading it tells."""
    is_right: bool | None = None
    suites: dict[int, Suite] = field(default_factory=dict)
    """By tester; not there where it was not asked or was unavailable."""


_Games = list[list[list[list[GameFigures | None]]]]


class _Table:
    """Who plays, and what has come of it so far."""

    def __init__(
        self,
        coders: Sequence[Seat],
        testers: Sequence[Seat],
        sandbox: Sandbox,
        rules: Ruleset,
        samples: int,
        transfer: Transfer,
    ) -> None:
        self.on_policy: _Games = [[[] for _ in testers] for _ in coders]
        self.transferred: _Games = [[[] for _ in testers] for _ in coders]
        self.right: list[list[float]] = []
        """(P, C)"""
        self.programs: list[StoredProgram] = []
        self.suites: list[StoredSuite] = []
        self._coders, self._testers, self._rules, self._samples = coders, testers, rules, samples
        self._transfer, self._sandbox, self._judge = transfer, sandbox, Judge(sandbox, rules)

    def play(self, problems: Sequence[Problem]) -> None:
        """Play some problems."""
        written = self._programs(problems)
        for coder in range(len(self._coders)):
            for tester in range(len(self._testers)):
                for games in (self.on_policy, self.transferred):
                    games[coder][tester] += [[] for _ in problems]
        for number, seat in enumerate(self._testers):
            self._answer(problems, written, number, seat)
            own = [(each, (each.suites[number],)) for each in written if number in each.suites]
            self._take(problems, written, own, number, self.on_policy)
            if self._transfer != "none":
                stored = self._stored(problems, written, number, seat)
                self._take(problems, written, stored, number, self.transferred)

    def _programs(self, problems: Sequence[Problem]) -> list[_Written]:
        written = []
        for coder, seat in enumerate(self._coders):
            turns = [Turn(problem=p, role="coder", sample=n) for p in problems for n in range(self._samples)]
            for at, (turn, text) in enumerate(zip(turns, self._replies(seat, turns), strict=True)):
                if text is not None:
                    candidate = read_candidate(text, self._rules.reading, entry_point=turn.problem.entry_point)
                    unknown = CandidateReport(candidate, Verdict.PASSED)
                    written.append(_Written(coder, at // self._samples, turn.sample, candidate, unknown))
        self._look_at(problems, written)
        for number in range(len(problems)):
            mine = [each for each in written if each.problem == number]
            self.right.append([_share(w.is_right for w in mine if w.coder == c) for c in range(len(self._coders))])
        self.programs += [
            StoredProgram(
                self._coders[each.coder].name,
                problems[each.problem].id,
                each.sample,
                each.candidate.program,
                each.is_right,
            )
            for each in written
        ]
        return written

    def _look_at(self, problems: Sequence[Problem], written: Sequence[_Written]) -> None:
        """Find out which programs load, and which are right."""
        for number, problem in enumerate(problems):
            mine = [each for each in written if each.problem == number]
            checks = self._judge.check([(problem, each.candidate) for each in mine])
            for each, check in zip(mine, checks, strict=True):
                each.report = replace(each.report, verdict=check.verdict, detail=check.detail)
        tested = [each for each in written if problems[each.problem].golden]
        programs = [(problems[each.problem], each.candidate.program) for each in tested]
        for each, found in zip(tested, run_golden(programs, self._sandbox, self._rules.comparison), strict=True):
            each.is_right = found.passed

    def _answer(self, problems: Sequence[Problem], written: Sequence[_Written], number: int, seat: Seat) -> None:
        """Let a tester write a suite for each program that loads."""
        asked = [each for each in written if each.report.is_valid]
        turns = [
            self._tester_turn(
                problems[each.problem],
                each.sample,
                program=each.candidate.program if seat.view == "white_box" else "",
                view=seat.view,
            )
            for each in asked
        ]
        for each, turn, text in zip(asked, turns, self._replies(seat, turns), strict=True):
            if text is not None:
                each.suites[number] = self._suite(turn, seat, self._coders[each.coder].name, text)

    def _stored(
        self, problems: Sequence[Problem], written: Sequence[_Written], number: int, seat: Seat
    ) -> list[tuple[_Written, tuple[Suite, ...]]]:
        """Return programs with a tester's suites that were not written for them, where there are any."""
        valid = [each for each in written if each.report.is_valid]
        suites: dict[tuple[int, int], dict[int, Suite]] = {}
        if self._transfer == "blind":
            turns = [self._tester_turn(p, n, program="", view="blind") for p in problems for n in range(self._samples)]
            for at, (turn, text) in enumerate(zip(turns, self._replies(seat, turns), strict=True)):
                if text is not None:
                    suites[at // self._samples, turn.sample] = {-1: self._suite(turn, seat, "", text)}
        else:
            for each in valid:
                if number in each.suites:
                    suites.setdefault((each.problem, each.sample), {})[each.coder] = each.suites[number]
        found = []
        for each in valid:
            of_others = suites.get((each.problem, each.sample), {})
            mine = tuple(suite for coder, suite in of_others.items() if coder != each.coder)
            if mine:
                found.append((each, mine))
        return found

    def _take(
        self,
        problems: Sequence[Problem],
        written: Sequence[_Written],
        meetings: Sequence[tuple[_Written, tuple[Suite, ...]]],
        number: int,
        games: _Games,
    ) -> None:
        """Judge what meets, and keep the figures."""
        by_problem: list[list[tuple[_Written, tuple[Suite, ...]]]] = [[] for _ in problems]
        for each, suites in meetings:
            by_problem[each.problem].append((each, suites))
        duels = [
            Duel(problem, tuple(each.candidate for each, _ in met), tuple(suites for _, suites in met))
            for problem, met in zip(problems, by_problem, strict=True)
        ]
        base = len(games[0][number]) - len(problems)
        for report, met in zip(self._judge.judge(duels), by_problem, strict=True):
            for candidate, (each, _) in zip(report.candidates, met, strict=True):
                figures = figures_of(candidate, self._rules, is_right=each.is_right)
                games[each.coder][number][base + each.problem].append(figures)
        self._take_others(written, number, games, base)

    def _take_others(self, written: Sequence[_Written], number: int, games: _Games, base: int) -> None:
        """Keep what needs no suite: programs that do not load, and replies that did not come."""
        for each in written:
            if not each.report.is_valid:
                figures = figures_of(each.report, self._rules)
                games[each.coder][number][base + each.problem].append(figures)
            elif games is self.on_policy and number not in each.suites:
                games[each.coder][number][base + each.problem].append(None)
        if games is self.on_policy:
            for coder in games:
                for some in coder[number][base:]:
                    some.extend([None] * (self._samples - len(some)))

    def _tester_turn(self, problem: Problem, sample: int, *, program: str, view: str) -> Turn:
        tests = self._rules.tests_per_suite
        return Turn(problem=problem, role="tester", sample=sample, program=program, tests=tests, view=view)

    def _suite(self, turn: Turn, seat: Seat, coder: str, text: str) -> Suite:
        self.suites.append(StoredSuite(seat.name, coder, turn.problem.id, turn.sample, text))
        return read_suite(
            text,
            self._rules.reading,
            entry_point=turn.problem.entry_point,
            tests_per_suite=self._rules.tests_per_suite,
        )

    def _replies(self, seat: Seat, turns: Sequence[Turn]) -> Iterator[str | None]:
        replies = seat.asker.ask(turns)
        if len(replies) > 1 and all(reply.text is None for reply in replies):
            raise AgentUnavailable(f"{seat.name}: {replies[0].fault}")
        return (reply.text for reply in replies)


def _share(flags: Iterable[bool | None]) -> float:
    known = [flag for flag in flags if flag is not None]
    return sum(known) / len(known) if known else nan
