"""Measures the models of a cell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from codea1_agents.evaluation.coder import figures_of_coder
from codea1_agents.evaluation.folder import EvaluationFolder
from codea1_agents.evaluation.mutant_trials import View
from codea1_agents.evaluation.records import CoderSample
from codea1_agents.evaluation.repairs import by_turn, evaluate_turns, gain_by, name_in_turn
from codea1_agents.evaluation.selection import select_candidates, selection_figures
from codea1_agents.evaluation.tester import Mode, TesterTask, evaluate_tester
from codea1_agents.evaluation.tester_figures import figures_of_tester
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.train.tiny.measuring import measure
from codea1_env.agent import AgentContext, Role, load_agent
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_lab.experiments.declaration import Evaluation, StartingModel
from codea1_lab.experiments.models import Models

_TOGETHER = ("average", "chosen", "best", "gain", "fidelity")

Player = Callable[[Role, Path, ProblemSet, Sandbox, int], NamedAgent]
"""Makes the agent of a role, a model, problems, a sandbox and a seed."""


def starting_agent(
    known: StartingModel, role: Role, model: Path, problems: ProblemSet, sandbox: Sandbox, seed: int
) -> NamedAgent:
    """Return the model of an experiment, or an adapter of it, in a role."""
    spec = f"transformers,model={model},{known.coder if role == 'coder' else known.tester}".rstrip(",")
    return NamedAgent(load_agent(spec, AgentContext(problems, sandbox, seed)), f"{role} {model}", seed=seed)


def measure_cell(
    models: Models,
    evaluation: Evaluation,
    player: Player,
    *,
    base: Path,
    together: bool,
    seed: int,
    view: View = "white_box",
    store: Path | None = None,
) -> dict[str, float]:
    """Return figures by name, without those that are nan.

    `coder/NAME` is avg@n on a source of problems. `tester/...` are those of `figures_of_tester`, for right programs.
    `duel/...` are those of `tiny.measuring`, for the coder's wrong programs. With `together`, there are only
    `together/...`, those of `selection_figures`.

    Args:
        models: to measure.
        evaluation: how.
        player: makes their agents.
        base: the model that the tester began as, whose answers to its inputs are compared with its own.
        together: whether to measure the choice among the coder's programs by the tester's suites.
        seed: seeds the sampling.
        view: whether the tester sees the wrong programs for which it writes tests.
        store: folder in which the coder's judged replies are kept, and which a second call continues; None: nowhere.
    """
    with closing(load_sandbox("local")) as sandbox:
        measuring = _Measuring(models, evaluation, player, sandbox, seed)
        if together:
            figures = measuring.together()
        else:
            figures = measuring.of_coder(store) | measuring.of_tester() | measuring.of_duels(base, view)
    return {name: value for name, value in figures.items() if not isnan(value)}


@dataclass(frozen=True, slots=True)
class _Measuring:
    models: Models
    evaluation: Evaluation
    player: Player
    sandbox: Sandbox
    seed: int

    def _coder(self, problems: ProblemSet) -> closing[NamedAgent]:
        return closing(self.player("coder", self.models.coder, problems, self.sandbox, self.seed))

    def _tester(self, model: Path, problems: ProblemSet) -> closing[NamedAgent]:
        return closing(self.player("tester", model, problems, self.sandbox, self.seed))

    def of_coder(self, store: Path | None) -> dict[str, float]:
        figures = {}
        for name, source in self.evaluation.coder.items():
            problems, n = load_problems(source), self.evaluation.samples
            settings = {"problems": source, "samples": n, "seed": self.seed, "judge_version": JUDGE_VERSION}
            n_turns = self.evaluation.turns
            settings |= {"turns": n_turns} if n_turns > 1 else {}
            with (
                self._coder(problems) as coder,
                self._tester(self.models.tester, problems) if n_turns > 1 else nullcontext() as tester,
                closing(EvaluationFolder(store / name, settings, CoderSample)) if store else nullcontext() as folder,
            ):
                samples = list(folder.known) if folder else []
                batches = evaluate_turns(
                    problems, coder, self.sandbox, turns=n_turns, tester=tester, samples=n, known=list(samples)
                )
                for batch in batches:
                    samples += batch
                    if folder:
                        folder.append(batch)
            turns = by_turn(samples)
            for turn, of_turn in turns.items():
                average = figures_of_coder(of_turn, seed=self.seed).average.mean
                figures[name_in_turn(f"coder/{name}", turn)] = average
                if turn > 1:
                    figures[name_in_turn(f"coder/{name} gain", turn)] = gain_by(of_turn, turns[1], seed=self.seed).mean
        return figures

    def of_tester(self) -> dict[str, float]:
        """Return the figures of a tester that sees right programs."""
        if not self.evaluation.tester:
            return {}
        problems = load_problems(self.evaluation.tester)
        task = TesterTask(tests=self.evaluation.tests, mode=Mode.SUITE, seed=0)
        with self._tester(self.models.tester, problems) as tester:
            records = [record for batch in evaluate_tester(problems, tester, self.sandbox, task) for record in batch]
        figures = figures_of_tester(records, tests=task.tests, seed=self.seed).figures
        return {f"tester/{name}": estimate.mean for name, estimate in figures.items()}

    def of_duels(self, base: Path, view: View) -> dict[str, float]:
        """Return the figures of coder and tester together, and of the tester against known wrong programs."""
        evaluation = self.evaluation
        if not (source := evaluation.duels or evaluation.tester):
            return {}
        problems = load_problems(source, limit=evaluation.duel_problems or None)
        with (
            self._coder(problems) as coder,
            self._tester(self.models.tester, problems) as tester,
            self._tester(base, problems) as of_base,
        ):
            n, k = evaluation.duel_samples or evaluation.samples, evaluation.tests
            duels = measure(
                problems, coder, tester, self.sandbox, samples=n, tests=k, view=view, seed=self.seed, base=of_base
            )
        return {f"duel/{name}": estimate.mean for name, estimate in duels.figures.items()}

    def together(self) -> dict[str, float]:
        problems, n = load_problems(self.evaluation.together), self.evaluation.candidates
        with self._coder(problems) as coder, self._tester(self.models.tester, problems) as tester:
            batches = select_candidates(
                problems, coder, tester, self.sandbox, candidates=n, suites=n, tests=self.evaluation.tests
            )
            figures = selection_figures([record for batch in batches for record in batch], seed=self.seed)
        return {f"together/{name}": getattr(figures, name).mean for name in _TOGETHER}
