"""verifiers and prime-rl: the game as an environment with two agents, `coder` and `tester`, or with one of them.

::

    vf-eval codea1-game --model my-model --client.base-url http://localhost:8000/v1 --env.taskset.problems humaneval

Each agent's trace has its own reward. A masked reward is none: the trace gets the error `MaskedReward` instead, is not
`ok`, and trainers drop it. Agents run in this process (`SubprocessConfig`, no login). Nothing is uploaded unless the
environment variable `PRIME_RUNS_MODE` says so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any, Literal

from codea1_agents.adapters.messages import messages, rows
from codea1_agents.adapters.scoring import of_turn
from codea1_env.agent import Role
from codea1_env.errors import UserError, extra_needed
from codea1_env.problems.problem import Problem
from codea1_env.rounds.referee import Referee, Scored

with extra_needed("the environment for verifiers", "verifiers"):
    import httpx
    import prime_runs
    import verifiers.v1 as vf
    from verifiers.v1.dialects.chat import message_to_wire

ENVIRONMENT = "codea1-game"
"""Name of the environment package."""

os.environ.setdefault(prime_runs.MODE_ENV, "disabled")  # else vf-eval uploads the replies wherever a login is found


class MaskedReward(vf.RolloutError):  # type: ignore[misc]  # verifiers is not read
    """A reward is unknown; the message says why. It is not evidence about the agent."""


class GameTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]  # verifiers is not read
    """What is played: `--env.taskset.NAME`."""

    problems: str = "starter"
    """A source that `load_problems` takes."""
    roles: Literal["both", "coder", "tester"] = "both"
    """Who plays. A coder alone earns by golden tests, a tester alone gets the known wrong programs of the problems."""
    rules: str = ""
    """A ruleset's name; empty: `golden` for a coder alone, else `fixed`."""
    wording: str = "default"
    """Which wording the prompts use."""
    sandbox: str = "local"
    """Name of the back end that runs the programs."""

    @property
    def rules_played(self) -> str:
        """Name of the rules that hold."""
        return self.rules or ("golden" if self.roles == "coder" else "fixed")


class GameData(vf.TaskData):  # type: ignore[misc]  # verifiers is not read
    """A turn: the prompt, the problem, and for a tester the program that it sees."""

    problem_id: str
    role: Role
    program: str = ""


class GameTask(vf.Task[GameData]):  # type: ignore[misc]  # verifiers is not read
    """A turn of one agent. The environment scores it, since a coder's reward depends on the tester."""


class GameTaskset(vf.Taskset[GameTask, GameTasksetConfig]):  # type: ignore[misc]  # verifiers is not read
    """A task per problem; for a tester alone one per known wrong program."""

    def load(self) -> Iterable[GameTask]:
        """Return the tasks, in the order of the problems.

        Raises:
            UserError: a setting is invalid, or no task is left.
        """
        role: Role = "tester" if self.config.roles == "tester" else "coder"
        found = rows(role, self.config.problems, rules=self.config.rules_played, wording=self.config.wording)
        return [_task(role, row["problem_id"], row["prompt"], row.get("program", "")) for row in found]


class OneReply(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]  # verifiers is not read
    """Requests one completion of a turn's messages, in this process: the game has neither tools nor a shell."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
    ) -> Any:
        """Send the prompt; the environment's interception records the reply, or the error, on the trace."""
        system, prompt = self.resolve_prompt(data)
        own = [] if system is None else [{"role": "system", "content": system}]
        chat = [message_to_wire(each) for each in prompt if system is None or each.role != "system"]
        async with httpx.AsyncClient(timeout=None, trust_env=False) as client:  # the agent's timeouts hold
            answer = await client.post(
                f"{endpoint}/chat/completions",
                json={"model": ctx.model, "messages": own + chat},
                headers={"Authorization": f"Bearer {secret}"},
            )
        return vf.ProgramResult(int(answer.is_error), "", answer.text if answer.is_error else "")


_AGENT = vf.AgentConfig(runtime=vf.SubprocessConfig())


class GameEnvConfig(vf.EnvConfig):  # type: ignore[misc]  # verifiers is not read
    """The agents: `--env.coder.model`, `--env.tester.model` and so on."""

    coder: vf.AgentConfig = _AGENT
    tester: vf.AgentConfig = _AGENT


class GameEnv(vf.Env[GameEnvConfig]):  # type: ignore[misc]  # verifiers is not read
    """An episode is one problem: a program, and if it loads, a suite for it."""

    def __init__(self, config: GameEnvConfig) -> None:
        super().__init__(config)
        played = self.taskset.config
        self.referee = Referee(played.problems, played.rules_played, sandbox=played.sandbox)

    async def run(self, task: Any, agents: Any) -> None:
        """Let the agents play; a tester is skipped if the program does not load."""
        given = task.data
        trace = await getattr(agents, given.role).run(task)
        if self.taskset.config.roles != "both" or not trace.ok:
            return
        problem = self.referee.problems.by_id(given.problem_id)
        program = await asyncio.to_thread(self.referee.loaded_program, problem, trace.last_reply)
        if program is not None:
            await agents.tester.run(self._tester_task(problem, program))

    async def finalize(self, task: Any, episode: Any) -> None:
        """Record each agent's reward, and its parts as metrics; a masked one is an error of its trace."""
        traces = {trace.agent.name: trace for trace in episode.traces if trace.ok}
        if not traces:
            return
        program = traces["coder"].last_reply if "coder" in traces else task.data.program
        suite = traces["tester"].last_reply if "tester" in traces else None
        (found,) = await self.referee.arewards([task.data.problem_id], [program], [suite])
        for role, trace in traces.items():
            _record(trace, role, of_turn(found))

    def _tester_task(self, problem: Problem, program: str) -> GameTask:
        wording, rules = self.taskset.config.wording, self.referee.rules
        prompt = messages("tester", problem, program=program, rules=rules, wording=wording)
        return _task("tester", problem.id, prompt, program)


def load_environment(**settings: Any) -> GameEnv:
    """Return the environment.

    Args:
        settings: fields of `GameTasksetConfig` (`problems`, `roles`, `rules`, `wording`, `sandbox`), or of
            `GameEnvConfig`, as `coder={"model": "my-model"}`.

    Raises:
        UserError: a setting is unknown or has an invalid value.
    """
    taskset = {name: settings.pop(name) for name in list(settings) if name in GameTasksetConfig.model_fields}
    try:
        config = GameEnvConfig.model_validate({**settings, "taskset": {**taskset, "id": ENVIRONMENT}})
    except ValueError as error:
        raise UserError(f"{ENVIRONMENT}: {error}") from error
    return GameEnv(config)


def _task(role: Role, problem_id: str, prompt: list[dict[str, str]], program: str) -> GameTask:
    return GameTask(GameData(id=problem_id, prompt=prompt, problem_id=problem_id, role=role, program=program))


def _record(trace: Any, role: Role, found: Scored) -> None:
    reward = found.reward(role)
    if reward is None:
        trace.record_error(MaskedReward(found.masked_because))
        return
    trace.record_reward(role, reward)
    trace.record_metrics(found.parts[role])
