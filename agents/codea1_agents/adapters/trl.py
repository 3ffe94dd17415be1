"""TRL: data sets and reward functions for `GRPOTrainer`, and for every trainer of TRL that takes reward functions.

::

    referee = Referee("starter", "golden")
    trainer = GRPOTrainer(
        model=..., reward_funcs=reward_function("coder", referee), train_dataset=dataset("coder", "starter"), args=...
    )

A masked reward is None, and TRL excludes it: the reply does not enter the mean of its group, and its advantage is 0.
That holds for a reward function alone: TRL adds up several, and one that is None adds 0.

`coder_env` makes environments in which a coder repairs its program: `GRPOTrainer(environment_factory=coder_env(...))`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from math import isnan
from typing import Any, TypeAlias, Unpack

from codea1_agents.adapters.messages import GIVEN, RowSettings, rows
from codea1_agents.adapters.scoring import (
    Frozen,
    frozen_agent,
    require_paid,
    required,
    role_scores,
    written_suites,
)
from codea1_agents.play.named_agent import NamedAgent, is_text
from codea1_env.agent import Role
from codea1_env.errors import UserError, extra_needed, of_type, one_of, whole_number
from codea1_env.problems import ProblemSource
from codea1_env.rounds.episodes import MAX_CYCLES
from codea1_env.rounds.referee import Referee, Reply, Scored
from codea1_env.rounds.rounds import RoundOptions, Tree
from codea1_env.rounds.trajectories import next_tree

_ROW = "the data set for codea1_agents.adapters.trl"
RewardFunction: TypeAlias = Callable[..., Any]


def dataset(
    role: Role,
    problems: ProblemSource,
    **settings: Unpack[RowSettings],
) -> Any:
    """Return the `datasets.Dataset` of one role; the arguments and columns are those of `adapters.messages.rows`.

    Raises:
        MissingExtra: the package datasets is not installed.
        UserError: an argument is invalid, or no row is left.
    """
    found = rows(role, problems, **settings)
    with extra_needed("a data set for TRL", "trl"):
        from datasets import Dataset  # noqa: PLC0415
    return Dataset.from_list(found)


def reward_function(
    role: Role,
    referee: Referee,
    *,
    against: Frozen | None = None,
    logs_parts: bool = False,
    is_async: bool = False,
) -> RewardFunction:
    """Return a reward function of TRL, which judges a whole generation at once. It pickles if `against` does.

    Args:
        role: that is trained; it names the function (`coder_reward`), which TRL's logs show.
        referee: judges; each process of a distributed training has its own.
        against: for a coder, a frozen tester that writes a suite for each program. None: the suite, or for a tester
            the program, is the data set's.
        logs_parts: whether TRL logs the means of the reward's parts and the share of masked replies
            (`coder/pass_new`, `coder/masked`) and shows verdicts and reasons of masks in its table of completions.
        is_async: whether it is a coroutine function, which TRL awaits together with other rewards.

    Returns:
        A function of TRL's keyword arguments; one reward per completion, None where masked.

    Raises:
        UserError: an argument has an invalid value, or the rules never pay the role. The function raises it for a
            coder's row without a suite under rules that pay for tests only, and for a data set that lacks a column.
    """
    one_of("role", role, ("coder", "tester"))
    require_paid(role, of_type("referee", referee, Referee).rules)
    if against is not None and role == "tester":
        raise UserError("a tester's prompt shows the program: pass the frozen coder to the data set")
    kind = AsyncRewards if is_async else Rewards
    found = kind(referee, against=against, logs_parts=logs_parts)
    return found.coder_reward if role == "coder" else found.tester_reward


def coder_env(referee: Referee, *, against: Frozen, turns: int = 2) -> Callable[[], CoderEnv]:
    """Return what makes environments for TRL's `environment_factory`; its rows are those of `dataset("coder", ...)`.

    Args:
        referee: judges.
        against: a frozen tester, which writes a suite for each program; what fails of it is shown.
        turns: programs per episode, from 1 to `MAX_CYCLES`.

    Raises:
        UserError: an argument has an invalid value.
    """
    tester = frozen_agent("tester", against, of_type("referee", referee, Referee).problems)
    return partial(CoderEnv, referee, tester, whole_number("turns", turns, most=MAX_CYCLES))


class CoderEnv:
    """An episode of one coder, who repairs its program turn by turn; TRL offers `submit` to the model as a tool."""

    def __init__(self, referee: Referee, tester: NamedAgent, turns: int) -> None:
        """Take the arguments of `coder_env`."""
        self._referee, self._tester, self._turns = referee, tester, turns
        self._tree: Tree | None = None
        self._rewards: list[float] = []
        self._failure: Exception | None = None

    def reset(self, problem_id: str, **columns: Any) -> str:
        """Begin an episode on the problem of a row; return what TRL adds to the prompt."""
        self._tree, self._rewards, self._failure = Tree(self._referee.problems.by_id(problem_id)), [], None
        return f"\n\nPass each program to the tool submit, at most {self._turns} times; it says which tests fail."

    def submit(self, program: str) -> str:
        """Run a program and say which tests it fails.

        Args:
            program: The whole program in Python.

        Returns:
            The failed tests, or that the episode is over.
        """
        if self._tree is None or not is_text(program):
            return "The episode is over." if self._tree is None else "The argument program must be text."
        try:
            options = RoundOptions(sample_of=lambda candidate, suite: 0, masks_sandbox_errors=True)
            (judged,) = self._referee.open([self._tree], options).play(lambda turns: [program], self._tester.replies)
        except Exception as error:  # TRL would show it to the model and go on
            self._failure = error
            raise
        self._rewards.append(float(judged.coder_rewards[0]))
        self._tree = next_tree(judged) if len(self._rewards) < self._turns else None
        return self._tree.trajectories[0].coder_feedback if self._tree else "The episode is over."

    def get_reward(self) -> float | None:
        """Return the reward of the last program, or of an empty one if there is none; None where masked.

        Raises:
            Exception: what `submit` raised.
        """
        if not self._rewards and self._failure is None:
            self.submit("")
        if self._failure is not None:
            raise self._failure
        return None if isnan(self._rewards[-1]) else self._rewards[-1]


class Rewards:
    """The rewards of both roles; each method is a reward function of TRL."""

    def __init__(self, referee: Referee, *, against: Frozen | None = None, logs_parts: bool = False) -> None:
        """Take the arguments of `reward_function`."""
        self.referee = referee
        self.against = against
        self.logs_parts = logs_parts
        self._tester = None if against is None else frozen_agent("tester", against, referee.problems)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), against=self.against, logs_parts=self.logs_parts), (self.referee,)

    def coder_reward(self, completions: Sequence[Reply], **columns: Any) -> Any:
        """Return one reward per completion of a coder."""
        return self._rewards("coder", completions, columns)

    def tester_reward(self, completions: Sequence[Reply], **columns: Any) -> Any:
        """Return one reward per completion of a tester."""
        return self._rewards("tester", completions, columns)

    def _rewards(self, role: Role, completions: Sequence[Reply], columns: dict[str, Any]) -> list[float | None]:
        problem_id = required("problem_id", columns, _ROW)
        given = (
            [reply or None for reply in required(GIVEN[role], columns, _ROW)]
            if self._tester is None
            else written_suites(self._tester, self.referee, problem_id, completions)
        )
        scores = role_scores(role, self.referee, problem_id, completions, given)
        log_extra, log_metric = columns.get("log_extra"), columns.get("log_metric")
        if self.logs_parts and log_extra is not None and log_metric is not None:
            for column, values in _table(scores).items():
                log_extra(column, values)
            for name, value in _means(role, scores).items():
                log_metric(f"{role}/{name}", value)
        return [each.reward(role) for each in scores]


class AsyncRewards(Rewards):
    """The same as coroutines, which do not block the event loop (as `Referee.arewards`)."""

    async def coder_reward(self, completions: Sequence[Reply], **columns: Any) -> list[float | None]:
        """Return one reward per completion of a coder."""
        return await asyncio.to_thread(self._rewards, "coder", completions, columns)

    async def tester_reward(self, completions: Sequence[Reply], **columns: Any) -> list[float | None]:
        """Return one reward per completion of a tester."""
        return await asyncio.to_thread(self._rewards, "tester", completions, columns)


def _table(scores: Sequence[Scored]) -> dict[str, list[str]]:
    """Return the columns of the table of completions."""
    return {
        "loads": ["" if each.report is None else each.report.verdict.value for each in scores],
        "masked_because": [each.masked_because for each in scores],
    }


def _means(role: Role, scores: Sequence[Scored]) -> dict[str, float]:
    """Return the mean of each part over the replies that have it, and the share of masked replies."""
    parts: dict[str, list[float]] = defaultdict(list)
    for each in scores:
        for name, value in each.parts.get(role, {}).items():
            parts[name].append(value)
    masked = sum(each.reward(role) is None for each in scores) / max(1, len(scores))
    return {name: sum(values) / len(values) for name, values in parts.items()} | {"masked": masked}
