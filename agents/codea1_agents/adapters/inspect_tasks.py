"""Inspect AI: the tasks `codea1_coder`, `codea1_tester` and `codea1_duel`, with scorers that return rewards and parts.

::

    inspect eval codea1/codea1_coder --model openai/gpt-5 -T problems=humaneval -T epochs=5
    inspect eval codea1/codea1_duel --model-role coder=openai/gpt-5 --model-role tester=openai/gpt-5-mini

A masked reward is not a score (`Score.unscored`), so Inspect leaves it out of all means and of pass@k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path
from typing import Any, TypeVar

from codea1_agents.adapters.messages import Wording, messages, rows
from codea1_agents.adapters.scoring import of_turn, require_suites, required
from codea1_agents.evaluation.coder import USUAL_K
from codea1_env.agent import Role
from codea1_env.bank import load_bank_file
from codea1_env.errors import AgentUnavailable, extra_needed
from codea1_env.problems import ProblemSet
from codea1_env.rounds.referee import Referee, Reply, Scored
from codea1_env.rules.ruleset import preset

with extra_needed("a task for Inspect", "inspect"):
    from anyio import to_thread
    from inspect_ai import Epochs, Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatMessage,
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        ModelOutput,
        get_model,
    )
    from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver

_CHAT = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
_PROGRAM, _SUITE = "codea1:program", "codea1:suite"
_F = TypeVar("_F", bound=Callable[..., Any])


def _registered(decorator: Callable[..., Any], **options: Any) -> Callable[[_F], _F]:
    """Register a function with a decorator of Inspect as `codea1/NAME`, however this project is installed.

    Inspect prefixes a name by the package that holds the function, and finds none if an editable install's distribution
    has another name than its package. Without a module it adds nothing to the given name.
    """

    def register(function: _F) -> _F:
        function.__module__ = "codea1"
        registered: _F = decorator(name=f"codea1/{function.__name__}", **options)(function)
        return registered

    return register


@_registered(task)
def codea1_coder(
    problems: str | ProblemSet = "starter",
    rules: str = "golden",
    against: str | None = None,
    epochs: int = 1,
    wording: str = "default",
    sandbox: str = "local",
) -> Task:
    """Ask the model for a program for each problem; the score is the coder's reward.

    Args:
        problems: a source that `load_problems` takes.
        rules: the name of a ruleset; `golden` pays the share of golden tests that pass, so pass@k is the usual figure.
        against: a bank file, for rules that pay for tests: a sample per problem and suite; None: no suite.
        epochs: programs per sample; pass@k is reported for each usual k up to it, and the mean.
        wording: the prompts' wording.
        sandbox: name of the back end that runs the programs.

    Raises:
        UserError: an argument has an invalid value.
    """
    if against is None:
        require_suites(preset(rules))
    reducers = ["mean", *(f"pass_at_{k}" for k in USUAL_K if 1 < epochs >= k)]
    return Task(
        dataset=_dataset("coder", problems, rules, against, wording),
        scorer=codea1_reward("coder", problems, rules, sandbox),
        epochs=Epochs(epochs, reducers),
    )


@_registered(task)
def codea1_tester(
    problems: str | ProblemSet = "starter",
    rules: str = "fixed",
    against: str | None = None,
    wording: str = "default",
    sandbox: str = "local",
) -> Task:
    """Ask the model for a suite for each known wrong program; the score is the tester's reward.

    Args:
        problems: a source that `load_problems` takes.
        rules: the name of a ruleset.
        against: a bank file, whose programs take the place of the problems' known wrong programs.
        wording: the prompts' wording.
        sandbox: name of the back end that runs the programs.

    Raises:
        UserError: an argument has an invalid value, or no problem has a program.
    """
    return Task(
        dataset=_dataset("tester", problems, rules, against, wording),
        scorer=codea1_reward("tester", problems, rules, sandbox),
    )


@_registered(task)
def codea1_duel(
    problems: str | ProblemSet = "starter",
    rules: str = "fixed",
    wording: str = "default",
    sandbox: str = "local",
) -> Task:
    """Let the model of the role `coder` write a program, and that of the role `tester` tests which it should fail.

    A role without a model of its own takes the evaluated model. The score has the rewards of both.

    Args:
        problems: a source that `load_problems` takes.
        rules: the name of a ruleset.
        wording: the prompts' wording.
        sandbox: name of the back end that runs the programs.

    Raises:
        UserError: an argument has an invalid value.
    """
    return Task(
        dataset=_dataset("coder", problems, rules, None, wording),
        solver=codea1_players(problems, rules, wording, sandbox),
        scorer=codea1_rewards(problems, rules, sandbox),
    )


@_registered(solver)
def codea1_players(problems: str | ProblemSet, rules: str, wording: str = "default", sandbox: str = "local") -> Solver:
    """Ask the coder for a program and, if it loads, the tester for a suite."""
    referee = Referee(problems, rules, sandbox=sandbox)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        problem = referee.problems.by_id(_problem_id(state))
        written = await get_model(role="coder").generate(state.messages)
        state.output = written
        state.messages.append(written.message)
        state.store.set(_PROGRAM, _written(written))
        program = None
        if not isinstance(_reply(state.store.get(_PROGRAM)), AgentUnavailable):
            program = await to_thread.run_sync(referee.loaded_program, problem, written.completion)
        if program is not None:
            prompt = _messages(messages("tester", problem, program=program, rules=referee.rules, wording=wording))
            state.output = await get_model(role="tester").generate(prompt)
            state.messages += [*prompt, state.output.message]
            state.store.set(_SUITE, _written(state.output))
        return state

    return solve


@_registered(metric, scores="unreduced")
def parts() -> Metric:
    """Return the mean of each part of the reward over all replies with a score; they add up to the mean reward."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        totals: Counter[str] = Counter()
        for each in scores:
            totals.update((each.score.metadata or {})["terms"])
        return {name: total / len(scores) for name, total in sorted(totals.items())}

    return compute


