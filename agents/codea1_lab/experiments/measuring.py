"""Measures the models of a cell."""

from __future__ import annotations

from contextlib import closing
from math import isnan
from pathlib import Path

from codea1_agents.evaluation.coder import evaluate_coder, figures_of_coder
from codea1_agents.evaluation.mutant_trials import View
from codea1_agents.evaluation.selection import select_candidates, selection_figures
from codea1_agents.evaluation.tester import Mode, TesterTask, evaluate_tester
from codea1_agents.evaluation.tester_figures import figures_of_tester
from codea1_agents.train.tiny.measuring import measure
from codea1_agents.train.tiny.tiny_agent import tiny_agent
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_lab.experiments.declaration import Evaluation
from codea1_lab.experiments.models import Models


def measured(
    models: Models, evaluation: Evaluation, *, base: Path, together: bool, seed: int, view: View = "white_box"
) -> dict[str, float]:
    """Return figures by name, without those that are nan.

    `coder/NAME` is avg@n on a source of problems. `tester/...` are those of `figures_of_tester`, for right programs.
    `duel/...` are those of `tiny.measuring`, for the coder's wrong programs. With `together`, there are only
    `together/...`, those of `selection_figures`.

    Args:
        models: to measure.
        evaluation: how.
        base: the model that the tester began as, whose answers to its inputs are compared with its own.
        together: whether to measure the choice among the coder's programs by the tester's suites.
        seed: seeds the sampling.
        view: whether the tester sees the wrong programs for which it writes tests.
    """
    with closing(load_sandbox("local")) as sandbox:
        if together:
            found = _together(models, evaluation, sandbox, seed)
        else:
            found = _of_coder(models, evaluation, sandbox, seed)
            found |= _of_tester(models, evaluation, base, sandbox, seed, view)
    return {name: value for name, value in found.items() if not isnan(value)}


def _of_coder(models: Models, evaluation: Evaluation, sandbox: Sandbox, seed: int) -> dict[str, float]:
    found = {}
    for name, source in evaluation.coder.items():
        problems = load_problems(source)
        with closing(tiny_agent("coder", models.coder, problems, sandbox, seed)) as coder:
            batches = evaluate_coder(problems, coder, sandbox, samples=evaluation.samples)
            samples = [sample for batch in batches for sample in batch]
        found[f"coder/{name}"] = figures_of_coder(samples, seed=seed).average.mean
    return found


def _of_tester(
    models: Models, evaluation: Evaluation, base: Path, sandbox: Sandbox, seed: int, view: View
) -> dict[str, float]:
    if not evaluation.tester:
        return {}
    problems = load_problems(evaluation.tester)
    task = TesterTask(tests=evaluation.tests, mode=Mode.SUITE, seed=0)
    with closing(tiny_agent("tester", models.tester, problems, sandbox, seed)) as tester:
        records = [record for batch in evaluate_tester(problems, tester, sandbox, task) for record in batch]
        figures = figures_of_tester(records, tests=task.tests, seed=seed).figures
        with (
            closing(tiny_agent("coder", models.coder, problems, sandbox, seed)) as coder,
            closing(tiny_agent("tester", base, problems, sandbox, seed)) as of_base,
        ):
            n, k = evaluation.samples, task.tests
            duels = measure(problems, coder, tester, sandbox, samples=n, tests=k, view=view, seed=seed, base=of_base)
    return {
        **{f"tester/{name}": estimate.mean for name, estimate in figures.items()},
        **{f"duel/{name}": estimate.mean for name, estimate in duels.figures.items()},
    }


def _together(models: Models, evaluation: Evaluation, sandbox: Sandbox, seed: int) -> dict[str, float]:
    problems = load_problems(evaluation.together)
    n = evaluation.candidates
    with (
        closing(tiny_agent("coder", models.coder, problems, sandbox, seed)) as coder,
        closing(tiny_agent("tester", models.tester, problems, sandbox, seed)) as tester,
    ):
        batches = select_candidates(problems, coder, tester, sandbox, candidates=n, suites=n, tests=evaluation.tests)
        found = selection_figures([record for batch in batches for record in batch], seed=seed)
    return {f"together/{name}": getattr(found, name).mean for name in ("average", "chosen", "best", "gain", "fidelity")}
