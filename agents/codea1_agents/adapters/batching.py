"""Judges single replies of an event loop in batches: what arrives while one batch is judged makes the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codea1_agents.adapters.scoring import require_paid, role_scores
from codea1_env.agent import Role
from codea1_env.rounds.referee import Referee, Reply, Scored


@dataclass(frozen=True, slots=True)
class _Waiting:
    problem_id: str
    reply: Reply
    given: Reply | None
    future: asyncio.Future[Scored]


class BatchingJudge:
    """Judges replies of one role for coroutines of one event loop; not thread-safe."""

    def __init__(self, role: Role, referee: Referee) -> None:
        """Make a judge; see `role_scores`.

        Raises:
            UserError: the rules never pay a tester, and the role is the tester's.
        """
        require_paid(role, referee.rules)
        self.role, self.referee = role, referee
        self.n_batches = 0
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def score(self, problem_id: str, reply: Reply, given: Reply | None) -> Scored:
        """Return the score of one reply; the arguments and errors are those of `role_scores`, for one reply."""
        self.referee.problems.by_id(problem_id)  # a wrong id fails alone, without its batch
        future: asyncio.Future[Scored] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(problem_id, reply, given, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._judge_all())
        return await future

    async def _judge_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            self.n_batches += 1
            (outcome,) = await asyncio.gather(asyncio.to_thread(self._judged, batch), return_exceptions=True)
            for place, each in enumerate(batch):
                if each.future.done():  # its caller has given up
                    continue
                if isinstance(outcome, BaseException):
                    each.future.set_exception(outcome)
                else:
                    each.future.set_result(outcome[place])

    def _judged(self, batch: Sequence[_Waiting]) -> list[Scored]:
        columns: list[list[Any]] = [
            [getattr(each, name) for each in batch] for name in ("problem_id", "reply", "given")
        ]
        return role_scores(self.role, self.referee, *columns)
