"""Checks whether a language model can play: what it is, what it replies, its figures, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import isnan

from codea1_agents.checks.model_memory import ModelMemory, memory_of
from codea1_agents.measure.mutant_trials import MutantTrial
from codea1_agents.measure.records import CoderSample
from codea1_agents.measure.zero_shot import ZeroShot, ZeroShotTask, zero_shot
from codea1_agents.models.completions import Usage
from codea1_agents.models.model_facts import ModelFacts, model_facts
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.statistics import Estimate
from codea1_env.agent import AgentContext, Role, load_agent
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import candidate_of
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox

_MANY_CUT = 0.25
_MANY_UNREADABLE = 0.5
_TOO_EASY = 0.95


@dataclass(frozen=True, slots=True)
class ModelTask:
    """How a model is checked."""

    prompts: str = "default"
    """Wording: a name or a file."""
    max_tokens: int | None = None
    """Longest reply; None: 1024, or half of a shorter context."""
    tests: int = 8
    """Tests requested per suite."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class RoleReport:
    """What a model did in one role."""

    role: Role
    n_replies: int
    n_cut: int
    """Replies that the token limit ended."""
    n_unavailable: int
    """Turns without a reply: the prompt and the longest reply exceed the context."""
    n_unreadable: int
    """Replies without a program, or without a test that counts."""
    faults: Mapping[str, int]
    """By verdict of a program, or reason of a rejected test, how often."""
    problem_id: str = ""
    """Problem of the shown reply; empty if there is none."""
    reply: str = ""
    readings: tuple[str, ...] = ()
    """How the shown reply was read, part by part."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What was found out about a model."""

    model: str
    task: ModelTask
    facts: ModelFacts
    max_tokens: int
    memory: ModelMemory
    roles: tuple[RoleReport, ...]
    figures: Mapping[str, Estimate]
    """`pass@1`, `validity`, `kill_rate`, as far as measured."""


def check_model(model: str, problems: ProblemSet, sandbox: Sandbox, task: ModelTask | None = None) -> ModelReport:
    """Let a model play each problem once as a coder and once as a tester.

    Args:
        model: a folder, or an id on the HuggingFace hub.
        problems: a few.
        sandbox: runs the programs.
        task: how.

    Raises:
        MissingExtra: torch or transformers is not installed.
        UserError: no such model or wording, or a chat template that fails.
        SandboxError: the sandbox cannot be used at all.
    """
    task, facts = task or ModelTask(), model_facts(model)
    max_tokens = task.max_tokens or facts.reply_tokens
    spec = f"transformers,model={model},prompts={task.prompts},max_tokens={max_tokens}"
    inner = load_agent(spec, AgentContext(problems, sandbox, task.seed))
    with closing(NamedAgent(inner, f"transformers({model})", seed=task.seed)) as agent:
        wanted = ZeroShotTask(tests=task.tests, seed=task.seed)
        coder = zero_shot(problems, {"coder": agent}, sandbox, wanted)
        after_coder: Usage = agent.inner.usage
        tester = zero_shot(problems, {"tester": agent}, sandbox, wanted)
        after_both: Usage = agent.inner.usage
    roles = (
        _coder_report(problems, coder, after_coder.cut),
        _tester_report(tester, after_both.cut - after_coder.cut),
    )
    memory = memory_of(facts, facts.context or max_tokens)
    return ModelReport(model, task, facts, max_tokens, memory, roles, coder.figures() | tester.figures())


def _coder_report(problems: ProblemSet, found: ZeroShot, n_cut: int) -> RoleReport:
    read = [sample for sample in found.samples if sample.reply is not None]
    unreadable = [sample for sample in read if not _program(problems, sample)]
    shown = read[0] if read else None
    return RoleReport(
        role="coder",
        n_replies=len(read),
        n_cut=n_cut,
        n_unavailable=len(found.samples) - len(read),
        n_unreadable=len(unreadable),
        faults=dict(Counter(each.verdict for each in read if each.verdict != "passed").most_common()),
        problem_id=shown.problem_id if shown else "",
        reply=shown.reply or "" if shown else "",
        readings=tuple(_coder_readings(problems, shown)) if shown else (),
    )


def _program(problems: ProblemSet, sample: CoderSample) -> str:
    return candidate_of(sample.reply or "", problems.by_id(sample.problem_id), preset("fixed")).program


