"""A warm start: examples from problems, a fine-tuning, and the figures on held-out problems before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any

from pydantic import Field

from codea1_agents.evaluation.zero_shot import ZeroShotTask, zero_shot
from codea1_agents.interrupts import stop_requests
from codea1_agents.models.model_facts import USUAL_REPLY, model_facts
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.prompts import load_prompts
from codea1_agents.statistics import Estimate, estimate_document
from codea1_agents.train.declared import Count, CountOrZero, check_values, values_of
from codea1_agents.train.grpo.causal_models import load_peft
from codea1_agents.train.sft.examples import (
    SftExample,
    examples_for_coder,
    examples_for_tester,
    failing_programs,
    sampled_programs,
)
from codea1_agents.train.sft.fine_tuning import RECORD, FineTuned, Progress, SftSettings, fine_tuned
from codea1_env.agent import AgentContext, Role, agent_name, load_agent
from codea1_env.problems import ProblemSet
from codea1_env.records.file_errors import file_errors
from codea1_env.records.whole_files import write_whole, write_whole_folder
from codea1_env.sandbox import Sandbox
from codea1_env.secret import require_no_secrets

SELF = "self"
"""Name of the model itself among the coders."""

MUTANTS = "mutant,strength=0.75"
"""Coder that replies with mutants of the solutions, and with the solutions."""

_HELD_OUT_SHARE = 8  # one problem in so many


@dataclass(frozen=True, slots=True)
class ExampleSettings:
    """The examples of a warm start, and how the model replies where it samples.

    Raises:
        UserError: a number out of range, or no role.
    """

    roles: Annotated[tuple[Role, ...], Field(min_length=1)] = ("coder", "tester")
    prompts: str = "default"
    """Wording, here and when the model plays: a name or a file."""
    coder: str = MUTANTS
    """Agent that writes the programs that the tester sees, or `self`."""
    failing: bool = False
    """Whether the tester sees only programs that fail a golden test."""
    samples: Count = 4
    """Programs per problem."""
    tests: Count = 8
    """Tests per example."""
    shortest: Count | None = None
    """Learn at most this many tests per problem: the shortest, whose answers are easier to predict."""
    max_reply_tokens: Count = USUAL_REPLY
    """Longest reply where the model samples, in tokens; half of the context if that is less."""
    seed: CountOrZero = 0
    """Seeds the programs, the tests, the split of the problems and the measurements."""

    def __post_init__(self) -> None:
        require_no_secrets(self.coder)
        check_values(type(self), values_of(self))


@dataclass(frozen=True, slots=True)
class WarmStart:
    """A model that was written, and its figures."""

    out: Path
    tuned: FineTuned
    n_examples: Mapping[Role, int]
    """One per role."""
    before: Mapping[str, Estimate] = field(default_factory=dict)
    """On held-out problems: `pass@1`, `validity`, `right_kill_rate`, `kill_rate`, as far as measured."""
    after: Mapping[str, Estimate] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without the weights."""
        return {
            "n_examples": dict(self.n_examples),
            **self.tuned.to_dict(),
            "held_out": {
                moment: {name: estimate_document(each) for name, each in figures.items()}
                for moment, figures in (("before", self.before), ("after", self.after))
            },
        }


