"""`codea1 sft`: fine-tunes a model on problems before reinforcement learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from typer import Argument, Option

from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, estimate_cells, new_table, number, pluralize
from codea1_agents.cli.eval_session import eval_session
from codea1_agents.cli.options import (
    Problems,
    Prompts,
    SessionOptions,
    agent_spec,
    from_options,
    how_many,
    n_tests,
    output,
    seed_of,
)
from codea1_agents.cli.progress import Progress
from codea1_agents.models.model_files import require_new
from codea1_agents.statistics import Estimate
from codea1_env.agent import Role
from codea1_env.errors import UnknownName, UserError
from codea1_env.problems import ProblemSet, load_problems

if TYPE_CHECKING:
    from codea1_agents.train.sft.warm_start import WarmStart


@dataclass(frozen=True, slots=True, kw_only=True)
class SftOptions(SessionOptions):
    """Fine-tune a model on problems, before reinforcement learning: a coder on solutions, a tester on golden tests.

    The loss counts the replies only. The result is a plain folder of transformers. Held-out problems are measured
    before and after. Ctrl-C ends the training after the present step and writes the model as it is then.

    \b
    Example:
      codea1 sft Qwen/Qwen2.5-Coder-0.5B-Instruct -p my.jsonl -o models/warm
      codea1 sft base -p tiny:train --role tester --prompts tiny --failing -o sft
    """

    model: Annotated[str, Argument(help="Folder, GGUF file or hub id of the language model to fine-tune.")]
    out: Annotated[Path, output("Folder of the new model; must be new or empty.")]
    problems: Problems
    role: Annotated[str, Option(help="coder, tester, or both: one model for both roles.")] = "both"
    held_out: Annotated[
        str, Option(help="Problem source to measure on.", show_default="an eighth of the problems, not trained on")
    ] = ""
    measured: Annotated[
        int, Option(min=0, help="Held-out problems on which the model plays, before and after; 0: only their loss.")
    ] = 16
    prompts: Prompts = "default"
    coder: Annotated[
        str,
        agent_spec("--coder", "Agent of the programs that the tester sees (see codea1 list agents); self: the model."),
    ] = "mutant,strength=0.75"
    failing: Annotated[
        bool, Option("--failing", help="Show the tester only programs that fail a golden test (paper, 4.1).")
    ] = False
    samples: Annotated[int, how_many("--samples", "Programs per problem, and replies per measured problem.")] = 4
    tests: Annotated[int, n_tests()] = 8
    shortest: Annotated[
        int | None,
        Option(min=1, help="Golden tests per problem: the shortest, which are easier to predict.", show_default="all"),
    ] = None
    max_reply_tokens: Annotated[int, Option(min=1, help="Longest reply where the model samples, in tokens.")] = 1024
    epochs: Annotated[int, Option(min=1, help="Passes over the examples.")] = 2
    lr: Annotated[float, Option(help="Highest learning rate.")] = 1e-5
    examples_per_step: Annotated[int, Option(min=1, help="Examples per optimiser step.")] = 16
    max_tokens: Annotated[
        int, Option(min=1, help="Longest prompt and reply together, in tokens; longer examples are left out.")
    ] = 4096
    micro_batch_tokens: Annotated[int, Option(min=1, help="Tokens per forward pass, padded; bounds memory.")] = 8192
    logits_chunk_tokens: Annotated[int, Option(min=0, help="Reply tokens whose logits exist at a time; 0: all.")] = 256
    lora: Annotated[int, Option(min=0, help="Rank of adapters to train instead of the model; 0 trains the model.")] = 0
    autocast: Annotated[str, Option(help="Data type of the computation, e.g. bfloat16.", show_default="float32")] = ""
    gradient_checkpointing: Annotated[
        bool, Option("--gradient-checkpointing", help="Compute activations again instead of storing them.")
    ] = False
    seed: Annotated[int, seed_of("programs, tests, order, held-out problems and replies")] = 0


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
    page = Page(as_json=options.as_json, quiet=options.quiet)
    with Progress("importing torch and transformers", None, page):  # packages of an extra, which take seconds
        from codea1_agents.train.grpo.settings import LoraSettings  # noqa: PLC0415
        from codea1_agents.train.sft.fine_tuning import SftSettings  # noqa: PLC0415
        from codea1_agents.train.sft.warm_start import ExampleSettings, held_out_part, warm_start  # noqa: PLC0415

    roles: tuple[Role, ...] = get_args(Role)
    if options.role not in (*roles, _BOTH):
        raise UnknownName.of("role", options.role, (*roles, _BOTH))
    examples = from_options(
        ExampleSettings, options, roles=tuple(role for role in roles if options.role in (role, _BOTH))
    )
    lora = LoraSettings(rank=options.lora, alpha=2.0 * options.lora) if options.lora else None
    training = from_options(SftSettings, options, lora=lora)
    require_new(options.out)
    with eval_session(options) as session:
        if options.held_out:
            held_out = load_problems(options.held_out)
        else:
            held_out = held_out_part(session.problems, options.seed)
        with Progress("drawing examples", None, page) as progress:
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
                phase=progress.begin,
                written=lambda: page.note(f"{options.out}: written"),
            )
        _print_result(session.page, done, options.seed)
    if done.tuned.is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _without(problems: ProblemSet, held_out: ProblemSet) -> ProblemSet:
    """Return the problems to train on.

    Raises:
        UserError: all problems are held out.
    """
    known = {problem.id for problem in held_out}
    others = problems.select(problem.id for problem in problems if problem.id not in known)
    if not others:
        raise UserError(f"all problems of {problems.name} are held out, so none is left to train on")
    return others


def _print_result(page: Page, done: WarmStart, seed: int) -> None:
    tuned = done.tuned
    counts = " and ".join(f"{pluralize(n, 'example')} for a {role}" for role, n in done.n_examples.items())
    page.say(
        f"{done.out}: {counts}; {pluralize(tuned.n_steps, 'step')}; "
        f"loss per token {', '.join(map(number, tuned.losses))}"
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
