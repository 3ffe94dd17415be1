"""Rollouts of trees: a problem, N candidates for it, and M suites for each candidate or for all of them.

Players act in group environments, many at a time: while the sandbox checks or judges some problems, the players
generate the next ones. A player of a role is a language model of the training, or any agent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from ray.tune.registry import ENV_CREATOR, _global_registry  # what `register_env` writes to

from codea1_agents.models.chat_format import ChatFormat
from codea1_agents.models.sampling import OnEnd, Response, SamplingRules, uncounted
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.prompts import Prompts
from codea1_agents.train.grpo.advantages import (
    Advantages,
    GroupedPart,
    advantages_by_parts,
    group_advantages,
    grouped_parts,
    has_parts,
    largest,
    top_variance,
    trajectory_returns,
)
from codea1_agents.train.grpo.batch import ScoredResponse
from codea1_agents.train.grpo.credit import by_tests, credit_of_groups, token_advantages
from codea1_agents.train.grpo.hyperparameters import AdvantageSettings, Shape
from codea1_agents.train.grpo.progress import Done, Part, Report, counted_replies, ignore_report
from codea1_agents.train.grpo.sampling import ResponseSize, RolloutEngine, single_seed
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_env.agent import Agent
from codea1_env.book.store import MistakeBook
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.facts.verdicts import ValidCase
from codea1_env.group_env import GroupEnv, GroupVector, coder_name, tester_name
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import JudgedTree, SuitesPer, Tree, Turn
from codea1_env.rules.ruleset import Ruleset


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a turn, or the reason why there is none."""

    text: str = ""
    prompt: tuple[int, ...] = ()
    response: Response | ResponseSize | None = None
    """None where no model of the training sampled it; its size in a tree that left its runner and does not train it."""
    token_advantages: Sequence[float] | None = None
    """(n_tokens,) once it is judged, where its tokens are paid for different things; else None."""
    unavailable: str = ""
    """Why there is no reply; empty if there is one. It is not the agent's fault, so the rollout is masked."""

    @property
    def reply(self) -> str | AgentUnavailable:
        """What the environment's `step` takes."""
        return AgentUnavailable(self.unavailable) if self.unavailable else self.text


Answer = Reply  # as checkpoints of a run with overlap name it that were written before 2026-11-29


class Player(Protocol):
    """Replies to the turns of one role."""

    def answer(self, turns: Sequence[Turn], on_end: OnEnd = uncounted) -> list[Reply]:
        """Return one answer per turn, in order; call `on_end` with each response when it ends."""

    def starts(self, answer: Reply) -> Sequence[int]:
        """Return where each token of an answer begins in its text; () if no model of the training sampled it."""


class ModelPlayer:
    """A causal language model, with its engine and its tokenizer.

    Args:
        engine: samples the responses.
        chat_format: turns messages into prompt tokens.
        end_tokens: ids that end a response.
        prompts: the wording.
        sampling: how the engine samples.
        max_prompt_tokens: longest prompt; None: only the model's context limits it.
    """

    def __init__(
        self,
        engine: RolloutEngine,
        chat_format: ChatFormat,
        end_tokens: Sequence[int],
        prompts: Prompts,
        sampling: SamplingRules,
        max_prompt_tokens: int | None = None,
    ) -> None:
        self._engine, self._format, self._ends = engine, chat_format, tuple(end_tokens)
        self._prompts = prompts
        self.sampling = sampling
        self._max_prompt = max_prompt_tokens

    def answer(self, turns: Sequence[Turn], on_end: OnEnd = uncounted) -> list[Reply]:
        """Sample one response per turn. A prompt that is too long gets none: its answer is `unavailable`."""
        prompts = [tuple(self._format.prompt_ids(self._prompts.messages(t.observation, t.info))) for t in turns]
        context = self._engine.context_length
        faults = [_length_fault(prompt, self.sampling, self._max_prompt, context) for prompt in prompts]
        sampled = [position for position, fault in enumerate(faults) if not fault]
        responses = iter(
            self._engine.sample(
                [prompts[position] for position in sampled],
                [turns[position].seed for position in sampled],
                self._ends,
                self.sampling,
                on_end,
            )
        )
        return [
            Reply(unavailable=fault)
            if fault
            else Reply(self._format.reply((response := next(responses)).tokens), prompt, response)
            for prompt, fault in zip(prompts, faults, strict=True)
        ]

    def starts(self, answer: Reply) -> Sequence[int]:
        """Return where each token begins in the text."""
        assert isinstance(answer.response, Response)
        return self._format.starts(answer.response.tokens)


