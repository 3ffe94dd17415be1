"""`codea1 demo duel`: a person is the tester, against a program that is wrong in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import typer
from typer import Option

from codea1_agents.cli.boundary import INTERRUPTED
from codea1_agents.cli.console import Page, counted, show_next
from codea1_agents.cli.options import Options
from codea1_agents.human import HumanAgent
from codea1_agents.scripted.duels import N_DUELS, Duel, duel
from codea1_agents.scripted.fences import fenced
from codea1_env import code_a1_v0
from codea1_env.errors import UserError
from codea1_env.facts.verdicts import SuiteReport
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems import ProblemSet
from codea1_env.rendering import duel_picture
from codea1_env.rules.reward_parts import n_credited, n_right, n_written
from codea1_env.rules.ruleset import BookRules, BookUpdate, preset


@dataclass(frozen=True, slots=True, kw_only=True)
class DuelOptions(Options):
    """Be the tester: a program is wrong in one place; write asserts that it fails.

    The solution checks your answers first: a test with a wrong answer finds nothing. After each try without success
    there is a hint, and a point less to win.

    \b
    Example:
      codea1 demo duel
    """

    number: Annotated[int, Option(min=1, max=N_DUELS, help="Which duel.")] = 1


_RULES = replace(preset("fixed"), book=BookRules(update=BookUpdate.OFF, n_replayed=0))  # each try is judged alone
_TASK = "A program for this problem is wrong in one place. Write asserts that it fails and a right program passes."


def run_duel(options: DuelOptions) -> None:
    """Play one duel.

    Raises:
        UserError: the input ended before anything was typed.
        SandboxError: the sandbox cannot be used at all.
        typer.Exit: interrupted (130).
    """
    page, chosen = Page(as_json=options.as_json), duel(options.number)
    human, hints = HumanAgent(), iter(chosen.hints)
    page.say(_TASK)
    points = 1 + len(chosen.hints)
    try:
        with page.apart(), code_a1_v0.env(ProblemSet("duels", (chosen.problem,)), rules=_RULES) as env:
            judged = _tried(env, chosen, human)
            while points and not n_credited(_suite(judged).cases):
                points -= 1
                found = "a test with a wrong answer" if _suite(judged).beats else "no test"
                page.say(f"{_answers(judged)}; {found} fails the program.")
                if points:
                    page.say(f"Hint: {next(hints)}")
                    try:
                        judged = _tried(env, chosen, human)
                    except UserError:  # the input has ended
                        points = 0
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    page.show(duel_picture(judged, width=page.width, reveals=True))
    page.say(f"{_answers(judged)}; {points} of {counted(1 + len(chosen.hints), 'point')}.")
    page.finish(duel=options.number, problem=chosen.problem.id, points=points, most_points=1 + len(chosen.hints))
    show_next(page, "duel", number=options.number % N_DUELS + 1)


def _tried(env: code_a1_v0.raw_env, chosen: Duel, human: HumanAgent) -> JudgedRound:
    """Return the round of one try."""
    env.reset()
    env.step(fenced(chosen.program))
    observation, *_, info = env.last()
    env.step(human.act(observation, info))
    judged = env.unwrapped.last_round
    assert isinstance(judged, JudgedRound)
    return judged


def _suite(judged: JudgedRound) -> SuiteReport:
    return judged.report.candidates[0].suites[0]


def _answers(judged: JudgedRound) -> str:
    suite = _suite(judged)
    return f"{n_right(suite.cases)} of {n_written(suite)} answers right"
