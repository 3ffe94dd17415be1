"""What `codea1 eval coder` and `codea1 eval tester` do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.text import Text

from codea1_agents.cli.console import estimate_cells, new_table
from codea1_agents.cli.evaluating import Asked, Bench, Keeping, bench, estimate_json, with_option
from codea1_agents.cli.evaluating_selection import selection_json, show_selection
from codea1_agents.evaluation.coder import evaluate_coder, figures_of_coder
from codea1_agents.evaluation.records import CoderSample, TesterRecord
from codea1_agents.evaluation.tester import Mode, TesterTask, evaluate_tester
from codea1_agents.evaluation.tester_figures import figures_of_tester
from codea1_agents.statistics import Estimate
from codea1_env.errors import UnknownName, UserError
from codea1_env.problems import Problem
from codea1_env.rendering import harmless
from codea1_env.secret import read_secrets


def run_coder(asked: Asked, agent: str, *, samples: int, temperature: float | None) -> None:
    """Evaluate a coder from its options to its figures.

    Raises:
        UserError: something asked for does not exist or cannot be written, or the coder failed.
        SandboxError: the sandbox cannot be used at all.
    """
    with bench(asked) as room:
        spec = with_option(read_secrets(agent), "temperature", temperature)
        coder = room.asker(spec, "coder")
        problems = tested_problems(room)
        settings = room.settings("coder", agent=spec, samples=samples)
        keeping = Keeping(room, settings, CoderSample, lambda each: (each.problem_id, each.sample))
        known = {(each.problem_id, each.sample) for each in keeping.records if _is_settled(each.masked)}
        batches = evaluate_coder(problems, coder, room.sandbox, samples=samples, known=known)

        def finish(records: list[CoderSample]) -> None:
            _tell_coder(room, keeping, records, spec, settings)

        keeping.take(batches, len(problems) * samples, finish)


def _is_settled(masked: str) -> bool:
    """A broken golden test stays broken; anything else that is masked may be had another time."""
    return masked in ("", "test")


def tested_problems(room: Bench) -> list[Problem]:
    """Return the problems that have golden tests.

    Raises:
        UserError: none has.
    """
    tested = [problem for problem in room.problems if problem.golden]
    if not tested:
        raise UserError(f"{room.asked.problems}: no problem has golden tests, by which a program could be judged")
    if len(tested) < len(room.problems):
        room.page.warn(f"{len(room.problems) - len(tested)} problems without golden tests are left out")
    return tested


def _tell_coder(
    room: Bench, keeping: Keeping[CoderSample], records: list[CoderSample], spec: str, settings: dict[str, Any]
) -> None:
    found = figures_of_coder(records, seed=room.asked.seed)
    figures = {f"pass@{k}": estimate for k, estimate in found.pass_at.items()}
    figures[f"avg@{settings['samples']}"] = found.average
    room.page.show(Text(harmless(f"{spec} on {room.asked.problems}: {found.n_problems} problems"), style="bold"))
    _show_figures(room, figures)
    ended = ", ".join(f"{n} {verdict.replace('_', ' ')}" for verdict, n in found.verdicts.items())
    room.page.say(f"samples: {ended or 'none'}{_masked_sentence(found.n_masked)}")
    data = {
        **{name: estimate_json(estimate) for name, estimate in figures.items()},
        "n_problems": found.n_problems,
        "n_samples": found.n_samples,
        "n_masked": found.n_masked,
        "verdicts": found.verdicts,
    }
    keeping.write(data)
    room.page.finish({"settings": settings, **data})


def _show_figures(room: Bench, figures: dict[str, Estimate]) -> None:
    rows = [(name, *estimate_cells(each)[:2], str(each.n_problems)) for name, each in figures.items()]
    room.page.show(new_table(("figure", "mean", "95 % interval", "problems"), rows, right=(1, 3)))


def _masked_sentence(n_masked: dict[str, int]) -> str:
    told = ", ".join(f"{n} by the {reason}" for reason, n in n_masked.items())
    return f"; masked, in no figure above: {told}" if told else ""


def run_tester(
    asked: Asked, agent: str, options: dict[str, Any], *, coder: str | None, temperature: float | None
) -> None:
    """Evaluate a tester from its options to its figures.

    Raises:
        UserError: something asked for does not exist or cannot be written, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    if options["mode"] not in list(Mode):
        raise UnknownName.of("mode", options["mode"], [each.value for each in Mode])
    task = TesterTask(
        tests=options["tests"],
        mode=Mode(options["mode"]),
        max_mutants=options["mutants"],
        candidates=options["candidates"] if coder else 0,
        seed=asked.seed,
    )
    with bench(asked) as room:
        spec, coder = with_option(read_secrets(agent), "temperature", temperature), coder and read_secrets(coder)
        tester = room.asker(spec, "tester")
        opponent = room.asker(coder, "coder") if coder else None
        settings = room.settings("tester", agent=spec, coder=coder, task=asdict(task))
        keeping = Keeping(room, settings, TesterRecord, lambda each: each.problem_id)
        known = {each.problem_id for each in keeping.records if _is_settled(each.masked)}
        batches = evaluate_tester(room.problems, tester, room.sandbox, task, coder=opponent, known=known)

        def finish(records: list[TesterRecord]) -> None:
            _tell_tester(room, keeping, records, spec, settings)

        keeping.take(batches, len(room.problems), finish)


def _tell_tester(
    room: Bench, keeping: Keeping[TesterRecord], records: list[TesterRecord], spec: str, settings: dict[str, Any]
) -> None:
    found = figures_of_tester(records, tests=settings["task"]["tests"], seed=room.asked.seed)
    room.page.show(Text(harmless(f"{spec} on {room.asked.problems}: {found.n_problems} problems"), style="bold"))
    _show_figures(room, found.figures)
    wrong = ", ".join(f"{n} {fault.replace('_', ' ')}" for fault, n in found.faults.items())
    room.page.say(f"tests that are not right: {wrong or 'none'}{_masked_sentence(found.n_masked)}")
    if found.n_masked_mutants or found.n_without_coverage:
        room.page.say(
            f"not measured: {found.n_masked_mutants} mutants, the coverage of {found.n_without_coverage} problems"
        )
    if found.selection is not None:
        show_selection(room, found.selection)
    data = {
        **{name: estimate_json(estimate) for name, estimate in found.figures.items()},
        "n_problems": found.n_problems,
        "n_masked": found.n_masked,
        "n_masked_mutants": found.n_masked_mutants,
        "n_without_coverage": found.n_without_coverage,
        "faults": found.faults,
        "selection": None if found.selection is None else selection_json(found.selection),
    }
    keeping.write(data)
    room.page.finish({"settings": settings, **data})
