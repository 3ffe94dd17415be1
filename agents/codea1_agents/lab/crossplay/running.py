"""Playing all pairs: programs are written once, every tester answers each of them, and everything is judged.

The judge, the limits and the rewards are those of the game; there is no Mistake Book. All agents get the same turns and
seeds, so that a pair's games do not depend on who else takes part (but for *transfer*, which needs others).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import nan
from typing import Literal

import numpy as np

from codea1_agents.lab.crossplay.cells import (
    Cells,
    CrossPlay,
    GameFigures,
    StoredProgram,
    StoredSuite,
    Submissions,
    figures_of,
)
from codea1_agents.measure.turns import sample_labels, sample_turn
from codea1_agents.play.named_agent import NamedAgent, Reply
from codea1_env.errors import AgentUnavailable
from codea1_env.problems.problem import Problem
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import Labels, RoundOptions, Rounds, Turn
from codea1_env.rounds.trees import JudgedTree, Tree, is_unavailable
from codea1_env.rules.ruleset import Ruleset
from codea1_env.sandbox.interface import Sandbox

_CHUNK = 16  # problems at a time

Transfer = Literal["others", "blind", "none"]
"""Which suites are stored ones: those written for the other coders' programs, those written for no program."""
View = Literal["white_box", "black_box"]


@dataclass(frozen=True, slots=True)
class Seat:
    """Somebody who plays a role."""

    name: str
    asker: NamedAgent
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
    table = _Table(coders, testers, Referee(problems, rules, sandbox=sandbox), samples, transfer)
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


_Games = list[list[list[list[GameFigures | None]]]]
_Place = tuple[int, int]
"""Of a program: its problem within the chunk, and its number among all that are written for it, coder by coder."""


