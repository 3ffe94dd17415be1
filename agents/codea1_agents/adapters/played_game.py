"""The two-agent game turn by turn as plain data, for servers whose clients play it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import typer

from codea1_agents.prompts import Prompts, load_prompts
from codea1_env import code_a1_v0
from codea1_env.agent import Role
from codea1_env.errors import SandboxError, UserError
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems import ProblemSource, load_problems
from codea1_env.rules.rewards import MASKED
from codea1_env.rules.ruleset import Ruleset


@contextmanager
def sentences() -> Iterator[None]:
    """Turn a UserError into one sentence on stderr and exit code 2."""
    try:
        yield
    except UserError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error


@dataclass(frozen=True, slots=True)
class GameState:
    """What a client may know after a reset or a reply: JSON without nan."""

    agent: str
    """Whose turn it is, `coder` or `tester`; empty: the game is over."""
    problem_id: str
    observation: Mapping[str, Any]
    """What `code_a1_v0` shows the agent; {} when the game is over."""
    messages: tuple[Mapping[str, str], ...]
    """Chat messages that ask the agent for its reply; () when the game is over."""
    rewards: Mapping[str, float | None] = field(default_factory=lambda: {"coder": None, "tester": None})
    """Both roles' rewards for the round that this reply ended; None where masked, where it goes on, or for a tester
    without a turn."""
    reward_parts: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: {"coder": {}, "tester": {}})
    """By role, the weighted terms, which add up to the reward; {} where there is none."""
    masked: bool = False
    """Whether the round ended without rewards, through no fault of the agents."""
    masked_because: str = ""
    verdict: str = ""
    """On the program, if the round ended."""

    @property
    def done(self) -> bool:
        """Whether the game is over."""
        return not self.agent


class PlayedGame:
    """One game of two agents; not thread-safe. Its Mistake Book is its own."""

    def __init__(
        self,
        problems: ProblemSource = "starter",
        *,
        rules: str | Ruleset = "fixed",
        rounds: int = 1,
        wording: str | Prompts = "default",
        sandbox: str = "local",
    ) -> None:
        """Make a game; it starts nothing before the first reply.

        Args:
            problems: a source that `load_problems` takes.
            rules: a ruleset or the name of one.
            rounds: per game; from the second on, the agents get feedback.
            wording: the prompts' wording.
            sandbox: name of the back end that runs the programs.

        Raises:
            UserError: a setting has an invalid value.
        """
        self._prompts = load_prompts(wording)
        self._env = code_a1_v0.raw_env(load_problems(problems), rules=rules, max_cycles=rounds, sandbox=sandbox)
        self._agent = ""

    def reset(self, seed: int | None = None, problem_id: str | None = None) -> GameState:
        """Begin a game on a problem; None: the next one.

        Raises:
            UserError: the problem does not exist, or the seed is invalid.
        """
        self._env.reset(seed, None if problem_id is None else {"problem_id": problem_id})
        return self._state(None)

    def submit(self, role: Role, reply: str) -> GameState:
        """Take the reply of the agent whose turn it is; waits for the verdicts.

        Raises:
            UserError: it is not this agent's turn, or the reply is not text.
        """
        if self._agent != role:
            turn = f"it is the {self._agent}'s turn" if self._agent else "no game is running: begin one"
            raise UserError(f"the {role} cannot reply: {turn}")
        before = self._env.last_round
        try:
            self._env.step(reply)
        except SandboxError as error:
            self._agent = ""
            return GameState("", self._problem_id, {}, (), masked=True, masked_because=str(error))
        return self._state(before)

    def close(self) -> None:
        """End the game; the sandbox is shared and stays open."""
        self._env.close()

    @property
    def _problem_id(self) -> str:
        return str(self._env.infos[code_a1_v0.CODER]["problem_id"])

    def _state(self, before: JudgedRound | None) -> GameState:
        """Return what follows the last reply; `before` is the round that had been judged before it."""
        env, judged = self._env, self._env.last_round
        acting = env.agent_selection
        over = any(env.terminations.values()) or any(env.truncations.values())
        self._agent = "" if over else acting.partition("_")[0]
        seen = {} if over else env.observe(acting)
        prompt = () if over else self._prompts.messages(seen, env.infos[acting])
        ended = {} if judged is None or judged is before else _ended(judged)
        return GameState(
            agent=self._agent,
            problem_id=self._problem_id,
            observation={name: _plain(value) for name, value in seen.items()},
            messages=tuple(each.to_dict() for each in prompt),
            **ended,
        )


def _ended(judged: JudgedRound) -> dict[str, Any]:
    """Return the fields of a state that a judged round adds."""
    (report,) = judged.report.candidates
    tester = judged.rewards.testers[0] if judged.tester_reply is not None else MASKED
    by_role = {"coder": judged.rewards.coder, "tester": tester}
    masked = judged.rewards.coder.masked
    return {
        "rewards": {role: None if each.masked else each.value for role, each in by_role.items()},
        "reward_parts": {role: each.weighted() for role, each in by_role.items()},
        "masked": masked,
        "masked_because": (report.internal_error or "the rules mask it for lack of evidence") if masked else "",
        "verdict": report.verdict.value,
    }


def _plain(value: Any) -> str | int:
    """Return text without lone surrogates, which JSON over a wire refuses, or a number of Python."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else int(value)
