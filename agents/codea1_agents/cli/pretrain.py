"""`codea1 pretrain`: makes the tiny model that both agents of a laptop's training start from."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from codea1_agents.cli.console import Page, estimate_cells, new_table, number, show_next
from codea1_agents.cli.options import NoProgress, Options, output, sandbox_name, seed_of
from codea1_agents.cli.progress import Progress
from codea1_agents.models.model_files import require_new
from codea1_agents.statistics import estimate_document, json_number
from codea1_agents.train.tiny.corpus import CorpusRules
from codea1_agents.train.tiny.family import Split, Variant
from codea1_agents.train.tiny.measuring import FIGURES, Measurement, measure
from codea1_agents.train.tiny.problems import Part
from codea1_agents.train.tiny.tiny_agent import tiny_agent
from codea1_env.errors import UnknownName
from codea1_env.problems import load_problems
from codea1_env.sandbox import load_sandbox, require_sandbox

if TYPE_CHECKING:
    from codea1_agents.train.tiny.pretraining import Base, PretrainingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainOptions(Options):
    """Pretrain a tiny language model: a coder and a tester for generated problems, both mostly wrong.

    \b
    Example:
      codea1 pretrain --out base --evaluate
      codea1 play -p tiny --coder transformers,model=base,prompts=tiny -n 5
    """

    out: Annotated[Path, output("Folder of the model; must be new or empty.")] = Path("models/tiny")
    seed: Annotated[int, seed_of("the weights and the corpus")] = 0
    steps: Annotated[int, Option(min=1, help="Optimiser steps; the default takes minutes on one core.")] = 1600
    variant: Annotated[
        str,
        Option(help="plain, or mistakes that naive inputs do not find: rare, deep-rare, rarest (tiny:rare-train...)."),
    ] = "plain"
    aware: Annotated[
        float, Option(min=0, max=1, help="Share of the white-box tests whose inputs hit the shown program's mistake.")
    ] = 0.0
    aware_first: Annotated[int, Option(min=0, help="Number of first steps in which all of these tests hit it.")] = 0
    repair: Annotated[
        float,
        Option(min=0, max=1, help="Share of documents from a wrong program and the tests it fails to a right one."),
    ] = 0.0
    evaluate: Annotated[bool, Option("--evaluate", help="Then measure it on training and held-out problems.")] = False
    sandbox: Annotated[str, sandbox_name("Sandbox that runs the programs of --evaluate.")] = "local"
    quiet: NoProgress = False


_SPLITS = (Split.TRAIN, Split.HELD_OUT)


def run_pretrain(options: PretrainOptions) -> None:
    """Pretrain a model, save it, and measure it with `--evaluate`.

    Raises:
        UserError: an option is invalid, or the folder is not empty.
        SandboxError: the sandbox cannot be used.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    with Progress("starting", None, page):
        settings = _settings(options)
    require_new(options.out)
    require_sandbox(options.sandbox)
    with page.apart():
        started = time.process_time()
        base = _pretrain(settings, page)
        base.save(options.out)
        cpu_s = time.process_time() - started
        page.say(
            f"{options.out}: {base.n_parameters:,} parameters, {base.n_tokens:,} tokens in {settings.n_steps} steps,"
            f" {cpu_s:.0f} s of processor time; losses per token "
            + ", ".join(f"{kind} {number(loss)}" for kind, loss in base.losses.items())
        )
        measured = _measure_splits(options, page) if options.evaluate else []
        if measured:
            rows = [(each.problems, name, *estimate_cells(each.figures[name])) for each in measured for name in FIGURES]
            page.show(new_table(("problems", "figure", "mean", "95% interval", "n"), rows, right=(2, 4)))
        page.finish(
            out=str(options.out),
            seed=options.seed,
            settings=settings.to_dict(),
            parameters=base.n_parameters,
            tokens=base.n_tokens,
            cpu_s=cpu_s,
            losses={kind: json_number(loss) for kind, loss in base.losses.items()},
            evaluation={
                measurement.problems: {name: estimate_document(value) for name, value in measurement.figures.items()}
                for measurement in measured
            },
        )
        show_next(page, "pretrain", out=options.out)


def _settings(options: PretrainOptions) -> PretrainingSettings:
    from codea1_agents.train.tiny.pretraining import PretrainingSettings  # noqa: PLC0415  needs torch

    variants = {variant.value: variant for variant in Variant}
    if options.variant not in variants:
        raise UnknownName.of("variant", options.variant, variants)
    rules = CorpusRules(
        variants[options.variant],
        aware_share=options.aware,
        n_aware_first=options.aware_first,
        repair_share=options.repair,
    )
    return PretrainingSettings(seed=options.seed, steps=options.steps, rules=rules)


def _pretrain(settings: PretrainingSettings, page: Page) -> Base:
    from codea1_agents.train.tiny.pretraining import pretrain  # noqa: PLC0415  needs torch

    with Progress("pretraining", settings.n_steps, page) as progress:
        return pretrain(settings, progress=lambda done, _: progress.reach(done, settings.n_steps))


def _measure_splits(options: PretrainOptions, page: Page) -> list[Measurement]:
    measured: list[Measurement] = []
    with closing(load_sandbox(options.sandbox)) as sandbox, Progress("measuring", len(_SPLITS), page) as progress:
        for split in _SPLITS:
            progress.reach(len(measured), len(_SPLITS), split.value)
            part = Part(Variant(options.variant), split, "eval")
            problems = load_problems(f"tiny:{part.name}")
            with (
                closing(tiny_agent("coder", options.out, problems, sandbox, options.seed)) as coder,
                closing(tiny_agent("tester", options.out, problems, sandbox, options.seed)) as tester,
            ):
                measured.append(measure(problems, coder, tester, sandbox, samples=8, tests=4, seed=options.seed))
    return measured
