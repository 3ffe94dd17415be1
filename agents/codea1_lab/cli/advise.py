"""`codea1 advise`: which tests a training of a coder should have, by what they find for their cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isfinite, isinf, isnan, nan
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

from typer import Option

from codea1_agents.cli.console import Page, new_table, pluralize, problems_document, show_next_line
from codea1_agents.cli.eval_session import EvalSession, eval_session
from codea1_agents.cli.options import Alpha, SessionOptions, agent_spec, how_many, n_suites, n_tests
from codea1_agents.cli.progress import Progress
from codea1_agents.scripted.signatures import interface_of_problem
from codea1_agents.statistics import Estimate, estimate_document, json_number
from codea1_env.errors import UserError
from codea1_env.rules.rewards import alpha_with_book
from codea1_env.rules.ruleset import preset
from codea1_lab.advice import TRAINED_COST, Advice, Choice, Measurements, Sizes, TesterFigures, advise, measure_programs

_WIDTH, _INDENT = 80, 11
_FRESH = "fuzz"
_BASE = Path("models/tiny")  # which the presets train


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseOptions(SessionOptions):
    """Say what is worth its cost beside golden tests: nothing, fresh inputs, a frozen tester or a trained one.

    A coder writes programs. Fresh inputs, which the solution answers, and a tester's suites are compared by how many of
    the programs that pass the golden tests they find wrong, for what they cost. Without a tester, the choice is between
    nothing and fresh inputs.

    \b
    Example:
      codea1 advise --problems starter --coder mutant --tester boundary
    """

    coder: Annotated[str, agent_spec("--coder", "Agent that writes the programs (see codea1 list agents).")]
    tester: Annotated[
        str, agent_spec("--tester", "Agent that writes a suite for each program it sees.", show_default="none")
    ] = ""
    samples: Annotated[int, how_many("--samples", "Programs per problem.")] = 4
    inputs: Annotated[int, Option(min=1, max=1000, help="Fresh inputs per problem.")] = 16
    suites: Annotated[int, n_suites("The tester's suites per program; two or more also show how much it misses.")] = 2
    tests: Annotated[int, n_tests()] = preset("fixed").tests_per_suite
    alpha: Alpha = None
    ratio: Annotated[
        float | None,
        Option(
            min=0.01,
            help="Cost of a step with the frozen tester, in that of one with fresh inputs.",
            show_default="measured, without learning",
        ),
    ] = None


def run_advise(options: AdviseOptions) -> None:
    """Measure, and print the advice with its reasons on one page.

    Raises:
        UserError: an option names something that does not exist, an agent failed, or there is too little to compare.
        SandboxError: the sandbox cannot be used at all.
    """
    with eval_session(options) as session:
        known = session.problems.select(p.id for p in session.problems if interface_of_problem(p) is not None)
        if len(known) < len(session.problems):
            left_out = pluralize(len(session.problems) - len(known), "problem")
            session.page.note(f"{left_out} left out: neither signature nor examples show what inputs look like")
        if len(known) < 2:
            raise UserError(f"{options.problems}: expected at least 2 problems with known inputs, got {len(known)}")
        session.problems = known
        runs = _measure(options, session)
        if not runs.programs:
            raise UserError(
                f"nothing to compare: {runs.n_broken} programs do not load, {runs.n_masked} have no verdict"
            )
        base = preset("fixed").reward.alpha if options.alpha is None else options.alpha
        ratio = (options.ratio or runs.ratio) if options.tester else None
        advice = advise(runs, ratio=ratio, alpha=alpha_with_book(base), seed=options.seed)
        _show(options, session, runs, advice)
        session.page.finish(**_document(options, session, runs, advice))


def _measure(options: AdviseOptions, session: EvalSession) -> Measurements:
    coder, fresh = session.agent(options.coder, "coder"), session.agent(_FRESH, "tester")
    tester = session.agent(options.tester, "tester") if options.tester else None
    sizes = Sizes(options.samples, options.inputs, options.suites, options.tests)
    with Progress("testing", len(session.problems), session.page) as progress:
        progress.running = session.running
        return measure_programs(session.problems, coder, fresh, tester, session.sandbox, sizes, progress.reach)


_CONCLUSIONS = {
    Choice.NONE: "Golden tests alone: nothing else is shown to find what they miss.",
    Choice.FRESH: "Fresh inputs, drawn anew each step and answered by the solution.",
    Choice.FROZEN: "This tester, frozen: it finds more for its cost than fresh inputs.",
    Choice.TRAINED: "Train this tester: frozen, it already finds more for its cost than fresh inputs.",
}
_PRESETS = {
    Choice.NONE: "golden",
    Choice.FRESH: "fresh-16",
    Choice.FROZEN: "frozen-tester",
    Choice.TRAINED: "code-a1",
}


def _show(options: AdviseOptions, session: EvalSession, runs: Measurements, advice: Advice) -> None:
    page, accepted = session.page, [program for program in runs.programs if program.is_accepted]
    page.say(_CONCLUSIONS[advice.choice])
    training = f"codea1 train {_PRESETS[advice.choice]}"
    show_next_line(page, training if _BASE.exists() else f"codea1 pretrain && {training}")
    heads = ("beside golden tests", "finds wrong, %", "95 % interval", "cost", "per cost")
    page.show(new_table(heads, list(_rows(options, runs, advice)), right=(1, 3, 4), whole=(2, 3, 4)))
    rejected = [program for program in runs.programs if not program.is_accepted]
    _explain(
        page,
        "programs",
        f"{len(session.problems) * options.samples} by the coder for {len(session.problems)} problems;"
        f" {runs.n_broken} do not load, {len(accepted)} pass the golden tests. Shares are of these, as means"
        f" over problems.{_faults(session, runs)}",
    )
    _explain(
        page,
        "fresh",
        f"They find {sum(program.fresh_finds for program in accepted)} wrong. They accept"
        f" {sum(not program.fresh_finds for program in rejected)} of {len(rejected)} that golden tests reject:"
        f" the preset {_PRESETS[Choice.FRESH]} trains without golden tests.",
    )
    if advice.tester is not None:
        _explain_tester(options, page, runs, advice.tester)
    more = "; what the tester would find after training" if advice.tester else ""
    _explain(
        page, "not known", f"Mistakes that no test here shows{more}; how much a coder gains if more of them are found."
    )


def _explain(page: Page, subject: str, text: str) -> None:
    width = min(_WIDTH, page.width)
    for line in wrap(text, width, initial_indent=f"{subject:<{_INDENT}}", subsequent_indent=" " * _INDENT):
        page.say(line)


def _faults(session: EvalSession, runs: Measurements) -> str:
    """Return what could not be measured, as sentences after a space."""
    with_inputs = {program.problem_id for program in runs.programs if program.fresh}
    counts = {
        "problems have no golden tests, so all of their programs pass.": sum(
            not problem.golden for problem in session.problems
        ),
        "problems have no fresh input with an answer.": len({p.problem_id for p in runs.programs} - with_inputs),
        "programs without a verdict are left out.": runs.n_masked,
    }
    return "".join(f" {number} {text}" for text, number in counts.items() if number)


def _rows(options: AdviseOptions, runs: Measurements, advice: Advice) -> Iterator[tuple[str, ...]]:
    seconds = runs.seconds
    yield "nothing", "0.0", "", f"{seconds.programs / ((seconds.programs + seconds.fresh) or 1):.2f}", "0.0"
    yield _row(f"{options.inputs} fresh inputs", advice.fresh, 1.0)
    if advice.tester is not None:
        yield _row("this tester, frozen", advice.tester.finds, advice.tester.ratio)
        yield "this tester, trained", "not measured", "", f"{advice.tester.ratio * TRAINED_COST:.2f}", ""


def _row(name: str, share: Estimate, cost: float) -> tuple[str, ...]:
    return name, _percent(share.mean), _interval(share), f"{cost:.2f}", _percent(share.mean / (cost or nan))


def _explain_tester(options: AdviseOptions, page: Page, runs: Measurements, of: TesterFigures) -> None:
    """Print why the tester pays or does not, frozen and trained."""
    spent, aim, lead = runs.seconds, of.aim, of.lead
    outcome = "leads" if lead.low > 0 else "trails" if lead.high < 0 else "is not shown to lead"
    points, interval = _percent(lead.mean), f" ({_interval(lead)})"
    ends = {"0.0": f"no lead{interval}", "-": "no program passes the golden tests"}
    text = f"At {of.ratio:.2f} times the cost it must find {of.ratio:.2f} times as many as fresh inputs."
    text += f" It {outcome}: {ends.get(points, f'by {points} points{interval}')}."
    if not options.ratio:
        text += (
            f" The cost is processor time measured here: {spent.programs:.1f} s for programs and golden tests,"
            f" {spent.fresh:.1f} s for fresh inputs, {spent.suites / options.suites:.1f} s for a suite per program."
            " Learning, GPUs and servers are not in it: state that of your trainings by --ratio."
        )
    _explain(page, "frozen", text)
    least = "no test that a program fails has a right answer, so aiming earns nothing."
    if not isinf(aim.least):
        least = (
            f"that must be {_percent(aim.least)} % for aiming to pay ({_percent(aim.kills_naive)} % of fresh inputs"
            f" fail; answers are right in {_percent(aim.right_aimed)} % of its tests that fail and in"
            f" {_percent(aim.right_naive)} % of others), so by the criterion it {'aims' if aim.pays else 'retreats'}."
        )
    _explain(
        page,
        "trained",
        f"{_percent(aim.kills)} % of its tests fail a program; {least} A suite finds {_percent(of.seen.mean)} %"
        f" ({_interval(of.seen)}) of programs known to be wrong; learning costs {TRAINED_COST} times as much, which"
        f" it cannot repay above {_percent(1 / TRAINED_COST)} %.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:z.1f}" if isfinite(share) else "-"


def _interval(share: Estimate) -> str:
    return "" if isnan(share.low) else f"{_percent(share.low)} to {_percent(share.high)}"


def _document(options: AdviseOptions, session: EvalSession, runs: Measurements, advice: Advice) -> dict[str, Any]:
    of = advice.tester
    figures = {"fresh": advice.fresh} | ({} if of is None else {"finds": of.finds, "lead": of.lead, "seen": of.seen})
    return {
        "problems": problems_document(options.problems, session.problems),
        "seed": options.seed,
        "coder": options.coder,
        "tester": options.tester or None,
        **asdict(runs.sizes),
        "advice": advice.choice.value,
        "figures": {name: estimate_document(each) for name, each in figures.items()},
        "n_programs": len(runs.programs),
        "n_accepted": sum(program.is_accepted for program in runs.programs),
        "n_broken": runs.n_broken,
        "n_masked": runs.n_masked,
        "aim": None if of is None else {name: json_number(value) for name, value in asdict(of.aim).items()},
        "ratio": None if of is None else json_number(of.ratio),
        "measured": None if options.ratio else asdict(runs.seconds),
    }
