"""What `codea1 eval coder` and `codea1 eval tester` do."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from rich.text import Text

from codea1_agents.cli.console import tally
from codea1_agents.cli.evaluate import CoderOptions, TesterOptions
from codea1_agents.cli.evaluating import Bench, Keeping, bench, estimate_json, named_alike, with_option
from codea1_agents.cli.evaluating_selection import selection_json, show_selection
from codea1_agents.measure.coder import evaluate_coder, figures_of_coder
from codea1_agents.measure.records import CoderSample, TesterRecord
from codea1_agents.measure.tester import Mode, TesterTask, evaluate_tester
from codea1_agents.measure.tester_figures import figures_of_tester
from codea1_agents.statistics import Estimate
from codea1_env.errors import UnknownName
from codea1_env.rendering import harmless
from codea1_env.secret import read_secrets


def run_coder(asked: CoderOptions) -> None:
    """Evaluate a coder from its options to its figures.

    Raises:
        UserError: something asked for does not exist or cannot be written, or the coder failed.
        SandboxError: the sandbox cannot be used at all.
    """
    with bench(asked, without=asked.without) as room:
        spec = with_option(read_secrets(asked.agent), "temperature", asked.temperature)
        coder = room.asker(spec, "coder")
        problems = room.tested("a program")
        if len(problems) < len(room.problems):
            room.page.warn(f"{len(room.problems) - len(problems)} problems without golden tests are left out")
        settings = room.settings("coder", agent=spec, samples=asked.samples)
        keeping = Keeping(room, asked.out, settings, CoderSample, lambda each: (each.problem_id, each.sample))
        known = {(each.problem_id, each.sample) for each in keeping.records if _is_settled(each.masked)}
        batches = evaluate_coder(problems, coder, room.sandbox, samples=asked.samples, known=known)
        keeping.take(batches, len(problems) * asked.samples, partial(_tell_coder, room, spec, asked.samples))


def _is_settled(masked: str) -> bool:
    """A broken golden test stays broken; anything else that is masked may be had another time."""
    return masked in ("", "test")


def _tell_coder(room: Bench, spec: str, n_samples: int, records: list[CoderSample]) -> dict[str, Any]:
    found = figures_of_coder(records, seed=room.asked.seed)
    figures = {f"pass@{k}": estimate for k, estimate in found.pass_at.items()}
    figures[f"avg@{n_samples}"] = found.average
    _show(room, spec, found.n_problems, figures)
    room.page.say(f"samples: {tally(found.verdicts.items()) or 'none'}{_masked_sentence(found.n_masked)}")
    return {
        **{name: estimate_json(estimate) for name, estimate in figures.items()},
        "n_problems": found.n_problems,
        "n_samples": found.n_samples,
        "n_masked": found.n_masked,
        "verdicts": found.verdicts,
    }


def _show(room: Bench, spec: str, n_problems: int, figures: dict[str, Estimate]) -> None:
    room.page.show(Text(harmless(f"{spec} on {room.asked.problems}: {n_problems} problems"), style="bold"))
    room.show_figures("figure", figures)


def _masked_sentence(n_masked: dict[str, int]) -> str:
    told = ", ".join(f"{n} by the {reason}" for reason, n in n_masked.items())
    return f"; masked, in no figure above: {told}" if told else ""


def run_tester(asked: TesterOptions) -> None:
    """Evaluate a tester from its options to its figures.

    Raises:
        UserError: something asked for does not exist or cannot be written, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    if asked.mode not in list(Mode):
        raise UnknownName.of("mode", asked.mode, [each.value for each in Mode])
    candidates = asked.candidates if asked.coder else 0
    task = named_alike(TesterTask, asked, mode=Mode(asked.mode), max_mutants=asked.mutants, candidates=candidates)
    with bench(asked, without=asked.without) as room:
        spec = with_option(read_secrets(asked.agent), "temperature", asked.temperature)
        coder = asked.coder and read_secrets(asked.coder)
        tester = room.asker(spec, "tester")
        opponent = room.asker(coder, "coder") if coder else None
        settings = room.settings("tester", agent=spec, coder=coder, task=asdict(task))
        keeping = Keeping(room, asked.out, settings, TesterRecord, lambda each: each.problem_id)
        known = {each.problem_id for each in keeping.records if _is_settled(each.masked)}
        batches = evaluate_tester(room.problems, tester, room.sandbox, task, coder=opponent, known=known)
        keeping.take(batches, len(room.problems), partial(_tell_tester, room, spec, task.tests))


def _tell_tester(room: Bench, spec: str, n_tests: int, records: list[TesterRecord]) -> dict[str, Any]:
    found = figures_of_tester(records, tests=n_tests, seed=room.asked.seed)
    _show(room, spec, found.n_problems, found.figures)
    wrong = tally(found.faults.items()) or "none"
    room.page.say(f"tests that are not right: {wrong}{_masked_sentence(found.n_masked)}")
    if found.n_masked_mutants or found.n_without_coverage:
        room.page.say(
            f"not measured: {found.n_masked_mutants} mutants, the coverage of {found.n_without_coverage} problems"
        )
    if found.selection is not None:
        show_selection(room, found.selection)
    return {
        **{name: estimate_json(estimate) for name, estimate in found.figures.items()},
        "n_problems": found.n_problems,
        "n_masked": found.n_masked,
        "n_masked_mutants": found.n_masked_mutants,
        "n_without_coverage": found.n_without_coverage,
        "faults": found.faults,
        "selection": None if found.selection is None else selection_json(found.selection),
    }
