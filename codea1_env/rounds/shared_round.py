"""One `Rounds` that several environments play at the same time, each its own tree of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from codea1_env.agent import Role
from codea1_env.errors import AgentUnavailable
from codea1_env.facts.verdicts import Verdict
from codea1_env.rounds.rounds import Rounds, Turn
from codea1_env.rounds.trees import JudgedTree

Replies = Sequence[str | AgentUnavailable]


class SharedRound:
    """Gathers the replies of all trees and hands them on when the last of a phase has come. Not thread-safe."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self._sent: dict[Role, dict[int, list[str | AgentUnavailable]]] = {"coder": {}, "tester": {}}

    def turns(self, role: Role) -> list[list[Turn]]:
        """Return who of a role is to act, by tree; those of testers wait for the load checks.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        return self._coder_turns if role == "coder" else self._tester_turns

    def submit(self, role: Role, place: int, replies: Replies) -> None:
        """Take the replies of one tree, in the order of its turns; the same ones once more change nothing.

        Raises:
            ValueError: there are more or fewer than turns.
            RuntimeError: they differ from those that were submitted before, which have been read by now.
        """
        sent = self._sent[role]
        if place in sent:
            if sent[place] != list(replies):
                raise RuntimeError("actions were changed after they had been sent to a shared round")
            return
        sent[place] = list(replies)
        if len(sent) == len(self.rounds.trees):
            gathered = [reply for tree in range(len(sent)) for reply in sent[tree]]
            (self.rounds.submit_programs if role == "coder" else self.rounds.submit_suites)(gathered)
            if not self._has_testers:
                self.rounds.submit_suites(())

    def settled(self, place: int) -> tuple[Verdict | None, ...]:
        """Return the verdicts on programs of one tree that are not worth a suite, None where they are: (N,); waits."""
        return self.rounds.settled()[place]

    def wait(self) -> None:
        """Wait for what the last replies have started.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        if self._sent["tester"] or not self._has_testers:
            assert self.results
        else:
            assert self._tester_turns is not None

    @cached_property
    def results(self) -> list[JudgedTree]:
        """One judged tree per tree; waits.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        return self.rounds.results()

    @property
    def _has_testers(self) -> bool:
        return any(tree.n_suites for tree in self.rounds.trees)

    @cached_property
    def _coder_turns(self) -> list[list[Turn]]:
        return self._by_tree(self.rounds.coder_turns())

    @cached_property
    def _tester_turns(self) -> list[list[Turn]]:
        return self._by_tree(self.rounds.tester_turns())

    def _by_tree(self, turns: Sequence[Turn]) -> list[list[Turn]]:
        found: list[list[Turn]] = [[] for _ in self.rounds.trees]
        for turn in turns:
            found[turn.tree].append(turn)
        return found
