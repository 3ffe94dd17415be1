"""Measures what a warm start and then reinforcement learning do to a tiny model, on held-out problems, by seed.

    python benchmarks/warm_start.py OUT [--seeds 3] [--pretraining 1600] [--steps 30] [--limit N] [--json]

For each seed, a model is pretrained (`codea1 pretrain`) and fine-tuned (`codea1 sft`): as a coder on `tiny:train`, and
as a tester on the shortest golden tests of `tiny:rest-eval`. The two are then trained against each other (`codea1 train
code-a1`). After each stage they play the held-out problems (`tiny:held-out-eval`): `pass@1` by 64 golden tests, and the
validity and kill rate of suites for mutants, with intervals over problems. The last table has the mean rise from stage
to stage with its interval over seeds, and for how many seeds the intervals over problems are apart. Stages that OUT
holds already are not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from measuring import option_parser
from rich.console import Console
from rich.table import Table

from codea1_agents.evaluation.zero_shot import ZeroShotTask, zero_shot
from codea1_agents.statistics import Estimate, estimate_document
from codea1_agents.train.loop import load_training, train
from codea1_agents.train.sft.fine_tuning import SftSettings
from codea1_agents.train.sft.warm_start import ExampleSettings, warm_start
from codea1_agents.train.tiny.pretraining import PretrainingSettings, pretrain
from codea1_agents.train.tiny.tiny_agent import tiny_agent
from codea1_env.agent import Role
from codea1_env.problems import load_problems
from codea1_env.records.whole_files import write_whole_folder
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.spread import Difference, paired_difference

_HELD_OUT = "tiny:held-out-eval"
_STAGES = ("base", "sft", "rl")
_SAMPLES, _TESTS, _REPLY_TOKENS = 8, 4, 96
_SFT_LR = 1e-3  # as in training: these models are small


@dataclass(frozen=True)
class Lesson:
    """The warm start of a role."""

    problems: str
    epochs: int
    shortest: int | None = None
    """Golden tests of a problem; a model of this size cannot compute the answers of long ones."""


_LESSONS: Mapping[Role, Lesson] = {"coder": Lesson("tiny:train", 4), "tester": Lesson("tiny:rest-eval", 3, shortest=16)}

Figures = Mapping[str, Estimate]
Models = Mapping[Role, Path]


@dataclass(frozen=True)
class Rise:
    """The change of a figure from one stage to the next."""

    difference: Difference
    """Over seeds, with Student's t interval."""
    n_beyond: int
    """Seeds for which the two intervals over problems are apart."""


def stages(place: Path, seed: int, options: argparse.Namespace, sandbox: Sandbox) -> dict[str, Models]:
    """Return the models of each stage of a seed, after making those that are missing."""
    base, run = place / "base", place / "run"
    warm: Models = {role: place / f"sft-{role}" for role in _LESSONS}
    if not base.exists():
        write_whole_folder(base, pretrain(PretrainingSettings(seed=seed, steps=options.pretraining)).save)
    for role, lesson in _LESSONS.items():
        if not warm[role].exists():
            taught(str(base), role, lesson, warm[role], seed, sandbox)
    if not (run / "models").exists():
        changes = {"run.seed": seed, "run.steps": options.steps, "evaluation.every": 0}
        models = {f"agents.{role}.model": str(folder) for role, folder in warm.items()}
        train(load_training("code-a1", changes | models), out=run)
    return {"base": dict.fromkeys(warm, base), "sft": warm, "rl": {role: run / "models" / role for role in warm}}


def taught(base: str, role: Role, lesson: Lesson, out: Path, seed: int, sandbox: Sandbox) -> None:
    """Write the model of a role after its warm start."""
    examples = ExampleSettings(
        (role,), "tiny", tests=_TESTS, shortest=lesson.shortest, max_reply_tokens=_REPLY_TOKENS, seed=seed
    )
    training = SftSettings(epochs=lesson.epochs, lr=_SFT_LR, seed=seed)
    warm_start(base, load_problems(lesson.problems), out, sandbox, examples, training)


def measured(models: Models, seed: int, limit: int | None, sandbox: Sandbox) -> Figures:
    """Return the figures of a stage on the held-out problems."""
    problems = load_problems(_HELD_OUT, limit=limit)
    with (
        closing(tiny_agent("coder", models["coder"], problems, sandbox, seed)) as coder,
        closing(tiny_agent("tester", models["tester"], problems, sandbox, seed)) as tester,
    ):
        task = ZeroShotTask(samples=_SAMPLES, tests=_TESTS, seed=seed)
        return zero_shot(problems, {"coder": coder, "tester": tester}, sandbox, task).figures()


def rises(found: Mapping[int, Mapping[str, Figures]]) -> dict[str, Rise]:
    """Return by figure and stage how it rose from the stage before."""
    return {
        f"{name}, {stage}": Rise(
            paired_difference(
                *({Cell(each, seed, seed): found[seed][each][name].mean for seed in found} for each in (stage, before))
            ),
            sum(of_seed[stage][name].low > of_seed[before][name].high for of_seed in found.values()),
        )
        for before, stage in pairwise(_STAGES)
        for name in next(iter(found.values()))[stage]
    }


def main() -> None:
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("out", type=Path, help="folder of the models")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pretraining", type=int, default=1600, help="steps of the base model")
    parser.add_argument("--steps", type=int, default=30, help="of the reinforcement learning")
    parser.add_argument("--limit", type=int, help="only the first so many held-out problems")
    options = parser.parse_args()
    with closing(load_sandbox("local")) as sandbox:
        found = {
            seed: {
                stage: measured(models, seed, options.limit, sandbox)
                for stage, models in stages(options.out / f"seed-{seed}", seed, options, sandbox).items()
            }
            for seed in range(options.seeds)
        }
    changes = rises(found)
    if options.json:
        figures = {
            seed: {
                stage: {name: estimate_document(each) for name, each in of_stage.items()}
                for stage, of_stage in each.items()
            }
            for seed, each in found.items()
        }
        print(json.dumps({"figures": figures, "rises": {name: asdict(each) for name, each in changes.items()}}))
        return
    show(found, changes)


def show(found: Mapping[int, Mapping[str, Figures]], changes: Mapping[str, Rise]) -> None:
    """Print the figures by seed and stage, and how they rose."""
    console, names = Console(), list(next(iter(found.values()))["base"])
    table = Table("seed", "stage", *names)
    for seed, of_seed in found.items():
        for stage, figures in of_seed.items():
            cells = (f"{each.mean:.2f} ({each.low:.2f} to {each.high:.2f})" for each in figures.values())
            table.add_row(str(seed), stage, *cells)
    console.print(table)
    summary = Table("figure, stage", "rise, 95 % interval over seeds", "seeds that rose", "beyond their intervals")
    for name, rise in changes.items():
        each = rise.difference
        summary.add_row(
            name, f"{each.mean:+.3f} ± {each.half_width:.3f}", f"{each.n_larger} of {each.n}", str(rise.n_beyond)
        )
    console.print(summary)


if __name__ == "__main__":
    main()
