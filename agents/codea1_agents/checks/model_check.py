"""Checks whether a language model can play: what it is, what it replies, and its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_agents.evaluation.mutant_trials import MutantTrial
from codea1_agents.evaluation.records import CoderSample
from codea1_agents.evaluation.zero_shot import ZeroShot, ZeroShotTask, zero_shot
from codea1_agents.models.chat_format import ChatFormat, load_chat_format
from codea1_agents.models.completions import Completion, CompletionAgent, EndedCompletion
from codea1_agents.models.model_facts import ModelFacts, model_facts
from codea1_agents.models.model_files import require_model
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.prompts import load_prompts
from codea1_agents.statistics import Estimate
from codea1_agents.train.settings.run_parts import ROLES
from codea1_agents.train.sizing.devices import devices_here
from codea1_agents.train.sizing.fitting import Proposal, SeenLengths, propose
from codea1_env.agent import AgentContext, Info, Observation, Role, load_agent
from codea1_env.observations import observation_of, turn_info
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import candidate_of
from codea1_env.rules.rewards import right_cases
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class ModelTask(ZeroShotTask):
    """How a model is checked."""

    prompts: str = "default"
    """Wording: a name or a file."""
    max_tokens: int | None = None
    """Longest reply; None: 1024, or half of a shorter context."""


@dataclass(frozen=True, slots=True)
class RoleReport:
    """What a model did in one role."""

    role: Role
    n_replies: int
    seen: SeenLengths
    n_unavailable: int
    """Turns without a reply: the prompt and the longest reply exceed the context."""
    n_unreadable: int
    """Replies without a program, or without a right test."""
    faults: Mapping[str, int]
    """By verdict of a program, or reason of a rejected test, how often."""
    problem_id: str = ""
    """Problem of the shown reply; empty if there is none."""
    reply: str = ""
    readings: tuple[str, ...] = ()
    """How the shown reply was read, part by part."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What the check found out about a model."""

    model: str
    task: ModelTask
    facts: ModelFacts
    max_tokens: int
    proposal: Proposal
    roles: tuple[RoleReport, ...]
    figures: Mapping[str, Estimate]
    """`pass@1`, `validity`, `right_kill_rate`, `kill_rate`, as far as measured."""


def check_model(
    model: str,
    problems: ProblemSet,
    sandbox: Sandbox,
    task: ModelTask | None = None,
    *,
    to_train_on: ProblemSet | None = None,
    phase: Callable[[str], object] = lambda _: None,
) -> ModelReport:
    """Let a model play each problem once as a coder and once as a tester.

    Args:
        model: a folder, a GGUF file or an id on the HuggingFace hub.
        problems: a few.
        sandbox: runs the programs.
        task: how.
        to_train_on: problems whose prompts are measured; None: these few.
        phase: called with the name of each part when it begins.

    Raises:
        MissingExtra: torch or transformers is not installed.
        UserError: the model or the wording does not exist, or the chat template fails.
        SandboxError: the sandbox cannot be used at all.
    """
    require_model("transformers", model, is_trained=True)
    task, facts = task or ModelTask(), model_facts(model)
    max_tokens = task.max_tokens or facts.longest_reply()
    spec = f"transformers,model={model},prompts={task.prompts},max_tokens={max_tokens}"
    inner: Any = load_agent(spec, AgentContext(problems, sandbox, task.seed))
    watched = {role: _Watched(inner) for role in ROLES}
    players = {role: NamedAgent(each, f"transformers({model})", seed=task.seed) for role, each in watched.items()}
    phase(f"writing and judging {len(problems)} programs")
    coder = zero_shot(problems, {"coder": players["coder"]}, sandbox, task)
    phase(f"writing and judging {len(problems)} suites")
    tester = zero_shot(problems, {"tester": players["tester"]}, sandbox, task)
    chat = load_chat_format(model)
    seen = {role: _seen(chat, to_train_on or problems, role, task, each.completions) for role, each in watched.items()}
    proposal = propose(model, facts, seen, devices_here(), limit=max_tokens, prompts=task.prompts)
    roles = (_coder_report(problems, coder, seen["coder"]), _tester_report(tester, seen["tester"]))
    return ModelReport(model, task, facts, max_tokens, proposal, roles, coder.figures() | tester.figures())


class _Watched(CompletionAgent):
    """Lets an agent reply, and keeps its completions."""

    def __init__(self, inner: CompletionAgent) -> None:
        self._inner = inner
        self.completions: list[Completion] = []

    def reset(self, seed: int) -> None:
        self._inner.reset(seed)

    def complete_stream(self, observations: Sequence[Observation], infos: Sequence[Info]) -> Iterator[EndedCompletion]:
        for ended in self._inner.complete_stream(observations, infos):
            if isinstance(ended.result, Completion):
                self.completions.append(ended.result)
            yield ended


def _seen(
    chat: ChatFormat, problems: ProblemSet, role: Role, task: ModelTask, replies: list[Completion]
) -> SeenLengths:
    """Return the lengths of the replies, and of the prompts to all problems; a tester's have the solution in them."""
    wording, lengths = load_prompts(task.prompts), []
    for problem in problems:
        program = problem.solution if role == "tester" else ""
        info = turn_info(
            problem,
            episode_id="",
            role=role,
            round_=0,
            tests_per_suite=task.tests,
            program=program,
            tester_view="white_box",
        )
        lengths.append(len(chat.prompt_ids(wording.messages(observation_of(problem, 0, program), info))))
    ended = tuple(each.completion_tokens for each in replies if not each.cut)
    return SeenLengths(tuple(lengths), ended, len(replies) - len(ended))


def _coder_report(problems: ProblemSet, found: ZeroShot, seen: SeenLengths) -> RoleReport:
    read = [sample for sample in found.samples if sample.reply is not None]
    unreadable = [sample for sample in read if not _program(problems, sample)]
    shown = read[0] if read else None
    return RoleReport(
        role="coder",
        n_replies=len(read),
        seen=seen,
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
    yield _sentence(f"golden tests: {_words(sample.verdict)}", sample.detail)


def _tester_report(found: ZeroShot, seen: SeenLengths) -> RoleReport:
    read = [trial for trial in found.trials if trial.reply is not None]
    judged = [trial for trial in read if trial.suites]
    shown = judged[0] if judged else None
    rejections = [each for trial in judged for suite in trial.suites for each in suite.suite.rejections]
    return RoleReport(
        role="tester",
        n_replies=len(read),
        seen=seen,
        n_unavailable=len(found.trials) - len(read),
        n_unreadable=sum(not any(right_cases(suite.cases) for suite in trial.suites) for trial in judged),
        faults=dict(Counter(each.reason.value for each in rejections).most_common()),
        problem_id=shown.problem_id if shown else "",
        reply=shown.reply or "" if shown else "",
        readings=tuple(_tester_readings(shown)) if shown else (),
    )


def _tester_readings(trial: MutantTrial) -> Iterator[str]:
    for suite in trial.suites:
        for case in right_cases(suite.cases):
            yield _sentence(f"{case.case.case.to_assert()}: right", f"the mutant: {_words(case.verdict.value)}")
        for rejection in suite.suite.rejections:
            source = " ".join(rejection.source.split())
            yield _sentence(f"{source}: {_words(rejection.reason.value)}", rejection.detail)


def _sentence(finding: str, detail: str) -> str:
    return f"{finding}; {detail}".removesuffix("; ")


def _words(value: str) -> str:
    return value.replace("_", " ")