def _length_fault(prompt: Sequence[int], sampling: SamplingRules, longest: int | None, context: int | None) -> str:
    """Return why a prompt is too long; empty if it is not."""
    if longest is not None and len(prompt) > longest:
        return f"a prompt of {len(prompt)} tokens, the longest allowed is {longest}"
    if context is not None and len(prompt) + sampling.max_tokens > context:
        reply = sampling.max_tokens
        return f"a prompt of {len(prompt)} tokens and a reply of {reply} do not fit a context of {context}"
    return ""


class AgentPlayer:
    """An agent that this training does not train: scripted, frozen or remote."""

    def __init__(self, agent: Agent, name: str) -> None:
        """Wrap an agent. An agent with `act_batch` keeps its seed; any other is reset with the seed of each turn."""
        self._asker = NamedAgent(agent, name, seed=None, seed_of=lambda turn: single_seed(turn.seed))

    def answer(self, turns: Sequence[Turn], on_end: OnEnd = uncounted) -> list[Reply]:
        """Return the agent's replies, which are no responses; see `NamedAgent.replies`."""
        return [
            Reply(reply) if isinstance(reply, str) else Reply(unavailable=str(reply) or "unavailable")
            for reply in self._asker.replies(turns)
        ]

    def starts(self, answer: Reply) -> Sequence[int]:
        """Return (): an agent is not trained."""
        return ()


@dataclass(frozen=True, slots=True)
class Task:
    """One problem to roll out."""

    number: int
    """Number of the task in the whole training. With the seed of the run it decides all random numbers of the tree."""
    problem_id: str
    replayed: tuple[ValidCase, ...] = ()
    """Cases from the Mistake Book, which judge the candidates, too."""