def held_out_part(problems: ProblemSet, seed: int) -> ProblemSet:
    """Return an eighth of the problems, chosen by the seed; none of fewer than eight."""
    chosen = Random(f"held out/{seed}").sample(list(problems), len(problems) // _HELD_OUT_SHARE)
    return problems.select(each.id for each in chosen)


def examples_of(model: str, problems: ProblemSet, sandbox: Sandbox, settings: ExampleSettings) -> list[SftExample]:
    """Return the examples of problems.

    Args:
        model: directory or hub id of the model that is fine-tuned; it samples only as the coder `self`.
        problems: where the examples come from.
        sandbox: runs the programs, if `settings.failing`.
        settings: which examples to draw.

    Raises:
        UserError: the wording, the model or the agent does not exist, or the agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    prompts, found = load_prompts(settings.prompts), []
    if "coder" in settings.roles:
        found += examples_for_coder(problems, prompts)
    if "tester" in settings.roles and len(problems):
        spec = _spec(model, settings) if settings.coder == SELF else settings.coder
        with closing(_agent(spec, "coder", problems, sandbox, settings.seed)) as coder:
            if settings.failing:
                shown = failing_programs(problems, coder, sandbox, samples=settings.samples)
            else:
                shown = sampled_programs(problems, coder, samples=settings.samples)
        found += examples_for_tester(
            problems, shown, prompts, tests=settings.tests, shortest=settings.shortest, seed=settings.seed
        )
    return found


def warm_start(
    model: str,
    problems: ProblemSet,
    out: Path,
    sandbox: Sandbox,
    examples: ExampleSettings | None = None,
    training: SftSettings | None = None,
    *,
    held_out: ProblemSet | None = None,
    n_measured: int = 0,
    progress: Progress = lambda done, total: None,
    phase: Callable[[str], object] = lambda _: None,
    written: Callable[[], None] = lambda: None,
) -> WarmStart:
    """Fine-tune a model on problems and write it. The folder is written whole or not at all.

    Args:
        model: directory or hub id of a causal language model.
        problems: to train on.
        out: folder of the new model.
        sandbox: runs the programs.
        examples: settings of the examples.
        training: settings of the optimiser.
        held_out: problems to measure on; None: none.
        n_measured: held-out problems, from the first, on which the model plays before and after; 0: it does not.
        progress: called after each step.
        phase: called with the name of each part when it begins.
        written: called when the model is written, before it is measured.

    Ctrl-C and SIGTERM during the training end it after the present step, and the model is written as it is then; a
    second one ends it at once and writes nothing.

    Raises:
        UserError: the model, wording or agent does not exist, an agent failed, no example is left, or the
            folder cannot be written.
        SandboxError: the sandbox cannot be used at all.
    """
    examples, training = examples or ExampleSettings(), training or SftSettings()
    facts = model_facts(model)  # finds a model that is not there, before anything slow
    if training.lora is not None:
        load_peft()
    examples = replace(examples, max_reply_tokens=facts.longest_reply(examples.max_reply_tokens))
    held_out = held_out or ProblemSet("none", ())
    lessons = examples_of(model, problems, sandbox, examples)
    unseen = examples_of(model, held_out, sandbox, examples)
    measured = held_out.select(each.id for each in held_out[:n_measured])
    phase("measuring before")
    before = _measured(model, measured, sandbox, examples)
    settings = {"model": model, "examples": asdict(examples), "training": asdict(training)}
    counts = {role: sum(each.role == role for each in lessons) for role in examples.roles}
    phase("fine-tuning")
    with stop_requests() as is_stopped, file_errors(out):
        tuned = fine_tuned(model, lessons, training, held_out=unseen, progress=progress, is_stopped=is_stopped)
        done = WarmStart(out, tuned, counts, before)
        write_whole_folder(out, lambda draft: tuned.save(draft, settings | done.to_dict()))
    written()
    if not measured or tuned.is_interrupted:
        return done
    phase("measuring after")
    done = replace(done, after=_measured(str(out), measured, sandbox, examples))
    with file_errors(out):
        write_whole(out / RECORD, (json.dumps(settings | done.to_dict(), indent=2) + "\n").encode())
    return done


def _measured(model: str, problems: ProblemSet, sandbox: Sandbox, settings: ExampleSettings) -> dict[str, Estimate]:
    if not problems:
        return {}
    with closing(_agent(_spec(model, settings), "", problems, sandbox, settings.seed)) as player:
        task = ZeroShotTask(samples=settings.samples, tests=settings.tests, seed=settings.seed)
        return zero_shot(problems, dict.fromkeys(settings.roles, player), sandbox, task).figures()


def _spec(model: str, settings: ExampleSettings) -> str:
    return f"transformers,model={model},prompts={settings.prompts},max_tokens={settings.max_reply_tokens},batch_size=64"


def _agent(spec: str, role: Role | str, problems: ProblemSet, sandbox: Sandbox, seed: int) -> NamedAgent:
    agent = load_agent(spec, AgentContext(problems, sandbox, seed), role=role or None)  # type: ignore[arg-type]
    return NamedAgent(agent, f"{role} {agent_name(spec, agent)}".strip(), seed=seed)
