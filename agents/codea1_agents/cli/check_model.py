"""`codea1 check model`: what a model is, whether it fits here, and how well it plays before training."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Annotated

from rich.text import Text
from typer import Argument, Option

from codea1_agents.checks.model_advice import advice
from codea1_agents.checks.model_check import ModelReport, ModelTask, RoleReport, check_model
from codea1_agents.cli.console import Page, estimate_cells, new_table, pluralize, problems_document, tally
from codea1_agents.cli.options import (
    Options,
    Problems,
    Prompts,
    SandboxName,
    from_options,
    n_tests,
    only_first,
    seed_of,
)
from codea1_agents.cli.progress import Progress
from codea1_agents.models.gguf_files import GgufSource
from codea1_agents.statistics import estimate_document
from codea1_agents.train.sizing.fitting import Proposal
from codea1_agents.train.sizing.run_size import RunSize
from codea1_env.problems import load_problems
from codea1_env.rendering import harmless
from codea1_env.sandbox import load_sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckModelOptions(Options):
    """Check a language model before training: what it is, what it replies, how good it is, what to do next.

    It trains nothing. The model writes one program and one suite for each of a few problems.

    \b
    Example:
      codea1 check model Qwen/Qwen2.5-Coder-0.5B-Instruct
      codea1 check model models/mine -p my.jsonl --max-tokens 512
    """

    model: Annotated[str, Argument(help="Folder, GGUF file or hub id of a causal language model.")]
    problems: Problems = "starter"
    limit: Annotated[int, only_first()] = 8
    prompts: Prompts = "default"
    max_tokens: Annotated[
        int | None,
        Option(min=1, help="Longest reply, in tokens.", show_default="1024, or half of a shorter context"),
    ] = None
    tests: Annotated[int, n_tests()] = 8
    seed: Annotated[int, seed_of("the replies, mutants and intervals")] = 0
    sandbox: SandboxName = "local"


_MEASURED = 1000
"""Most problems whose prompts are measured."""
_NAMES = {
    "pass@1": "coder: pass@1",
    "validity": "tester: validity",
    "right_kill_rate": "tester: suites that beat a mutant",
    "kill_rate": "tester: suites that beat it, wrong answers too",
}


def run_check_model(options: CheckModelOptions) -> None:
    """Check a model, and print what follows.

    Raises:
        UserError: the model, wording, problem source or sandbox does not exist, or the chat template fails.
        SandboxError: the sandbox cannot be used at all.
    """
    page = Page(as_json=options.as_json)
    problems = load_problems(options.problems, limit=options.limit)
    with page.apart(), closing(load_sandbox(options.sandbox)) as sandbox:
        with Progress("loading the model", None, page) as progress:
            task = from_options(ModelTask, options)
            measured = load_problems(options.problems, limit=max(_MEASURED, options.limit))
            report = check_model(options.model, problems, sandbox, task, to_train_on=measured, phase=progress.begin)
        steps = advice(report, options.problems)
        _show(page, report, len(problems))
        for sentence in steps:
            page.say(sentence)
        page.finish(
            model=report.model,
            problems=problems_document(options.problems, problems),
            seed=options.seed,
            facts=asdict(report.facts),
            memory_bytes=None if report.proposal.size is None else _bytes_by_kind(report.proposal.size),
            max_tokens=report.max_tokens,
            roles=[asdict(role) for role in report.roles],
            figures={name: estimate_document(each) for name, each in report.figures.items()},
            advice=list(steps),
        )


def _show(page: Page, report: ModelReport, n_problems: int) -> None:
    page.show(new_table(("model", report.model), _facts(report), whole=(0,)))
    for role in report.roles:
        _show_role(page, role)
    rows = [(_NAMES[name], *estimate_cells(each)[:2]) for name, each in report.figures.items()]
    page.show(new_table((pluralize(n_problems, "problem"), "mean", "95 % interval"), rows, right=(1,)))


def _facts(report: ModelReport) -> list[tuple[str, str]]:
    facts = report.facts
    template = "the tokenizer's chat template" if facts.has_template else "plain text, as there is no chat template"
    generation = ", ".join(facts.generation_ends) or "none"
    turns = f"turns of the template {facts.turn_end or 'none'}"
    return [
        *_source(facts.source),
        ("architecture", f"{facts.architecture}, {facts.n_parameters:,} parameters, stored as {facts.dtype}"),
        ("context", f"{facts.context or 'unknown'} tokens; replies here at most {report.max_tokens}"),
        ("prompts", template),
        ("end tokens", f"tokenizer {facts.tokenizer_end or 'none'}; generation {generation}; {turns}"),
        *_memory(report.proposal),
    ]


def _source(source: GgufSource | None) -> list[tuple[str, str]]:
    if source is None:
        return []
    return [("converted from", f"{source.file} ({source.quantisation}), SHA-256 {source.sha256}")]


def _memory(proposal: Proposal) -> list[tuple[str, str]]:
    if proposal.size is None:
        return [("memory", "unknown for this architecture, or these GPUs")]
    needs = [f"{kind} {n_bytes / 1e9:.1f} GB" for kind, n_bytes in _bytes_by_kind(proposal.size).items()]
    return [("to train", f"{', '.join(needs)}, by arithmetic, with the settings below")]


def _bytes_by_kind(size: RunSize) -> dict[str, int]:
    """Return the memory of each kind of process: on its GPU if it has one, else on the host."""
    return {process.kind: process.device_bytes or process.host_bytes("later") for process in size.placement.processes}


def _show_role(page: Page, role: RoleReport) -> None:
    page.show(Text(f"{role.role}, {role.problem_id or 'no reply'}", style="bold"))
    for line in role.reply.splitlines():
        page.say(f"  | {line}")
    for reading in role.readings:
        page.say(f"  {harmless(reading)}")
    counts = [("replies", role.n_replies), ("cut", role.seen.n_cut), ("without a reply", role.n_unavailable)]
    counted = ", ".join(f"{n} {name}" for name, n in counts if n or name == "replies")
    page.say(f"  in all: {counted}{'; ' + tally(role.faults.items()) if role.faults else ''}")