@dataclass(frozen=True, slots=True)
class RolledTree:
    """A judged tree with its sampled replies: N candidates and G groups of M suites. To RLlib, it is an episode.

    G is N, or 1 if a suite tests all candidates.
    """

    task: Task
    judged: JudgedTree
    """Without a report if the sandbox failed; then everything is masked. Its rewards are those of the rules."""
    candidates: tuple[Reply, ...]
    """(N,)"""
    suites: tuple[tuple[Reply, ...], ...]
    """(G, M); (G, 0) where a candidate is invalid or masked, as no tester gets a turn then."""
    coder_rewards: NDArray[np.float64]
    """(N,), the rewards of the environment; nan where masked."""
    tester_rewards: NDArray[np.float64]
    """(G, M), the rewards of the environment; nan where masked or where there was no turn."""
    coder: Advantages
    """(N,)"""
    tester: Advantages
    """(G, M), in the form of the settings; `decoupled` ones before they are normalised over the batch. Where tests are
    paid (`training.credit`), the means over the sides of a suite's tests."""
    kept: NDArray[np.bool_]
    """(G,): which groups of suites train the tester. Of the groups that can, those whose rewards vary most, or, where
    tests are paid, what these are paid for."""
    later: tuple[RolledTree, ...] = ()
    """The later turns of the candidates that were repaired, each with the advantage of its whole trajectory."""

    @property
    def all_suites(self) -> tuple[Reply, ...]:
        """The suites of all groups of this turn."""
        return tuple(answer for group in self.suites for answer in group)

    @property
    def turns(self) -> tuple[RolledTree, ...]:
        """All turns, the first one included."""
        return (self, *self.later)

    # What callbacks of RLlib expect of an episode

    @property
    def id_(self) -> str:
        """The episode's id in reports and in the Mistake Book."""
        return f"{self.task.number:08x}"

    def get_rewards(self) -> dict[str, float]:
        """Return the rewards by agent, without masked ones."""
        rewards: dict[str, float] = {}
        for turn in self.turns:
            numbers = turn.judged.tree.numbers
            paid = {coder_name(numbers[n]): float(reward) for n, reward in enumerate(turn.coder_rewards)}
            paid |= {
                tester_name(numbers[g], m): float(reward) for (g, m), reward in np.ndenumerate(turn.tester_rewards)
            }
            for agent, reward in paid.items():
                if not np.isnan(reward):
                    rewards[agent] = rewards.get(agent, 0.0) + reward
        return rewards

    def get_return(self) -> float:
        """Return the sum of the rewards; nan if all are masked."""
        rewards = self.get_rewards()
        return math.fsum(rewards.values()) if rewards else math.nan

    def env_steps(self) -> int:
        """Return how often the environment was stepped: once for all coders, and once for all testers."""
        return sum(1 + bool(turn.all_suites) for turn in self.turns)

    def agent_steps(self) -> int:
        """Return the number of replies."""
        return sum(len(turn.candidates) + len(turn.all_suites) for turn in self.turns)

    def trained_responses(self, settings: TrainingSettings) -> Iterator[ScoredResponse]:
        """Yield the responses that train a module: candidates, and the kept groups of suites, without masked ones.

        Each turn of a trajectory is a response of its own.
        """
        numbers = self.judged.tree.numbers
        roles, replies = settings.trained_roles, list[tuple[str, str, tuple[int, ...], Reply]]()
        if "coder" in roles:
            replies += [("coder", coder_name(numbers[n]), (n,), reply) for n, reply in enumerate(self.candidates)]
        for g in map(int, np.flatnonzero(self.kept) if "tester" in roles else ()):
            replies += [("tester", tester_name(numbers[g], m), (g, m), reply) for m, reply in enumerate(self.suites[g])]
        for role, agent, place, reply in replies:
            advantages = self.coder if role == "coder" else self.tester
            if reply.response is None or not advantages.is_trained[place]:
                continue
            assert isinstance(reply.response, Response)
            yield ScoredResponse(
                role,
                agent,
                settings.module_by_role[role],
                self.task.problem_id,
                reply.prompt,
                reply.response,
                float(advantages.values[place]),
                reply.token_advantages,
            )
        for turn in self.later:
            yield from turn.trained_responses(settings)

    def trim(self, trained: Iterable[ScoredResponse]) -> RolledTree:
        """Return the tree with the tokens of the responses that train only; of the others it has the sizes.

        Most suites train nothing, so that a node would mostly hold tokens that nobody reads. Golden tests can be
        megabytes, and the driver has them.
        """
        trained = list(trained)
        kept = {id(response.response) for response in trained}

        def trim(reply: Reply) -> Reply:
            response = reply.response
            if response is None or id(response) in kept:
                return reply
            return replace(reply, prompt=(), response=ResponseSize(response.n_tokens, response.is_cut))

        problem = replace(self.judged.tree.problem, golden=(), wrong_programs=())
        return replace(
            self,
            judged=replace(self.judged, tree=replace(self.judged.tree, problem=problem)),
            candidates=tuple(map(trim, self.candidates)),
            suites=tuple(tuple(map(trim, group)) for group in self.suites),
            later=tuple(turn.trim(trained) for turn in self.later),
        )


_Tree = TypeVar("_Tree")


@dataclass(frozen=True, slots=True)
class RolloutResult(Generic[_Tree]):
    """What came of some tasks: on a runner the trees, in the driver the facts about them (`metrics.TreeFacts`)."""

    trees: tuple[_Tree, ...]
    """In the order of their tasks, without those that no runner returned."""
    generate_s: float
    """Seconds in which the players of the slowest runner generated; its sandbox may work meanwhile."""
    judge_s: float
    """Seconds in which the sandbox of the slowest runner worked."""
    metrics: tuple[Any, ...] = ()
    """RLlib's metrics of each runner: what callbacks logged."""
    tasks: tuple[Task, ...] = ()
    iteration: int = 0
    """After how many iterations of learning the weights were sent that sampled the trees."""


