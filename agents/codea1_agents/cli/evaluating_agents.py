"""Runs `codea1 eval coder` and `codea1 eval tester`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from rich.text import Text

from codea1_agents.cli.console import counted, tally
from codea1_agents.cli.evaluate import CoderOptions, TesterOptions
from codea1_agents.cli.evaluating import EvalSession, RecordKeeper, eval_session, from_options, with_option
from codea1_agents.cli.evaluating_selection import selection_json, show_selection
from codea1_agents.measure.coder import evaluate_coder, figures_of_coder
from codea1_agents.measure.records import CoderSample, TesterRecord
from codea1_agents.measure.tester import Mode, TesterTask, evaluate_tester
from codea1_agents.measure.tester_figures import figures_of_tester
from codea1_agents.statistics import Estimate, estimate_document
from codea1_env.errors import UnknownName
from codea1_env.rendering import harmless
from codea1_env.secret import read_secrets


def run_coder(options: CoderOptions) -> None:
    """Evaluate a coder and print its figures.

    Raises:
        UserError: an option names something that does not exist, the folder cannot be written, or the coder failed.
        SandboxError: the sandbox cannot be used at all.
    """
    with eval_session(options, without=options.without) as session:
        spec = with_option(read_secrets(options.agent), "temperature", options.temperature)
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
    return {
        "figures": {name: estimate_document(estimate) for name, estimate in figures.items()},
        "n_problems": found.n_problems,
        "n_samples": found.n_samples,
        "n_masked": found.n_masked,
        "verdicts": found.verdicts,
    }


def _show(session: EvalSession, spec: str, n_problems: int, figures: dict[str, Estimate]) -> None:
    session.page.show(
        Text(harmless(f"{spec} on {session.options.problems}: {counted(n_problems, 'problem')}"), style="bold")
    )
    session.show_figures("figure", figures)


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
    candidates = options.candidates if options.coder else 0
    task = from_options(
        TesterTask, options, mode=Mode(options.mode), max_mutants=options.mutants, candidates=candidates
    )
    with eval_session(options, without=options.without) as session:
        spec = with_option(read_secrets(options.agent), "temperature", options.temperature)
        coder = options.coder and read_secrets(options.coder)
        tester = session.agent(spec, "tester")
        opponent = session.agent(coder, "coder") if coder else None
        settings = session.settings("tester", agent=spec, coder=coder, task=asdict(task))
        keeper = RecordKeeper(session, options.out, settings, TesterRecord, lambda each: each.problem_id)
        known = {each.problem_id for each in keeper.records if _is_settled(each.masked)}
        batches = evaluate_tester(session.problems, tester, session.sandbox, task, coder=opponent, known=known)
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
    if found.selection is not None:
        show_selection(session, found.selection)
    return {
        "figures": {name: estimate_document(estimate) for name, estimate in found.figures.items()},
        "n_problems": found.n_problems,
        "n_masked": found.n_masked,
        "n_masked_mutants": found.n_masked_mutants,
        "n_without_coverage": found.n_without_coverage,
        "faults": found.faults,
        "selection": None if found.selection is None else selection_json(found.selection),
    }
