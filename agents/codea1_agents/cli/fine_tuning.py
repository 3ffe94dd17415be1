"""Runs `codea1 sft`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import typer

from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, counted, estimate_cells, new_table, number
from codea1_agents.cli.evaluating import eval_session, from_options
from codea1_agents.cli.progress import Progress
from codea1_agents.cli.sft import SftOptions
from codea1_agents.models.model_files import require_new
from codea1_agents.statistics import Estimate
from codea1_agents.train.grpo.model_settings import LoraSettings
from codea1_agents.train.sft.fine_tuning import SftSettings
from codea1_agents.train.sft.warm_start import ExampleSettings, WarmStart, held_out_part, warm_start
from codea1_env.agent import Role
from codea1_env.errors import UnknownName, UserError
from codea1_env.problems import ProblemSet, load_problems

_BOTH = "both"


def run_sft(options: SftOptions) -> None:
    """Fine-tune a model and write it.

    Raises:
        UserError: an option names something that does not exist, the folder cannot be written, there is no example, or
            an agent failed.
        SandboxError: the sandbox cannot be used at all.
        LossNotFinite: a loss is nan or infinite.
        typer.Exit: interrupted (130).
    """
    roles: tuple[Role, ...] = get_args(Role)
    if options.role not in (*roles, _BOTH):
        raise UnknownName.of("role", options.role, (*roles, _BOTH))
    examples = from_options(
        ExampleSettings, options, roles=tuple(each for each in roles if options.role in (each, _BOTH))
    )
    lora = LoraSettings(rank=options.lora, alpha=2.0 * options.lora) if options.lora else None
    training = from_options(SftSettings, options, lora=lora)
    require_new(options.out)
    with eval_session(options) as session:
        page = Page(as_json=options.as_json, quiet=options.quiet)
        held_out = _held_out(options, session.problems)
        with Progress("fine-tuning", 1, page) as progress:
            done = warm_start(
                options.model,
                _without(session.problems, held_out),
                options.out,
                session.sandbox,
                examples,
                training,
                held_out=held_out,
                n_measured=options.measured,
                progress=progress.reach,
                written=lambda: page.note(f"{options.out}: written"),
            )
        _print_result(session.page, done, options.seed)
    if done.tuned.is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _held_out(options: SftOptions, problems: ProblemSet) -> ProblemSet:
    return load_problems(options.held_out) if options.held_out else held_out_part(problems, options.seed)


def _without(problems: ProblemSet, held_out: ProblemSet) -> ProblemSet:
    """Return the problems to train on.

    Raises:
        UserError: all problems are held out.
    """
    known = {problem.id for problem in held_out}
    found = problems.select(each.id for each in problems if each.id not in known)
    if not found:
        raise UserError(f"all problems of {problems.name} are held out, so none is left to train on")
    return found


def _print_result(page: Page, done: WarmStart, seed: int) -> None:
    tuned = done.tuned
    counts = " and ".join(f"{counted(n, 'example')} for a {role}" for role, n in done.n_examples.items())
    page.say(
        f"{done.out}: {counts}; {counted(tuned.n_steps, 'step')}; loss per token {', '.join(map(number, tuned.losses))}"
    )
    if tuned.n_too_long:
        page.warn(f"{tuned.n_too_long} examples were left out: they are longer than the limit or the model's context")
    rows = [
        (f"loss, {role}", number(before), "", number(tuned.held_out_after[role]), "")
        for role, before in tuned.held_out_before.items()
    ]
    rows += [(name, *_cells(done.before, name), *_cells(done.after, name)) for name in done.before]
    if rows:
        columns = ("held out", "before", "95 % interval", "after", "95 % interval")
        page.show(new_table(columns, rows, right=(1, 3)))
    if tuned.is_interrupted:
        page.note(
            f"interrupted after {tuned.n_steps} of {tuned.n_planned} steps; {done.out} holds the model as of then"
        )
    page.finish(out=str(done.out), seed=seed, interrupted=tuned.is_interrupted, **done.to_dict())


def _cells(figures: Mapping[str, Estimate], name: str) -> tuple[str, str]:
    return estimate_cells(figures[name])[:2] if name in figures else ("-", "")
