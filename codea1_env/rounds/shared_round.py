"""One `Rounds` that several environments play together; each of them plays one tree."""

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
    """Collects the replies of all trees and submits them when those of the last tree have come. Not thread-safe."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self._sent: dict[Role, dict[int, list[str | AgentUnavailable]]] = {"coder": {}, "tester": {}}

    def turns(self, role: Role) -> list[list[Turn]]:
        """Return the turns of a role, by tree; those of testers wait for the load checks.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        return self._coder_turns if role == "coder" else self._tester_turns

    def submit(self, role: Role, place: int, replies: Replies) -> None:
        """Submit the replies of one tree, in the order of its turns; submitting the same ones again has no effect.

        Raises:
            ValueError: their number differs from the number of turns.
            RuntimeError: they differ from earlier replies, which may have been read already.
        """
        sent = self._sent[role]
        if place in sent:
            if sent[place] != list(replies):
                raise RuntimeError("actions were changed after they had been sent to a shared round")
            return
        sent[place] = list(replies)
        if len(sent) == len(self.rounds.trees):
            all_replies = [reply for tree in range(len(sent)) for reply in sent[tree]]
            (self.rounds.submit_programs if role == "coder" else self.rounds.submit_suites)(all_replies)
            if not self._has_testers:
                self.rounds.submit_suites(())

    def early_verdicts(self, place: int) -> tuple[Verdict | None, ...]:
        """Return the verdicts on programs of one tree that get no suites, None for all others: (N,); waits."""
        return self.rounds.early_verdicts()[place]

    def wait(self) -> None:
        """Wait for the work that the last replies have started.

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