class _Table:
    """Who plays, and what has come of it so far."""

    def __init__(
        self, coders: Sequence[Seat], testers: Sequence[Seat], referee: Referee, samples: int, transfer: Transfer
    ) -> None:
        self.on_policy: _Games = [[[] for _ in testers] for _ in coders]
        self.transferred: _Games = [[[] for _ in testers] for _ in coders]
        self.right: list[list[float]] = []
        """(P, C)"""
        self.programs: list[StoredProgram] = []
        self.suites: list[StoredSuite] = []
        self._coders, self._testers, self._referee = coders, testers, referee
        self._samples, self._transfer = samples, transfer

    def play(self, problems: Sequence[Problem]) -> None:
        """Play some problems."""
        trees = [Tree(problem, len(self._coders) * self._samples) for problem in problems]
        written = self._referee.open(trees, RoundOptions(self._labels()), in_background=False)
        is_right = self._write(written)
        self.right += [
            [_share(is_right[t, n] for n in self._of(c)) for c in range(len(self._coders))] for t in range(len(trees))
        ]
        for number, seat in enumerate(self._testers):
            own = written.fork(labels=self._labels(seat.view), shows_program=seat.view == "white_box")
            suites = self._answer(own, seat)
            self._take(own.results(), number, is_right, self.on_policy)
            if self._transfer != "none":
                stored = written.fork()
                stored.submit_groups(self._stored(problems, seat, suites))
                self._take(stored.results(), number, is_right, self.transferred)

    def _labels(self, view: str = "") -> Labels:
        return sample_labels(lambda candidate, _: candidate % self._samples, view)

    def _of(self, coder: int) -> range:
        """Return the numbers of a coder's programs."""
        return range(coder * self._samples, (coder + 1) * self._samples)

    def _write(self, rounds: Rounds) -> dict[_Place, bool | None]:
        """Let the coders write all programs, and return which are right; None where that is not known."""
        turns, problems = rounds.coder_turns(), [tree.problem for tree in rounds.trees]
        replies: dict[_Place, Reply] = {}
        for coder, seat in enumerate(self._coders):
            replies |= self._replies(seat, [turn for turn in turns if turn.candidate in self._of(coder)])
        rounds.submit_programs([replies[turn.tree, turn.candidate] for turn in turns])
        is_right: dict[_Place, bool | None] = {}
        found = self._referee.golden([problems[t].id for t, _ in replies], list(replies.values()))
        for (t, n), finding in zip(replies, found, strict=True):
            is_right[t, n] = finding.passed if problems[t].golden else None
            if finding.masked != "agent":
                coder, sample = divmod(n, self._samples)
                name, program = self._coders[coder].name, finding.program
                self.programs.append(StoredProgram(name, problems[t].id, sample, program, is_right[t, n]))
        return is_right

    def _answer(self, rounds: Rounds, seat: Seat) -> dict[_Place, Reply]:
        """Let a tester write a suite for each program that loads, and return what came."""
        turns = rounds.tester_turns()
        replies = self._replies(seat, sorted(turns, key=lambda turn: turn.candidate // self._samples))
        rounds.submit_suites([replies[turn.tree, turn.candidate] for turn in turns])
        for (t, n), reply in replies.items():
            coder, sample = divmod(n, self._samples)
            self._keep(seat, self._coders[coder].name, rounds.trees[t].problem, sample, reply)
        return replies

    def _stored(
        self, problems: Sequence[Problem], seat: Seat, suites: Mapping[_Place, Reply]
    ) -> list[list[tuple[str, ...]]]:
        """Return, for each program, those of a tester's suites that were not written for it: (P, N, any)."""
        blind = self._blind(problems, seat) if self._transfer == "blind" else None
        n_programs = len(self._coders) * self._samples

        def met(t: int, n: int) -> tuple[str, ...]:
            sample = n % self._samples
            others = (suites.get((t, other)) for other in range(sample, n_programs, self._samples) if other != n)
            found = others if blind is None else (blind[t, sample],)
            return tuple(each for each in found if isinstance(each, str)) if (t, n) in suites else ()

        return [[met(t, n) for n in range(n_programs)] for t in range(len(problems))]

    def _blind(self, problems: Sequence[Problem], seat: Seat) -> dict[_Place, Reply]:
        """Let a tester write suites from the problems alone, and return them by problem and sample."""
        tests, places = self._referee.rules.tests_per_suite, list(product(range(len(problems)), range(self._samples)))
        turns = [sample_turn(problems[t], "tester", sample, tests=tests, view="blind") for t, sample in places]
        replies = dict(zip(places, self._asked(seat, turns), strict=True))
        for (t, sample), reply in replies.items():
            self._keep(seat, "", problems[t], sample, reply)
        return replies

    def _keep(self, seat: Seat, coder: str, problem: Problem, sample: int, reply: Reply) -> None:
        if isinstance(reply, str):
            self.suites.append(StoredSuite(seat.name, coder, problem.id, sample, reply))

    def _take(
        self, judged: Sequence[JudgedTree], number: int, is_right: Mapping[_Place, bool | None], games: _Games
    ) -> None:
        """Keep the figures of what has met a tester's suites; in transfer, of what has met any."""
        for (t, tree), coder in product(enumerate(judged), range(len(self._coders))):
            games[coder][number].append(
                [
                    self._figures(tree, n, is_right[t, n])
                    for n in self._of(coder)
                    if games is self.on_policy or _has_met(tree, n)
                ]
            )

    def _figures(self, tree: JudgedTree, n: int, is_right: bool | None) -> GameFigures | None:
        assert tree.report is not None
        if any(map(is_unavailable, tree.suites[n])):
            return None
        return figures_of(tree.report.candidates[n], self._referee.rules, is_right=is_right)

    def _replies(self, seat: Seat, turns: Sequence[Turn]) -> dict[_Place, Reply]:
        return dict(zip([(turn.tree, turn.candidate) for turn in turns], self._asked(seat, turns), strict=True))

    def _asked(self, seat: Seat, turns: Sequence[Turn]) -> list[Reply]:
        replies = seat.asker.replies(turns)
        if len(replies) > 1 and all(map(is_unavailable, replies)):
            raise AgentUnavailable(f"{seat.name}: {replies[0]}")
        return replies


def _has_met(tree: JudgedTree, n: int) -> bool:
    """Whether a program has met stored suites, or needs none since it does not load."""
    assert tree.report is not None
    return bool(tree.suites[n]) or not (is_unavailable(tree.programs[n]) or tree.report.candidates[n].is_valid)


def _share(flags: Iterable[bool | None]) -> float:
    known = [flag for flag in flags if flag is not None]
    return sum(known) / len(known) if known else nan