def _coder_readings(problems: ProblemSet, sample: CoderSample) -> Iterator[str]:
    program = _program(problems, sample)
    yield f"a program of {len(program.splitlines())} lines" if program else "no program"
    yield f"golden tests: {sample.verdict.replace('_', ' ')}. {sample.detail}".strip()


def _tester_report(found: ZeroShot, n_cut: int) -> RoleReport:
    read = [trial for trial in found.trials if trial.reply]
    shown = next((trial for trial in read if trial.report is not None), None)
    reasons = Counter(reason for trial in read for reason in _rejections(trial))
    return RoleReport(
        role="tester",
        n_replies=len(read),
        n_cut=n_cut,
        n_unavailable=len(found.trials) - len(read),
        n_unreadable=sum(trial.report is not None and not trial.report.suites[0].cases for trial in read),
        faults=dict(reasons.most_common()),
        problem_id=shown.problem_id if shown else "",
        reply=shown.reply if shown else "",
        readings=tuple(_tester_readings(shown)) if shown else (),
    )


def _rejections(trial: MutantTrial) -> Iterator[str]:
    for suite in trial.report.suites if trial.report is not None else ():
        yield from (each.reason.value for each in suite.suite.rejections)


def _tester_readings(trial: MutantTrial) -> Iterator[str]:
    for suite in trial.report.suites if trial.report is not None else ():
        for each in suite.cases:
            yield f"{each.case.case.to_assert()}: counts; the mutant: {each.verdict.value.replace('_', ' ')}"
        for rejection in suite.suite.rejections:
            reason = rejection.reason.value.replace("_", " ")
            yield f"{' '.join(rejection.source.split())}: rejected, {reason}. {rejection.detail}".strip()


def advice(report: ModelReport, problems: str) -> tuple[str, ...]:
    """Return what follows from a report, most urgent first; the last sentence is the next step.

    Args:
        report: of `check_model`.
        problems: source of the user's problems, for the commands.
    """
    return (*_obstacles(report), _next_step(report, problems))


def _obstacles(report: ModelReport) -> Iterator[str]:
    facts = report.facts
    if not (facts.tokenizer_end or facts.generation_ends):
        yield "It has no end token, so no reply ends by itself: name one in its tokenizer_config.json."
    for role in report.roles:
        if role.n_unavailable:
            yield (
                f"{role.n_unavailable} prompts of the {role.role} and --max-tokens {report.max_tokens} exceed the"
                f" context of {facts.context} tokens: lower --max-tokens, or shorten the prompts (--prompts simple)."
            )
        if role.n_replies and role.n_cut >= _MANY_CUT * role.n_replies:
            yield (
                f"{role.n_cut} of {role.n_replies} replies of the {role.role} were cut at {report.max_tokens} tokens:"
                " raise --max-tokens, and agents.*.max_tokens in training."
            )
    if not facts.has_template:
        yield "It has no chat template, so its prompts are plain text; an instruction-tuned model follows them better."


def _next_step(report: ModelReport, problems: str) -> str:
    warm = f"codea1 sft {report.model} -p {problems} -o models/warm"
    unreadable = _unreadable(report.roles)
    if unreadable:
        return (
            f"Warm-start it first ({warm}), or give it simpler prompts (--prompts simple): {' and '.join(unreadable)}."
        )
    passed = report.figures["pass@1"].mean if "pass@1" in report.figures else float("nan")
    if passed == 0:
        return (
            f"Warm-start it first ({warm}), or take easier problems: no program is right, so no group has a best one."
        )
    if passed > _TOO_EASY:
        return "Take harder problems: nearly all programs are right, so the groups of the coder have equal rewards."
    known = "" if isnan(passed) else f" {passed:.0%} of its programs are right, so groups have unequal rewards."
    command = f"codea1 train code-a1 --coder {report.model} --tester {report.model} --problems {problems}"
    return f"Train it: {command}.{known}"


def _unreadable(roles: Sequence[RoleReport]) -> list[str]:
    what = {"coder": "no program", "tester": "no test that counts"}
    return [
        f"{each.n_unreadable} of {each.n_replies} replies of the {each.role} have {what[each.role]}"
        for each in roles
        if each.n_replies and each.n_unreadable >= _MANY_UNREADABLE * each.n_replies
    ]
