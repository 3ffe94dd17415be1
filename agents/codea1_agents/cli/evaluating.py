"""What the commands that evaluate have in common: problems, agents, a folder to go on in, an orderly end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import typer
from pydantic import BaseModel

from codea1_agents.checks.sandbox_check import promise_of
from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, estimate_cells, new_table
from codea1_agents.cli.options import BenchOptions, Options
from codea1_agents.cli.progress import Progress
from codea1_agents.measure.folder import EvaluationFolder
from codea1_agents.play.asking import Asker
from codea1_agents.statistics import Estimate
from codea1_env.agent import AgentContext, Role, agent_name, load_agent
from codea1_env.errors import AgentUnavailable, CodeA1Error, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.problems import Problem, ProblemSet, load_problems
from codea1_env.runs.config import problems_digest
from codea1_env.sandbox import Sandbox, load_sandbox

_R = TypeVar("_R", bound=BaseModel)
_T = TypeVar("_T")


@dataclass(slots=True)
class Bench:
    """Everything that an evaluation needs."""

    asked: BenchOptions
    page: Page
    problems: ProblemSet
    sandbox: Sandbox
    stack: ExitStack

    def asker(self, spec: str, role: Role) -> Asker:
        """Return the agent of that name; it is let go at the end.

        Raises:
            UserError: there is none, or it plays the other role.
        """
        context = AgentContext(self.problems, self.sandbox, self.asked.seed)
        agent = load_agent(spec, context, role=role)
        asker = Asker(agent, f"{role} {agent_name(spec, agent)}", seed=self.asked.seed)
        self.stack.callback(asker.close)
        return asker

    def tested(self, what: str) -> list[Problem]:
        """Return the problems that have golden tests.

        Raises:
            UserError: none has, so that `what` could not be judged.
        """
        found = [problem for problem in self.problems if problem.golden]
        if not found:
            raise UserError(f"{self.asked.problems}: no problem has golden tests, by which {what} could be judged")
        return found

    def settings(self, kind: str, **options: Any) -> dict[str, Any]:
        """Return what decides the records of an evaluation."""
        digest = problems_digest(self.problems)
        return {
            "kind": kind,
            "schema_version": 1,
            "judge_version": JUDGE_VERSION,
            "problems": {"digest": digest, "n": len(self.problems)},
            "seed": self.asked.seed,
            **options,
        }

    def show_figures(self, heading: str, figures: Mapping[str, Estimate]) -> None:
        """Print estimates by name as a table."""
        rows = [(name, *estimate_cells(each)[:2], str(each.n_problems)) for name, each in figures.items()]
        self.page.show(new_table((heading, "mean", "95 % interval", "problems"), rows, right=(1, 3)))


@contextmanager
def bench(asked: BenchOptions, *, without: str = "") -> Iterator[Bench]:
    """Give what an evaluation needs; within, what others print lands on stderr.

    Args:
        asked: what the command was asked for.
        without: ids of problems to leave out, with commas between them.

    Raises:
        UserError: problems or sandbox cannot be had, or a problem to be left out is not there.
    """
    page = Page(as_json=asked.as_json)
    problems = load_problems(asked.problems, limit=asked.limit)
    left_out = [name.strip() for name in without.split(",") if name.strip()]
    for name in left_out:
        problems.by_id(name)
    if left_out:
        problems = problems.select(problem.id for problem in problems if problem.id not in left_out)
    page.note_skipped(problems.skipped)
    with page.apart(), closing(load_sandbox(asked.sandbox)) as sandbox, ExitStack() as stack:
        page.warn_if_weak(promise_of(sandbox))
        yield Bench(asked, page, problems, sandbox, stack)


class Keeping(Generic[_R]):
    """The records of one evaluation, in memory and, if there is one, in its folder.

    A later record of the same key replaces an earlier one: what was masked is asked for again when a run goes on.
    """

    def __init__(
        self, bench: Bench, out: Path | None, settings: Mapping[str, Any], model: type[_R], key: Callable[[_R], Any]
    ) -> None:
        self._page, self._settings, self._key = bench.page, settings, key
        self._folder = None if out is None else bench.stack.enter_context(EvaluationFolder(out, settings, model))
        self._records = {} if self._folder is None else {key(record): record for record in self._folder.known}

    @property
    def records(self) -> list[_R]:
        """All of them, each key once."""
        return list(self._records.values())

    def take(
        self, batches: Iterator[Sequence[_R]], total: int, figures: Callable[[list[_R]], Mapping[str, Any]]
    ) -> None:
        """Keep all batches, then show and keep the figures of what there is, also where it ends early.

        Args:
            batches: records as they come.
            total: how many records there should be.
            figures: shows the figures of all records and returns them as plain data.

        Raises:
            typer.Exit: interrupted (130).
            AgentUnavailable: for a whole batch, so that nothing more was asked for; or for everything.
        """
        page = self._page
        try:
            with Progress("evaluating", total, page, done=len(self._records)) as progress:
                for batch in batches:
                    self._add(batch)
                    progress.reach(len(self._records), total)
        except KeyboardInterrupt:
            self._finish(figures(self.records))
            page.note(f"interrupted after {len(self._records)} of {total}{self._how_to_go_on()}", even_if_quiet=True)
            raise typer.Exit(INTERRUPTED) from None
        except CodeA1Error:
            page.note(f"{len(self._records)} of {total} done{self._how_to_go_on()}", even_if_quiet=True)
            raise
        self._finish(figures(self.records))
        if len(self._records) < total:
            raise AgentUnavailable(
                f"an agent was unavailable for a whole batch, so that {total - len(self._records)} of {total} were not"
                f" asked for{self._how_to_go_on()}"
            )
        if all(getattr(record, "masked", "") == "agent" for record in self._records.values()):
            raise AgentUnavailable(f"an agent was unavailable for all of {total}{self._how_to_go_on()}")

    def _finish(self, figures: Mapping[str, Any]) -> None:
        if self._folder is not None:
            self._folder.write_figures(figures)
            self._page.say(f"folder: {self._folder.path}")
        self._page.finish({"settings": self._settings, **figures})

    def _add(self, batch: Sequence[_R]) -> None:
        if self._folder is not None:
            self._folder.append(batch)
        self._records.update((self._key(record), record) for record in batch)

    def _how_to_go_on(self) -> str:
        return "; the same command goes on" if self._folder is not None else "; nothing is kept without --out"


def named_alike(kind: type[_T], asked: Options, **others: Any) -> _T:
    """Return a dataclass whose fields are the options of the same names, but for `others`."""
    names = {each.name for each in fields(cast(Any, kind))} & {each.name for each in fields(asked)} - others.keys()
    return kind(**{name: getattr(asked, name) for name in names}, **others)


def with_option(spec: str, name: str, value: float | None) -> str:
    """Return an agent's name with one more option; as it is where there is no value."""
    if value is None:
        return spec
    if f",{name}=" in spec:
        raise UserError(f"agent {spec!r}: --{name} says it again")
    return spec + f",{name}={value:g}"  # which keeps the secrets in it


def estimate_json(estimate: Estimate) -> dict[str, float | int | None]:
    """Return value, interval and counts; nan becomes null."""
    return {
        "value": plain_number(estimate.mean),
        "low": plain_number(estimate.low),
        "high": plain_number(estimate.high),
        "n_problems": estimate.n_problems,
        "n_masked": estimate.n_masked,
    }


def plain_number(value: float) -> float | None:
    """Return the number, None where JSON has none for it."""
    return value if isfinite(value) else None