class TreeRoller:
    """Rolls out trees: players act in group environments.

    Args:
        envs: the environments.
        players: by role.
        seed: of the run.
        advantages: how those of testers are computed.
    """

    def __init__(
        self,
        envs: GroupEnvs,
        players: Mapping[str, Player],
        *,
        seed: int = 0,
        advantages: AdvantageSettings | None = None,
    ) -> None:
        self._envs, self.players, self.seed = envs, players, seed
        self.shape, self.advantages = envs.shape, advantages or AdvantageSettings()
        self._generate_s = 0.0

    def roll(self, tasks: Sequence[Task], report: Report = ignore_report) -> RolloutResult[RolledTree]:
        """Return one tree per task, in order.

        Where the sandbox itself fails, rewards are masked.

        Args:
            tasks: the problems.
            report: called when replies have ended and when problems are judged.
        """
        self._generate_s = 0.0
        batches, shape = self._batches(tasks), self.shape
        for _ in range(shape.turns):
            for batch in batches:
                with counted_replies(Part.PROGRAMS, len(batch.tasks) * shape.n_candidates, report) as on_end:
                    batch.play("coder", on_end)
            for batch in batches if shape.n_suites else ():
                n_suites = len(batch.tasks) * shape.n_groups * shape.n_suites
                with counted_replies(Part.SUITES, n_suites, report) as on_end:
                    batch.play("tester", on_end)
        trees: list[RolledTree] = []
        for batch in batches:
            trees += batch.judge()
            report(Done(Part.JUDGED, len(batch.tasks)))
        return RolloutResult(tuple(trees), self._generate_s, sum(batch.vector.judge_s for batch in batches))

    def coder_turns(self, tasks: Sequence[Task]) -> list[Turn]:
        """Return the turns of all coders, task by task, and play nothing."""
        return [turn for batch in self._batches(tasks) for turn in batch.vector.turns()]

    def answers(self, role: str, turns: Sequence[Turn], on_end: OnEnd = uncounted) -> list[Reply]:
        """Return one reply of the role's player per turn."""
        begun = time.perf_counter()
        replies = self.players[role].answer(turns, on_end) if turns else []
        self._generate_s += time.perf_counter() - begun
        return replies

    def _batches(self, tasks: Sequence[Task]) -> list[_Batch]:
        size = self.shape.problems_at_once
        batches = [tasks[start : start + size] for start in range(0, len(tasks), size)]
        return [_Batch(self, *each) for each in zip(batches, self._envs.vectors(len(batches)), strict=True)]


