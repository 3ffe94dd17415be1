"""CoMLRL: the game for `MAGRPOTrainer`, which trains several models by one joint reward of all of their replies.

::

    game = JointGame(Referee("starter"))
    trainer = MAGRPOTrainer(
        agents=[coder, tester], reward_func=game.reward, formatters=game.formatters, train_dataset=game.dataset(), ...
    )

MAGRPO knows no mask: a masked round has the joint reward 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from codea1_agents.adapters.messages import ROLES, Wording, messages
from codea1_agents.prompts import Message, load_prompts, plain_text
from codea1_env.agent import Role
from codea1_env.errors import extra_needed
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import candidate_of


def total(coder: float, tester: float) -> float:
    """Return the sum of both rewards."""
    return coder + tester


@dataclass(frozen=True)
class JointGame:
    """Everything that `MAGRPOTrainer` asks of a task. Agent 0 is the coder and agent 1 the tester."""

    referee: Referee
    joint: Callable[[float, float], float] = total
    """From the coder's and the tester's reward to the joint one. Where one role gains what the other loses, the sum
    teaches neither, so choose rules or a function that pay for what both are to reach."""
    wording: Wording = "default"
    tokenizer: Any = None
    """Its chat template formats the prompts; None: plain text."""

    @property
    def formatters(self) -> list[Callable[..., str]]:
        """From a row to the prompt of each agent; in the first turn the tester sees no program."""
        return [partial(self._formatted, role) for role in ROLES]

    def dataset(self) -> Any:
        """Return a `datasets.Dataset` with the column `prompt`, the id of a problem, which the formatters read.

        Raises:
            MissingExtra: the package datasets is not installed.
        """
        with extra_needed("a data set for CoMLRL", "comlrl"):
            from datasets import Dataset  # noqa: PLC0415
        return Dataset.from_list([{"prompt": problem.id} for problem in self.referee.problems])

    def reward(
        self, programs: Sequence[str], suites: Sequence[str], *, batch_items: Sequence[Mapping[str, Any]]
    ) -> list[float]:
        """Return the joint reward of each program and suite, (B,); 0 where one of the two is masked.

        Both have replied, so a suite for a program that does not load counts with what the rules pay for it.

        Args:
            programs: (B,) replies of the coder.
            suites: (B,) replies of the tester.
            batch_items: (B,) rows of the data set, or one for all.
        """
        ids = [item["prompt"] for item in batch_items]
        ids = ids * len(programs) if len(ids) == 1 else ids
        scores = self.referee.rewards(ids, programs, suites)
        return [
            0.0 if each.coder is None or each.tester is None else self.joint(each.coder, each.tester) for each in scores
        ]

    def transition(self, *, prompt: str, agent_completions: Sequence[str], **_: Any) -> list[str]:
        """Return the prompts of the next turn: the coder's as before, and a tester's that shows the program.

        Args:
            prompt: the id of the problem.
            agent_completions: the replies of this turn, the coder's first.
        """
        problem = self.referee.problems.by_id(prompt)
        program = candidate_of(agent_completions[0], problem, self.referee.rules).program
        return [self._prompt("coder", prompt), self._prompt("tester", prompt, program)]

    def _formatted(self, role: Role, item: Mapping[str, Any], external_prompts: str | None = None) -> str:
        return external_prompts or self._prompt(role, item["prompt"])

    def _prompt(self, role: Role, problem_id: str, program: str = "") -> str:
        problem, wording = self.referee.problems.by_id(problem_id), load_prompts(self.wording)
        found = messages(role, problem, program=program, rules=self.referee.rules, wording=wording)
        if self.tokenizer is not None:
            return str(self.tokenizer.apply_chat_template(found, tokenize=False, add_generation_prompt=True))
        return plain_text([Message(**each) for each in found])  # type: ignore[arg-type]