@_registered(scorer, metrics=[mean(), stderr(), parts()])
def codea1_reward(role: Role, problems: str | ProblemSet, rules: str, sandbox: str = "local") -> Scorer:
    """Return the reward of one role's reply, with its parts as metadata and in the explanation; no score if masked."""
    referee = Referee(problems, rules, sandbox=sandbox)

    async def score(state: TaskState, target: Target) -> Score:
        found = await to_thread.run_sync(_scored, referee, _problem_id(state), *_replies(state))
        reward = found.reward(role)
        record = {**found.record(), "terms": dict(found.parts.get(role, {}))}
        if reward is None:
            return Score.unscored(reason="scoring_failed", explanation=found.masked_because, metadata=record)
        return Score(value=reward, explanation=_explanation(role, found), metadata=record)

    return score


@_registered(scorer, metrics={"coder": [mean(), stderr()], "tester": [mean(), stderr()]})
def codea1_rewards(problems: str | ProblemSet, rules: str, sandbox: str = "local") -> Scorer:
    """Return the rewards of both roles, with their parts, for any of the tasks; a masked reward is not a score."""
    referee = Referee(problems, rules, sandbox=sandbox)

    async def score(state: TaskState, target: Target) -> Score:
        found = await to_thread.run_sync(_scored, referee, _problem_id(state), *_replies(state))
        rewards = {"coder": found.coder, "tester": found.tester}
        return Score(
            value={role: nan if reward is None else reward for role, reward in rewards.items()},
            explanation=found.masked_because or f"{_explanation('coder', found)}\n{_explanation('tester', found)}",
            metadata=found.record(),
        )

    return score


def _dataset(role: Role, problems: str | ProblemSet, rules: str, against: str | None, wording: Wording) -> Any:
    bank = None if against is None else load_bank_file(Path(against))
    found = rows(role, problems, against=bank, rules=rules, wording=wording)
    numbers: Counter[str] = Counter()
    samples = []
    for row in found:
        prompt, problem_id = row.pop("prompt"), row["problem_id"]
        numbers[problem_id] += 1
        samples.append(Sample(input=_messages(prompt), id=f"{problem_id}#{numbers[problem_id]}", metadata=row))
    return MemoryDataset(samples, name=problems if isinstance(problems, str) else problems.name)


def _messages(chat: Sequence[dict[str, str]]) -> list[ChatMessage]:
    return [_CHAT[each["role"]](content=each["content"]) for each in chat]


def _problem_id(state: TaskState) -> str:
    return str(required("problem_id", state.metadata, "the metadata of the sample"))


def _replies(state: TaskState) -> tuple[Reply, Reply | None]:
    """Return the program and the suite of a sample: a duel's were both written, otherwise one of them was given."""
    program, suite = state.store.get(_PROGRAM), state.store.get(_SUITE)
    if program is not None:
        return _reply(program), None if suite is None else _reply(suite)
    written, given = _reply(_written(state.output)), state.metadata
    return (given["program"], written) if "program" in given else (written, given.get("suite") or None)


def _written(output: ModelOutput) -> list[str]:
    """Return a model's text and why it stopped, as the store of a sample keeps it."""
    return [output.completion, output.stop_reason]


def _reply(written: list[str]) -> Reply:
    text, stop_reason = written
    return AgentUnavailable("a content filter stopped the reply") if stop_reason == "content_filter" else text


def _scored(referee: Referee, problem_id: str, program: Reply, suite: Reply | None) -> Scored:
    return of_turn(referee.rewards([problem_id], [program], [suite])[0])


def _explanation(role: Role, found: Scored) -> str:
    """Return one line: the reward's terms and the verdict on the program."""
    terms = " + ".join(f"{name} {value:.3g}" for name, value in found.parts.get(role, {}).items()) or "no terms"
    verdict = found.report.verdict.value if found.report is not None else "unknown"
    return f"{role}: {terms}; the program: {verdict}"