class _Batch:
    """Problems that are generated and judged together: the episodes of one vector."""

    def __init__(self, roller: TreeRoller, tasks: Sequence[Task], vector: GroupVector) -> None:
        self.vector, self._roller, self.tasks = vector, roller, tasks
        problems, shape = vector.referee.problems, roller.shape
        trees = [
            Tree(
                problems.by_id(task.problem_id),
                shape.n_candidates,
                shape.n_suites,
                shape.suites_per,
                task.replayed,
                name=f"{task.number:08x}",
                seed=(roller.seed, task.number),
            )
            for task in tasks
        ]
        vector.reset(options=[{"tree": tree} for tree in trees])
        self._replies: dict[tuple[str, int, int, int], list[Reply]] = {}
        """By role, task, turn, and the candidate that a suite is for; 0 for programs."""
        self._is_judging = False

    def play(self, role: str, on_end: OnEnd) -> None:
        """Wait for the judge, then let a role's player reply to all of its turns and send the replies to be judged.

        There are no turns if no program of any task loads, or if no task has another turn.
        """
        self._wait()
        turns = self.vector.turns() if self.vector.acting == role else []
        replies = self._roller.answers(role, turns, on_end)
        for turn, reply in zip(turns, replies, strict=True):
            group = turn.candidate if role == "tester" else 0
            self._replies.setdefault((role, turn.tree, int(turn.observation["round"]), group), []).append(reply)
        if turns:
            self.vector.send(self.vector.actions([reply.reply for reply in replies]))
            self._is_judging = True

    def judge(self) -> Iterator[RolledTree]:
        """Yield the judged trees with their advantages, each with its later turns."""
        self._wait()
        settings, keeps_flat = self._roller.advantages, self._roller.shape.keep_zero_std_groups
        for place, task in enumerate(self.tasks):
            rounds = self.vector.rounds(place)
            of_coder = [self.vector.coder_rewards(place, turn) for turn in range(len(rounds))]
            numbers, n_turns = [each.tree.numbers for each in rounds], self._roller.shape.turns
            returns = trajectory_returns(of_coder, numbers, n_turns, settings.turn_return, settings.turn_discount)
            coder = group_advantages(returns, keeps_flat=keeps_flat)
            turns = [self._rolled(place, task, judged, of_coder[turn], coder) for turn, judged in enumerate(rounds)]
            yield replace(turns[0], later=tuple(turns[1:]))

    def _rolled(
        self, place: int, task: Task, judged: JudgedTree, of_coder: NDArray[np.float64], coder: Advantages
    ) -> RolledTree:
        """Return one turn of a task.

        Args:
            place: of the task.
            task: of the turn.
            judged: its tree.
            of_coder: (N,) rewards of the environment in this turn.
            coder: (N,) advantages of the trajectories.
        """
        turn, numbers = judged.tree.round, list(judged.tree.numbers)
        is_shared = judged.tree.suites_per is SuitesPer.PROBLEM
        of_tester = self.vector.tester_rewards(place, turn)[[0] if is_shared else numbers]
        groups = [self._replies.get(("tester", place, turn, g), []) for g in range(judged.tree.n_groups)]
        tester, kept, suites = self._pay_suites(judged, of_tester, groups)
        return RolledTree(
            task=task,
            judged=judged,
            candidates=tuple(self._replies["coder", place, turn, 0]),
            suites=tuple(map(tuple, suites)),
            coder_rewards=of_coder[numbers],
            tester_rewards=of_tester,
            coder=Advantages(coder.values[numbers], coder.is_trained[numbers]),
            tester=tester,
            kept=kept,
        )

    def _wait(self) -> None:
        if self._is_judging:
            self.vector.recv()
            self._is_judging = False

    def _pay_suites(
        self, judged: JudgedTree, rewards: NDArray[np.float64], suites: Sequence[Sequence[Reply]]
    ) -> tuple[Advantages, NDArray[np.bool_], Sequence[Sequence[Reply]]]:
        """Return the advantages of suites, which groups of them train, and the suites with what their tokens are paid.

        Args:
            judged: their tree.
            rewards: (G, M), of the environment.
            suites: (G, M)
        """
        shape, settings = self._roller.shape, self._roller.advantages
        keeps_flat = shape.keep_zero_std_groups
        if settings.credit == "reply":
            advantages = suite_advantages(judged, rewards, settings, keeps_flat=keeps_flat)
            varying = np.where(advantages.is_trained.any(axis=-1, keepdims=True), rewards, np.nan)
            by_parts = settings.advantages != "sum"  # parts may differ where their sums are equal
            return advantages, top_variance(varying, shape.n_kept, keeps_flat=keeps_flat or by_parts), suites
        groups = credit_of_groups(judged, rewards, self.vector.referee.rules, settings)
        kept = largest(np.array([group.spread for group in groups]), shape.n_kept, keeps_flat=keeps_flat)
        player, paid = self._roller.players["tester"], [list(group) for group in suites]
        for g in map(int, np.flatnonzero(kept)):
            for m, (reply, tests) in enumerate(zip(suites[g], groups[g].suites, strict=True)):
                if reply.response is not None:
                    of_tokens = token_advantages(reply.text, player.starts(reply), tests, settings.other_text)
                    paid[g][m] = replace(reply, token_advantages=of_tokens)
        return by_tests(groups, ~np.isnan(rewards), keeps_flat=keeps_flat), kept, paid


def suite_advantages(
    judged: JudgedTree, rewards: NDArray[np.float64], settings: AdvantageSettings, *, keeps_flat: bool = False
) -> Advantages:
    """Return the advantages of the suites of a tree.

    Args:
        judged: the tree, with the parts of its rewards.
        rewards: (G, M), those of the environment; nan where masked. What an environment pays beyond the rules is a
            part of its own, of weight 1.
        settings: the form of the advantages.
        keeps_flat: as in `group_advantages`.

    Raises:
        UserError: a part has different weights in two of the rewards.
    """
    of_suites = [reward for each in judged.rewards for reward in each.testers]
    is_masked = np.isnan(rewards)
    # Suites of programs that do not load have no parts. That the rules have them is checked before the run.
    names = {part.name for reward in of_suites for part in reward.parts}
    if settings.advantages == "sum" or is_masked.all() or not has_parts(names, settings.advantages):
        return group_advantages(rewards, keeps_flat=keeps_flat)
    parts = [
        replace(part, values=np.where(is_masked, np.nan, np.nan_to_num(part.values)))
        for part in grouped_parts(of_suites, judged.of_suites)
    ]
    beyond = rewards - sum(part.weight * part.values for part in parts)
    return advantages_by_parts(
        [*parts, GroupedPart("environment", beyond, 1.0)],
        settings.advantages,
        valid_from=settings.valid_from,
        keeps_flat=keeps_flat,
    )


