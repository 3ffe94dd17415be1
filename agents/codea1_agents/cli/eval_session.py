"""The session that the evaluation commands share: problems, agents, stored records, and the reaction to Ctrl-C."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import typer
from pydantic import BaseModel
from typer import Option

from codea1_agents.checks.sandbox_check import promise_of
from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, estimate_cells, new_table, problems_document, show_next_line
from codea1_agents.cli.options import Problems, SessionOptions, output, retype
from codea1_agents.cli.progress import Progress
from codea1_agents.evaluation.folder import EvaluationFolder
from codea1_agents.models.completions import Usage
from codea1_agents.models.gguf_files import sources_of
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.statistics import Estimate
from codea1_env.agent import AgentContext, Role, agent_name, load_agent
from codea1_env.errors import AgentUnavailable, CodeA1Error, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.problems import DEFAULT_SOURCE, Problem, ProblemSet, load_problems
from codea1_env.runs.config import problems_digest
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_env.sandbox.local import LocalSandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions(SessionOptions):
    """The options of the commands that can store their records in a folder."""

    problems: Problems = DEFAULT_SOURCE
    without: Annotated[str, Option(help="Ids of problems to leave out, separated by commas.")] = ""
    out: Annotated[
        Path | None, output("Folder for records and figures; the same command continues in it.", show_default="none")
    ] = None


_YARDSTICKS = {"coder": ("mutant", "mutant,strength=0.3"), "tester": ("fuzz", "boundary")}
"""Agents to compare others with, by kind of evaluation."""

_R = TypeVar("_R", bound=BaseModel)


@dataclass(slots=True)
class EvalSession:
    """The problems, the sandbox and the output of one evaluation command."""

    options: SessionOptions
    page: Page
    problems: ProblemSet
    sandbox: Sandbox
    stack: ExitStack
    agents: list[NamedAgent] = field(default_factory=list)
    gguf: dict[str, dict[str, str]] = field(default_factory=dict)
    """The sources from which models of agents were converted, as `sources_of`."""

    def agent(self, spec: str, role: Role, *, called: str = "") -> NamedAgent:
        """Return the agent of that name; the session closes it.

        Args:
            spec: the name.
            role: of the agent.
            called: in the settings, if not by its role.

        Raises:
            UserError: the agent does not exist, or plays the other role.
        """
        context = AgentContext(self.problems, self.sandbox, self.options.seed)
        with Progress(f"loading {role} {spec}", None, self.page):
            inner = load_agent(spec, context, role=role)
        agent = NamedAgent(inner, f"{role} {agent_name(spec, inner)}", seed=self.options.seed)
        self.stack.callback(agent.close)
        self.agents.append(agent)
        self.gguf |= sources_of({called or role: inner})
        return agent

    def running(self) -> tuple[str, float] | None:
        """Return what an agent is asked, else whose program has been running for longest; and since when."""
        asked = next(filter(None, (agent.asked for agent in self.agents)), None)
        return asked or (self.sandbox.oldest() if isinstance(self.sandbox, LocalSandbox) else None)

    def usage_since(self, begun: float) -> str:
        """Return what models have written since a time (`time.monotonic`); empty without a reply of one."""
        usages = [each for agent in self.agents if isinstance(each := getattr(agent.inner, "usage", None), Usage)]
        n, tokens = sum(usage.completions for usage in usages), sum(usage.completion_tokens for usage in usages)
        speed = f"{tokens / (time.monotonic() - begun):.0f} tokens/s"
        return f"{n} replies, {sum(each.cut for each in usages)} cut, {speed}" if n else ""

    def problems_with_tests(self, what: str) -> list[Problem]:
        """Return the problems that have golden tests.

        Raises:
            UserError: no problem has any, so `what` cannot be judged.
        """
        problems = [problem for problem in self.problems if problem.golden]
        if not problems:
            raise UserError(f"{self.options.problems}: no problem has golden tests that could judge {what}")
        return problems

    def settings(self, kind: str, **options: Any) -> dict[str, Any]:
        """Return the settings that decide the records of an evaluation."""
        digest = problems_digest(self.problems)
        return {
            "kind": kind,
            "schema_version": 1,
            "judge_version": JUDGE_VERSION,
            "problems": {"digest": digest, "n": len(self.problems)},
            "seed": self.options.seed,
            **({"gguf": self.gguf} if self.gguf else {}),
            **options,
        }

    def show_figures(self, heading: str, figures: Mapping[str, Estimate]) -> None:
        """Print estimates by name as a table."""
        rows = [(name, *estimate_cells(each)[:2], str(each.n_problems)) for name, each in figures.items()]
        self.page.show(new_table((heading, "mean", "95 % interval", "problems"), rows, right=(1, 3)))


@contextmanager
def eval_session(options: SessionOptions, *, without: str = "") -> Iterator[EvalSession]:
    """Yield a session; inside the block, what other code prints goes to stderr.

    Args:
        options: as given to the command.
        without: ids of problems to leave out, separated by commas.

    Raises:
        UserError: the problem source, the sandbox or a problem to leave out does not exist.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    with Progress("loading problems", None, page):
        problems = load_problems(options.problems, limit=options.limit)
    left_out = {problems.by_id(name.strip()).id for name in without.split(",") if name.strip()}
    if left_out:
        problems = problems.select(problem.id for problem in problems if problem.id not in left_out)
    page.note_skipped(problems.skipped)
    with page.apart(), closing(load_sandbox(options.sandbox)) as sandbox, ExitStack() as stack:
        page.warn_if_weak(promise_of(sandbox))
        yield EvalSession(options, page, problems, sandbox, stack)


