"""`codea1 game questions`: the tables behind docs/game.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typer import Option

from codea1_agents.cli.console import Page, estimate_cells, new_table, number
from codea1_agents.cli.options import seed_of
from codea1_agents.cli.progress import Progress
from codea1_agents.evaluation.canvas import require_drawing
from codea1_agents.statistics import Estimate, estimate_document, mean_interval
from codea1_env.bank import BankRecipe, JudgedBank, load_bank
from codea1_env.errors import extra_needed
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_lab.cli.game import SourceOptions
from codea1_lab.games.bank_game import BankGame, strategies_of
from codea1_lab.games.pictures import draw_curves
from codea1_lab.games.questions import (
    BookStep,
    equilibrium_figures,
    failure_shares,
    rounds_with_book,
    validity_thresholds,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsOptions(SourceOptions):
    """Compute the effects of alpha, the Mistake Book and zero-sum rewards: the tables behind docs/game.md.

    \b
    Example:
      codea1 game questions starter -o docs/pictures
    """

    rounds: Annotated[int, Option(min=1, help="Rounds per problem with the Mistake Book.")] = 30
    seed: Annotated[int, seed_of("the random draws and the intervals")] = 0


_N_SEEDS = 3
_OF_ALPHA = ("fixed", "first_kill", "paper", "release")
_SCHEMES = ("fixed", "first_kill", "paper", "zero_sum")
_ALPHAS = np.linspace(0, 1, 101)
_TESTERS = {"full answers": BankRecipe(solution=False), "half the answers": BankRecipe(solution=False, right=False)}


@dataclass(frozen=True, slots=True)
class _Threshold:
    rules: str
    testers: str
    coder: str
    mean: Estimate
    share_at_half: float
    """Share of problems in which the validity-only tester is a best response at alpha 0.5."""
    curve: tuple[float, ...]
    """The same share at each of `_ALPHAS`."""


def answer_questions(options: QuestionsOptions) -> None:
    """Compute and print the answers.

    Raises:
        UserError: the source does not exist, or a picture cannot be written.
        SandboxError: a problem could not be judged.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    if options.out is not None:
        require_drawing()
    with extra_needed("solving a game", "study"):
        import scipy  # noqa: F401, PLC0415  now rather than after all that is judged
    n, books = len(_OF_ALPHA) * len(_TESTERS) * 2, defaultdict[str, list[tuple[BookStep, ...]]](list)
    with closing(load_sandbox(options.sandbox)) as backend, Progress("effects of alpha", n, page) as progress:
        answers = _Answers(options, backend)
        thresholds = list(progress.counting(answers.thresholds()))
        progress.begin("the Mistake Book", 2 * _N_SEEDS)
        for name, run in progress.counting(answers.books()):
            books[name].append(run)
        progress.begin("zero-sum rewards", 2 * len(_SCHEMES))
        schemes = list(progress.counting(answers.schemes()))
    _show_thresholds(page, thresholds)
    _show_books(page, books, options.rounds)
    _show_schemes(page, schemes)
    pictures = _draw(thresholds, books, options.out)
    page.finish(
        problems={"source": options.source},
        seed=options.seed,
        out=None if options.out is None else str(options.out),
        alpha=[asdict(t) | {"mean": estimate_document(t.mean)} for t in thresholds],
        alphas=_ALPHAS.tolist(),
        book={name: [[asdict(step) for step in run] for run in runs] for name, runs in books.items()},
        schemes=[
            {"rules": rules, "solution": solution, **{k: estimate_document(v) for k, v in figures.items()}}
            for rules, solution, figures in schemes
        ],
        pictures=pictures,
    )