# Environments

_SET_ELSEWHERE = {
    "problems": "problems(...)",
    "n_candidates": "training(n_candidates=...)",
    "n_suites": "training(n_suites=...)",
    "suites_per": "training(suites_per=...)",
    "max_cycles": "training(turns=...)",
    "rules": "environment(rules=...)",
    "tester_view": "environment(tester_view=...)",
    "book": "that of the training",
    "sandbox": "environment(sandbox=...)",
    "limits": "environment(limits=...)",
    "masks_sandbox_errors": "True in every training",
    "golden": "the rules of the training",
}
"""Arguments of a group environment that other settings of the training decide."""


class GroupEnvs:
    """All group environments of a runner: vectors of equal size that share one referee.

    Args:
        env: as in `creator_of`.
        env_config: its arguments, apart from those that the training sets.
        problems: of the episodes.
        rules: of the game.
        shape: of the groups; `problems_at_once` is the number of environments in a vector.
        settings: of the training; they set the other arguments.
        golden: whether reports state golden pass rates; None: iff the rules pay for golden tests.

    Raises:
        UserError: `env` makes no group environment, or refuses its arguments.
    """

    def __init__(
        self,
        env: object,
        env_config: Mapping[str, Any],
        *,
        problems: ProblemSet,
        rules: Ruleset,
        shape: Shape,
        settings: TrainingSettings,
        golden: bool | None = None,
    ) -> None:
        self._name, self._creator, self.shape = env, creator_of(env), shape
        self._arguments = {
            **env_config,
            "problems": problems,
            "n_candidates": shape.n_candidates,
            "n_suites": shape.n_suites,
            "suites_per": shape.suites_per.value,
            "rules": rules,
            "tester_view": settings.tester_view,
            "book": MistakeBook(None),  # unused: replays come from the driver's book
            "sandbox": settings.sandbox,
            "limits": settings.limits,
            "masks_sandbox_errors": True,
            "golden": golden,
            **({"max_cycles": shape.turns} if shape.turns > 1 else {}),
        }
        self._vectors: list[GroupVector] = []
        self.referee = self.vectors(1)[0].referee
        """Reads and judges the replies of all environments."""

    def vectors(self, n: int) -> list[GroupVector]:
        """Return n vectors, always the same ones. Reset them before use."""
        while len(self._vectors) < n:
            members = [self._creator(dict(self._arguments)) for _ in range(self.shape.problems_at_once)]
            for env in members:
                if not isinstance(getattr(env, "unwrapped", None), GroupEnv):
                    kind = type(env).__name__
                    raise UserError(f"environment: {self._name!r} makes a {kind}, which is no group environment")
            self._vectors.append(GroupVector(members, self.referee if self._vectors else None))
        return self._vectors[:n]

    def close(self) -> None:
        """Close the environments and end the referee's thread. The sandbox is shared and stays."""
        for vector in self._vectors:
            vector.close()
        self.referee.close()


def require_group_env(env: object, env_config: Mapping[str, Any]) -> None:
    """Raise UserError for an `environment(env=..., env_config=...)` that makes no group environment."""
    creator_of(env)
    for name in sorted(env_config.keys() & _SET_ELSEWHERE):
        raise UserError(f"environment: env_config sets {name!r}, which is {_SET_ELSEWHERE[name]}")


def creator_of(env: object) -> Callable[[Mapping[str, Any]], Any]:
    """Return the function that makes an environment from its arguments.

    Args:
        env: a class derived from `code_a1_v0.group_env`; or the name under which `ray.tune.register_env` registered a
            function that returns such an environment or a PettingZoo wrapper around one.

    Raises:
        UserError: it is neither.
    """
    if isinstance(env, type) and issubclass(env, GroupEnv):
        return lambda arguments: env(**arguments)
    if isinstance(env, str) and _global_registry.contains(ENV_CREATOR, env):
        creator: Callable[[Mapping[str, Any]], Any] = _global_registry.get(ENV_CREATOR, env)
        return creator
    raise UserError(
        f"environment: {env!r} is neither a class derived from code_a1_v0.group_env nor registered by "
        "ray.tune.register_env"
    )
