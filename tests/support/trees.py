"""Rolling trees of `toy/add` with players whose replies are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codea1_agents.train.grpo.hyperparameters import AdvantageSettings, Shape
from codea1_agents.train.grpo.rollout import GroupEnvs, Player, Reply, RolledTree, Task, TreeRoller
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_env.group_env import GroupEnv
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import SuitesPer, Turn
from codea1_env.rules.ruleset import Ruleset
from codea1_env.sandbox import Sandbox
from tests.support.toys import RULES


class Scripted:
    """Gives the same replies in every group and notes what it was asked."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.turns: list[Turn] = []

    def answer(self, turns: Sequence[Turn], *_: object) -> list[Reply]:
        self.turns += turns
        answers = [self.texts[number % len(self.texts)] for number in range(len(turns))]
        return [Reply(text) if text else Reply(unavailable="gone") for text in answers]

    def starts(self, answer: Reply) -> Sequence[int]:
        return ()


def rolled(
    sandbox: Sandbox,
    toys: ProblemSet,
    players: Mapping[str, Player],
    shape: Shape,
    rules: Ruleset = RULES,
    n: int = 1,
    advantages: AdvantageSettings | None = None,
) -> list[RolledTree]:
    roller = TreeRoller(group_envs(sandbox, toys, shape, rules), players, advantages=advantages)
    return list(roller.roll([Task(number, "toy/add") for number in range(n)]).trees)


def group_envs(
    sandbox: Sandbox,
    toys: ProblemSet,
    shape: Shape,
    rules: Ruleset = RULES,
    tester_view: str = "black_box",
    env: type[GroupEnv] = GroupEnv,
) -> GroupEnvs:
    settings = TrainingSettings(sandbox=sandbox, tester_view=tester_view)
    return GroupEnvs(env, {}, problems=toys, rules=rules, shape=shape, settings=settings)


PER_PROBLEM = Shape(n_candidates=4, n_suites=3, suites_per=SuitesPer.PROBLEM)