@dataclass(frozen=True, slots=True)
class _Answers:
    """Computes the answers from the banks of a source."""

    options: QuestionsOptions
    sandbox: Sandbox

    def bank(self, rules: str, recipe: BankRecipe) -> JudgedBank:
        options = self.options
        return load_bank(options.source, rules=preset(rules), recipe=recipe, limit=options.limit, sandbox=self.sandbox)

    def thresholds(self) -> Iterator[_Threshold]:
        """Yield from which alpha on a validity-only tester is a best response."""
        for rules in _OF_ALPHA:
            for testers, recipe in _TESTERS.items():
                bank = self.bank(rules, recipe)
                for coder, chances in _coders(bank):
                    thresholds = validity_thresholds(bank, chances)
                    least = np.array(list(thresholds.values()))
                    mean = mean_interval({name: [value] for name, value in thresholds.items()}, seed=self.options.seed)
                    curve = tuple(float((least <= alpha + 1e-9).mean()) for alpha in _ALPHAS)
                    yield _Threshold(rules, testers, coder, mean, float((least <= 0.5 + 1e-9).mean()), curve)

    def books(self) -> Iterator[tuple[str, tuple[BookStep, ...]]]:
        """Yield rounds without and with the Mistake Book, one run per seed."""
        bank, options = self.bank("fixed", BankRecipe(solution=False)), self.options
        for name, has_book in (("without", False), ("with", True)):
            for seed in range(options.seed, options.seed + _N_SEEDS):
                yield name, rounds_with_book(bank, n_rounds=options.rounds, with_book=has_book, seed=seed)

    def schemes(self) -> Iterator[tuple[str, bool, dict[str, Estimate]]]:
        """Yield the figures of equilibria under composite and zero-sum rewards."""
        for solution in (True, False):
            for rules in _SCHEMES:
                bank = self.bank(rules, BankRecipe(solution=solution))
                figures = equilibrium_figures(bank, failure_shares(bank), seed=self.options.seed)
                yield rules, solution, {field.name: getattr(figures, field.name) for field in fields(figures)}


def _coders(bank: JudgedBank) -> Iterator[tuple[str, NDArray[np.float64]]]:
    shape = len(bank.problems), bank.bank.n_programs
    yield "uniform coder", np.full(shape, 1 / shape[1])
    yield "equilibrium coder", strategies_of(BankGame.of(bank.payoffs()).solve())[0]


def _show_thresholds(page: Page, thresholds: list[_Threshold]) -> None:
    rows = [(t.rules, t.testers, t.coder, *estimate_cells(t.mean)[:2], number(t.share_at_half)) for t in thresholds]
    page.say("From which alpha on is the validity-only tester a best response?")
    headings = ("rules", "hard suites know", "against", "from", "95 % interval", "at 0.5")
    page.show(new_table(headings, rows, right=(3, 5), whole=(0, 1, 2, 4)))


def _show_books(page: Page, books: dict[str, list[tuple[BookStep, ...]]], rounds: int) -> None:
    names = [field.name for field in fields(BookStep) if field.name != "round"]
    rows = [(name.replace("_", " "), *(_second_half(runs, name) for runs in books.values())) for name in names]
    page.say(f"The Mistake Book: means of the second half of {rounds} rounds, (least to most) of {_N_SEEDS} seeds")
    page.show(new_table(("", *(f"{name} the book" for name in books)), rows, whole=(0, 1, 2)))


def _second_half(runs: list[tuple[BookStep, ...]], name: str) -> str:
    means = [float(np.mean([getattr(step, name) for step in run[len(run) // 2 :]])) for run in runs]
    return f"{np.mean(means):.3f} ({min(means):.3f} to {max(means):.3f})"


def _show_schemes(page: Page, schemes: list[tuple[str, bool, dict[str, Estimate]]]) -> None:
    for solution in (True, False):
        compared = [(rules, figures) for rules, has_solution, figures in schemes if has_solution is solution]
        rows = [
            (name.replace("_", " "), *(_with_interval(figures[name]) for _, figures in compared))
            for name in compared[0][1]
        ]
        page.say(f"Equilibria {'with' if solution else 'without'} the right program (95 % interval over problems)")
        page.show(new_table(("", *(rules for rules, _ in compared)), rows, whole=range(len(compared) + 1)))


def _with_interval(estimate: Estimate) -> str:
    mean, interval, _ = estimate_cells(estimate)
    return f"{mean} ({interval})" if interval else mean


def _draw(thresholds: list[_Threshold], books: dict[str, list[tuple[BookStep, ...]]], out: Path | None) -> list[str]:
    if out is None:
        return []
    paths = []
    alphas = _ALPHAS.tolist()
    shares = {f"{t.rules}, {t.testers}": (alphas, list(t.curve)) for t in thresholds if t.coder == "equilibrium coder"}
    played: dict[str, Any] = {
        f"{name} the book": (
            [step.round for step in runs[0]],
            np.mean([[step.failed for step in run] for run in runs], axis=0).tolist(),
        )
        for name, runs in books.items()
    }
    for name, curves, x, y in (
        ("alpha", shares, "alpha", "share of problems: validity only is best"),
        ("book", played, "round", "share of new cases that fail"),
    ):
        path = out / f"questions-{name}.svg"
        draw_curves(curves, path, x=x, y=y)
        paths.append(str(path))
    return paths
