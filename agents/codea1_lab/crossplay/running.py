"""Plays all pairs: each coder writes its programs once, every tester writes a suite for each, and the judge runs all.

Judge, limits and rewards are those of the game, without a Mistake Book. All agents get the same turns and seeds, so the
games of a pair do not depend on the other agents (except in *transfer*, which uses their suites).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import nan
from typing import TypeAlias

import numpy as np

from codea1_agents.play.named_agent import NamedAgent, Reply
from codea1_agents.statistics import known_mean
from codea1_env.errors import AgentUnavailable
from codea1_env.problems.problem import Problem
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import JudgedTree, RoundOptions, Rounds, Tree, Turn
from codea1_env.rules.ruleset import Ruleset
from codea1_env.sandbox.interface import Sandbox
from codea1_lab.crossplay.cells import (
    Cells,
    CrossPlay,
    GameFigures,
    StoredProgram,
    StoredSuite,
    Submissions,
    figures_of,
)
from codea1_lab.crossplay.player_specs import View

_CHUNK = 16  # problems at a time


@dataclass(frozen=True, slots=True)
class Player:
    """One agent in one role."""

    name: str
    agent: NamedAgent
    is_fixed: bool = False
    """Whether it is a scripted yardstick."""
    view: View = "white_box"
    """Whether a tester sees programs."""


def play_all(
    problems: Sequence[Problem],
    coders: Sequence[Player],
    testers: Sequence[Player],
    sandbox: Sandbox,
    rules: Ruleset,
    *,
    samples: int = 4,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[CrossPlay, Submissions]:
    """Return the measurements of all pairs, and all programs and suites.

    On policy, each tester writes one suite for each program that loads. In transfer, for which there must be several
    coders, the n-th program of a coder runs the n-th suites that a tester wrote for every other coder on this problem.

    Args:
        problems: at least one. Problems without golden tests do not show which programs are right.
        coders: at least one, with different names.
        testers: at least one, with different names.
        sandbox: runs all programs.
        rules: they validate suites and compute rewards.
        samples: programs per coder and problem.
        progress: called with the number of finished problems and of all problems.

    Raises:
        UserError: an agent failed.
        AgentUnavailable: an agent replied to none of several turns.
        SandboxError: the sandbox cannot be used at all.
    """
    session = _Session(coders, testers, Referee(problems, rules, sandbox=sandbox), samples)
    for start in range(0, len(problems), _CHUNK):
        session.play(problems[start : start + _CHUNK])
        progress(min(start + _CHUNK, len(problems)), len(problems))
    play = CrossPlay(
        coders=tuple(player.name for player in coders),
        testers=tuple(player.name for player in testers),
        problems=tuple(problem.id for problem in problems),
        right=np.array(session.right).reshape(len(problems), len(coders)).T,
        on_policy=Cells.of(session.on_policy),
        transfer=Cells.of(session.transferred) if len(coders) > 1 else None,
        fixed_coders=tuple(n for n, player in enumerate(coders) if player.is_fixed),
        fixed_testers=tuple(n for n, player in enumerate(testers) if player.is_fixed),
    )
    return play, Submissions(tuple(session.programs), tuple(session.suites))


_Games: TypeAlias = list[list[list[list[GameFigures | None]]]]
"""(C, T, P, S); None is masked."""
_Key: TypeAlias = tuple[int, int]
"""A program's place: the number of its problem within the chunk, and its own number among the problem's programs."""


class _Session:
    """The players and all results so far."""

    def __init__(self, coders: Sequence[Player], testers: Sequence[Player], referee: Referee, samples: int) -> None:
        self.on_policy: _Games = [[[] for _ in testers] for _ in coders]
        self.transferred: _Games = [[[] for _ in testers] for _ in coders]
        self.right: list[list[float]] = []
        """(P, C)"""
        self.programs: list[StoredProgram] = []
        self.suites: list[StoredSuite] = []
        self._coders, self._testers, self._referee = coders, testers, referee
        self._samples = samples

    def play(self, problems: Sequence[Problem]) -> None:
        """Play all pairs on some problems."""
        trees = [Tree(problem, len(self._coders) * self._samples) for problem in problems]
        rounds = self._referee.open(trees, RoundOptions(lambda candidate, _: candidate % self._samples))
        is_right = self._write_programs(rounds)
        self.right += [
            [_share(is_right[t, n] for n in self._of(c)) for c in range(len(self._coders))] for t in range(len(trees))
        ]
        for number, tester in enumerate(self._testers):
            own = rounds.fork(tester_view=tester.view)
            suites = self._write_suites(own, tester)
            self._add_figures(own.results(), number, is_right, self.on_policy)
            if len(self._coders) > 1:
                stored = rounds.fork()
                groups = self._stored_suites(len(problems), suites)
                written_for_others = [suite for of_tree in groups for group in of_tree for suite in group]
                stored.submit_suites(written_for_others, [list(map(len, of_tree)) for of_tree in groups])
                self._add_figures(stored.results(), number, is_right, self.transferred)

    def _of(self, coder: int) -> range:
        """Return the numbers of a coder's programs."""
        return range(coder * self._samples, (coder + 1) * self._samples)

    def _write_programs(self, rounds: Rounds) -> dict[_Key, bool | None]:
        """Submit the programs of all coders, and return which are right; None: not known."""
        turns, problems = rounds.coder_turns(), [tree.problem for tree in rounds.trees]
        replies: dict[_Key, Reply] = {}
        for coder, player in enumerate(self._coders):
            own_turns = [turn for turn in turns if turn.candidate in self._of(coder)]
            replies |= _by_key(own_turns, _replies_of(player, own_turns))
        rounds.submit_programs([replies[turn.tree, turn.candidate] for turn in turns])
        is_right: dict[_Key, bool | None] = {}
        findings = self._referee.golden([problems[t].id for t, _ in replies], list(replies.values()))
        for (t, n), finding in zip(replies, findings, strict=True):
            is_right[t, n] = finding.passed if problems[t].golden else None
            if finding.masked != "agent":
                coder, sample = divmod(n, self._samples)
                name, program = self._coders[coder].name, finding.program
                self.programs.append(StoredProgram(name, problems[t].id, sample, program, is_right[t, n]))
        return is_right

    def _write_suites(self, rounds: Rounds, tester: Player) -> dict[_Key, Reply]:
        """Submit the tester's suites, one for each program that loads, and return its replies."""
        turns = rounds.tester_turns()
        by_coder = sorted(turns, key=lambda turn: turn.candidate // self._samples)
        replies = _by_key(by_coder, _replies_of(tester, by_coder))
        rounds.submit_suites([replies[turn.tree, turn.candidate] for turn in turns])
        for (t, n), reply in replies.items():
            coder, sample = divmod(n, self._samples)
            if isinstance(reply, str):
                name, problem_id = self._coders[coder].name, rounds.trees[t].problem.id
                self.suites.append(StoredSuite(tester.name, name, problem_id, sample, reply))
        return replies

    def _stored_suites(self, n_problems: int, suites: Mapping[_Key, Reply]) -> list[list[tuple[str, ...]]]:
        """Return for each program the suites of a tester that were written for other coders: (P, N, any number)."""
        n_programs = len(self._coders) * self._samples

        def suites_for_others(t: int, n: int) -> tuple[str, ...]:
            others = (
                suites.get((t, other)) for other in range(n % self._samples, n_programs, self._samples) if other != n
            )
            return tuple(other for other in others if isinstance(other, str)) if (t, n) in suites else ()

        return [[suites_for_others(t, n) for n in range(n_programs)] for t in range(n_problems)]

    def _add_figures(
        self, judged: Sequence[JudgedTree], number: int, is_right: Mapping[_Key, bool | None], games: _Games
    ) -> None:
        """Add the figures of a tester's games; in transfer, skip programs without a stored suite to run."""
        for (t, tree), coder in product(enumerate(judged), range(len(self._coders))):
            played = (n for n in self._of(coder) if games is self.on_policy or _has_transfer_game(tree, n))
            games[coder][number].append([self._figures(tree, n, is_right[t, n]) for n in played])

    def _figures(self, tree: JudgedTree, n: int, is_right: bool | None) -> GameFigures | None:
        assert tree.report is not None
        if any(isinstance(reply, AgentUnavailable) for reply in tree.suites[n]):
            return None
        return figures_of(tree.report.candidates[n], self._referee.rules, is_right=is_right)


def _by_key(turns: Sequence[Turn], replies: Sequence[Reply]) -> dict[_Key, Reply]:
    return {(turn.tree, turn.candidate): reply for turn, reply in zip(turns, replies, strict=True)}


def _replies_of(player: Player, turns: Sequence[Turn]) -> list[Reply]:
    replies = player.agent.replies(turns)
    if len(replies) > 1 and all(isinstance(reply, AgentUnavailable) for reply in replies):
        raise AgentUnavailable(f"{player.name}: {replies[0]}")
    return replies


def _has_transfer_game(tree: JudgedTree, n: int) -> bool:
    """Whether a program ran stored suites, or loses without one because it does not load."""
    assert tree.report is not None
    return bool(tree.suites[n]) or not (
        isinstance(tree.programs[n], AgentUnavailable) or tree.report.candidates[n].loads
    )


def _share(flags: Iterable[bool | None]) -> float:
    return known_mean(nan if flag is None else flag for flag in flags)
