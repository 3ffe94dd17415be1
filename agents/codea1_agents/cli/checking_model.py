"""Runs `codea1 check model`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict

from rich.text import Text

from codea1_agents.checks.model_advice import advice
from codea1_agents.checks.model_check import ModelReport, ModelTask, RoleReport, check_model
from codea1_agents.cli.check import CheckModelOptions
from codea1_agents.cli.console import Page, counted, estimate_cells, new_table, tally
from codea1_agents.cli.documents import problems_document
from codea1_agents.cli.evaluating import from_options
from codea1_agents.statistics import estimate_document
from codea1_agents.train.sizing.model_memory import ModelMemory
from codea1_env.problems import load_problems
from codea1_env.rendering import harmless
from codea1_env.sandbox import load_sandbox

_NAMES = {"pass@1": "coder: pass@1", "validity": "tester: validity", "kill_rate": "tester: kill rate of mutants"}


def run_check_model(options: CheckModelOptions) -> None:
    """Check a model, and print what follows.

    Raises:
        UserError: there is no such model, wording, problem source or sandbox, or the model's chat template fails.
        SandboxError: the sandbox cannot be used at all.
    """
    page = Page(as_json=options.as_json)
    problems = load_problems(options.problems, limit=options.limit)
    with page.apart(), closing(load_sandbox(options.sandbox)) as sandbox:
        report = check_model(options.model, problems, sandbox, from_options(ModelTask, options))
        steps = advice(report, options.problems)
        _show(page, report, len(problems))
        for sentence in steps:
            page.say(sentence)
        page.finish(
            model=report.model,
            problems=problems_document(options.problems, problems),
            seed=options.seed,
            facts=asdict(report.facts),
            memory_bytes=None if report.memory is None else asdict(report.memory),
            max_tokens=report.max_tokens,
            roles=[asdict(each) for each in report.roles],
            figures={name: estimate_document(each) for name, each in report.figures.items()},
            advice=list(steps),
        )


def _show(page: Page, report: ModelReport, n_problems: int) -> None:
    page.show(new_table(("model", report.model), _facts(report), whole=(0,)))
    for role in report.roles:
        _show_role(page, role)
    rows = [(_NAMES[name], *estimate_cells(each)[:2]) for name, each in report.figures.items()]
    page.show(new_table((counted(n_problems, "problem"), "mean", "95 % interval"), rows, right=(1,)))


def _facts(report: ModelReport) -> list[tuple[str, str]]:
    facts = report.facts
    template = "the tokenizer's chat template" if facts.has_template else "plain text, as there is no chat template"
    return [
        ("architecture", f"{facts.architecture}, {facts.n_parameters:,} parameters, stored as {facts.dtype}"),
        ("context", f"{facts.context or 'unknown'} tokens; replies here at most {report.max_tokens}"),
        ("prompts", template),
        (
            "end tokens",
            f"tokenizer {facts.tokenizer_end or 'none'}; generation {', '.join(facts.generation_ends) or 'none'}",
        ),
        *_memory(report.memory),
    ]


def _memory(memory: ModelMemory | None) -> list[tuple[str, str]]:
    if memory is None:
        return [("memory", "unknown for this architecture")]
    return [
        ("to sample", f"{_size(memory.sampling)}: weights, and the cache of {memory.ROWS} replies of full length"),
        ("to train", f"{_size(memory.training)} per role, {_size(memory.training_lora)} with adapters, row by row"),
    ]


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.1f} MiB"


def _show_role(page: Page, role: RoleReport) -> None:
    page.show(Text(f"{role.role}, {role.problem_id or 'no reply'}", style="bold"))
    for line in role.reply.splitlines():
        page.say(f"  | {line}")
    for reading in role.readings:
        page.say(f"  {harmless(reading)}")
    counts = [("replies", role.n_replies), ("cut", role.n_cut), ("without a reply", role.n_unavailable)]
    said = ", ".join(f"{n} {name}" for name, n in counts if n or name == "replies")
    page.say(f"  in all: {said}{'; ' + tally(role.faults.items()) if role.faults else ''}")