class RecordKeeper(Generic[_R]):
    """Keeps the records of one evaluation in memory and, if there is one, in its folder.

    A later record of the same key replaces an earlier one: a continued evaluation requests masked records again.
    """

    def __init__(
        self,
        session: EvalSession,
        out: Path | None,
        settings: Mapping[str, Any],
        model: type[_R],
        key: Callable[[_R], Any],
    ) -> None:
        self._session, self._settings, self._key = session, settings, key
        self._folder = None if out is None else session.stack.enter_context(EvaluationFolder(out, settings, model))
        self._records = {} if self._folder is None else {key(record): record for record in self._folder.known}

    @property
    def records(self) -> list[_R]:
        """All records, each key once."""
        return list(self._records.values())

    def take(
        self, batches: Iterator[Sequence[_R]], total: int, figures: Callable[[list[_R]], Mapping[str, Any]]
    ) -> None:
        """Store all batches, then print and store the figures of the records so far, even after an early end.

        Args:
            batches: yields records as they are judged.
            total: number of records of a complete evaluation.
            figures: prints the figures of all records and returns them as plain data.

        Raises:
            typer.Exit: interrupted (130).
            AgentUnavailable: an agent was unavailable so often that the evaluation ended, or for all of it.
        """
        page = self._session.page
        try:
            with Progress("evaluating", total, page, done=len(self._records)) as progress:
                progress.running = self._session.running
                progress.facts = partial(self._session.usage_since, time.monotonic())
                for batch in batches:
                    self._add(batch)
                    progress.reach(len(self._records), total)
        except KeyboardInterrupt:
            self._finish(figures(self.records))
            page.note(f"interrupted after {len(self._records)} of {total}{self._how_to_continue()}", even_if_quiet=True)
            raise typer.Exit(INTERRUPTED) from None
        except CodeA1Error:
            page.note(f"{len(self._records)} of {total} done{self._how_to_continue()}", even_if_quiet=True)
            raise
        self._finish(figures(self.records))
        why = "".join(f"; {agent.why_missing}" for agent in self._session.agents if agent.why_missing)
        if len(self._records) < total:
            raise AgentUnavailable(
                f"an agent was unavailable many times in a row, so {total - len(self._records)} of {total} were not"
                f" requested{why}{self._how_to_continue()}"
            )
        if all(getattr(record, "masked", "") == "agent" for record in self._records.values()):
            raise AgentUnavailable(f"an agent was unavailable for all of {total}{why}{self._how_to_continue()}")
        if why:
            page.warn(f"some replies are missing{why}")
        if self._settings["kind"] in _YARDSTICKS:  # two selections cannot be compared
            show_next_line(page, self._next_step())

    def _next_step(self) -> str:
        """Return the same command with a folder, or if it had one, with a scripted agent and what compares the two."""
        kind, folder = self._settings["kind"], None if self._folder is None else self._folder.path
        out = Path("evals") / kind if folder is None else folder.with_name(f"{folder.name}-other")
        while out.exists():
            out = out.with_name(f"{out.name}-2")
        if folder is None:
            return retype(f"codea1 eval {kind}", self._session.options, out=out)
        agent = next(name for name in _YARDSTICKS[kind] if name != self._settings["agent"])
        kept = {**self._settings, **self._settings.get("task", {})}  # what a file of generations has decided
        mode = "suite" if kept.get("mode") == "suite" else ""
        changes = {"generations": None, "base": "", "samples": kept.get("samples"), "mode": mode}
        same = retype(f"codea1 eval {kind}", self._session.options, out=out, agent=agent, **changes)
        return f"{same} && {shlex.join(['codea1', 'eval', 'compare', str(out), str(folder)])}"

    def _finish(self, figures: Mapping[str, Any]) -> None:
        session, out = self._session, None
        if self._folder is not None:
            self._folder.write_figures(figures)
            out = str(self._folder.path)
            session.page.say(f"folder: {out}")
        problems = problems_document(session.options.problems, session.problems)
        session.page.finish(problems=problems, seed=self._settings["seed"], out=out, settings=self._settings, **figures)

    def _add(self, batch: Sequence[_R]) -> None:
        if self._folder is not None:
            self._folder.append(batch)
        self._records.update((self._key(record), record) for record in batch)

    def _how_to_continue(self) -> str:
        return "; the same command continues" if self._folder is not None else "; nothing is stored without --out"
