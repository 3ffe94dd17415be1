"""`codea1 eval coder` and `codea1 eval tester`: the standard figures of one agent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any

from rich.text import Text
from typer import Option

from codea1_agents.cli.console import counted, tally
from codea1_agents.cli.eval_session import EvalSession, EvaluationOptions, RecordKeeper, eval_session, from_options
from codea1_agents.cli.options import agent_spec, how_many, n_tests, seed_of
from codea1_agents.evaluation.coder import evaluate_coder, figures_of_coder
from codea1_agents.evaluation.records import CoderSample, TesterRecord
from codea1_agents.evaluation.tester import Mode, TesterTask, evaluate_tester
from codea1_agents.evaluation.tester_figures import figures_of_tester
from codea1_agents.statistics import Estimate, estimate_document
from codea1_env.errors import UnknownName
from codea1_env.rendering import harmless

_Agent = Annotated[
    str, agent_spec("--agent", "An agent's name (see codea1 list agents) with its options, or module:attribute.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoderOptions(EvaluationOptions):
    """Measure a coder by golden tests: pass@k (unbiased) and avg@n, with intervals over problems.

    \b
    Example:
      codea1 eval coder --agent mutant,strength=0.5 --problems humaneval --samples 10
    """

    agent: _Agent
    samples: Annotated[int, how_many("--samples", "Replies per problem.")] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TesterOptions(EvaluationOptions):
    """Measure a tester on right programs, as in UnLeakedTestBench: validity, pass@k, mut@k, cov@k, Mul.

    Figures with "fixed" in their name are means over all problems; the others leave some problems out.

    \b
    Example:
      codea1 eval tester --agent boundary --problems starter --limit 10
    """

    agent: _Agent
    tests: Annotated[int, n_tests("K, tests per problem.")] = 5
    mode: Annotated[
        str, Option(help="queries (one test per reply, with the former tests in the prompt) or suite (all at once).")
    ] = "queries"
    base: Annotated[
        str,
        agent_spec(
            "--base", "A model whose answers to the tester's inputs are compared with the tester's (`answers`)."
        ),
    ] = ""
    mutants: Annotated[int, Option(min=0, help="At most this many mutants per solution; 0 for none.")] = 40
    seed: Annotated[int, seed_of("the agents, the sampling of mutants and the intervals")] = 0


def run_coder(options: CoderOptions) -> None:
    """Evaluate a coder and print its figures.

    Raises:
        UserError: an option names something that does not exist, the folder cannot be written, or the coder failed.
        SandboxError: the sandbox cannot be used at all.
    """
    with eval_session(options, without=options.without) as session:
        spec = options.agent
        coder = session.agent(spec, "coder")
        problems = session.tested("a program")
        if len(problems) < len(session.problems):
            session.page.warn(f"{len(session.problems) - len(problems)} problems without golden tests are left out")
        settings = session.settings("coder", agent=spec, samples=options.samples)
        keeper = RecordKeeper(session, options.out, settings, CoderSample, lambda each: (each.problem_id, each.sample))
        known = {(each.problem_id, each.sample) for each in keeper.records if _is_settled(each.masked)}
        batches = evaluate_coder(problems, coder, session.sandbox, samples=options.samples, known=known)
        keeper.take(batches, len(problems) * options.samples, partial(_coder_figures, session, spec, options.samples))


def _is_settled(masked: str) -> bool:
    """Whether a record is final: a broken golden test stays broken, but other masked records are requested again."""
    return masked in ("", "test")


def _coder_figures(session: EvalSession, spec: str, n_samples: int, records: list[CoderSample]) -> dict[str, Any]:
    found = figures_of_coder(records, seed=session.options.seed)
    figures = {f"pass@{k}": estimate for k, estimate in found.pass_at.items()}
    figures[f"avg@{n_samples}"] = found.average
    _show(session, spec, found.n_problems, figures)
    session.page.say(f"samples: {tally(found.verdicts.items()) or 'none'}{_masked_sentence(found.n_masked)}")
    return _document(figures, found, "n_problems", "n_samples", "n_masked", "verdicts")


def _show(session: EvalSession, spec: str, n_problems: int, figures: dict[str, Estimate]) -> None:
    session.page.show(
        Text(harmless(f"{spec} on {session.options.problems}: {counted(n_problems, 'problem')}"), style="bold")
    )
    session.show_figures("figure", figures)


def _document(figures: dict[str, Estimate], found: object, *facts: str) -> dict[str, Any]:
    documents = {name: estimate_document(estimate) for name, estimate in figures.items()}
    return {"figures": documents, **{name: getattr(found, name) for name in facts}}


def _masked_sentence(n_masked: dict[str, int]) -> str:
    counts = ", ".join(f"{n} by the {reason}" for reason, n in n_masked.items())
    return f"; masked, in no figure above: {counts}" if counts else ""


def run_tester(options: TesterOptions) -> None:
    """Evaluate a tester and print its figures.

    Raises:
        UserError: an option names something that does not exist, the folder cannot be written, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    if options.mode not in list(Mode):
        raise UnknownName.of("mode", options.mode, [each.value for each in Mode])
    task = from_options(TesterTask, options, mode=Mode(options.mode), max_mutants=options.mutants)
    with eval_session(options, without=options.without) as session:
        spec = options.agent
        tester = session.agent(spec, "tester")
        base = session.agent(options.base, "tester") if options.base else None
        compared = {"base": options.base} if options.base else {}
        settings = session.settings("tester", agent=spec, task=asdict(task), **compared)
        keeper = RecordKeeper(session, options.out, settings, TesterRecord, lambda each: each.problem_id)
        known = {each.problem_id for each in keeper.records if _is_settled(each.masked)}
        batches = evaluate_tester(session.problems, tester, session.sandbox, task, known=known, base=base)
        keeper.take(batches, len(session.problems), partial(_tester_figures, session, spec, task.tests))


def _tester_figures(session: EvalSession, spec: str, n_tests: int, records: list[TesterRecord]) -> dict[str, Any]:
    found = figures_of_tester(records, tests=n_tests, seed=session.options.seed)
    _show(session, spec, found.n_problems, found.figures)
    wrong = tally(found.faults.items()) or "none"
    session.page.say(f"tests that are not right: {wrong}{_masked_sentence(found.n_masked)}")
    if found.n_masked_mutants or found.n_without_coverage:
        session.page.say(
            f"not measured: {found.n_masked_mutants} mutants, the coverage of {found.n_without_coverage} problems"
        )
    facts = ("n_problems", "n_masked", "n_masked_mutants", "n_without_coverage", "faults")
    return _document(found.figures, found, *facts)
