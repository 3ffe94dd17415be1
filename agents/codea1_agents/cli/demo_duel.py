"""`codea1 demo duel`: a person is the tester, against a program that is wrong in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from codea1_agents.cli.console import Page, show_next
from codea1_agents.cli.options import Options
from codea1_agents.human import HumanAgent
from codea1_agents.play.person import (
    DUEL_TASK,
    MOST_POINTS,
    PersonGame,
    answers,
    describe_finding,
    explain_tests,
    missed_tests,
    remarks,
    sentence,
)
from codea1_agents.scripted.duels import N_DUELS, duel
from codea1_agents.scripted.fences import fenced_reply
from codea1_env.errors import UserError
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.rendering import duel_picture


@dataclass(frozen=True, slots=True, kw_only=True)
class DuelOptions(Options):
    """Be the tester: a program is wrong in one place; write asserts that it fails.

    The solution checks your answers first: a test with a wrong answer finds nothing. After each try without success
    there is a hint, and a point less to win. A try without a test that counts costs nothing.

    \b
    Example:
      codea1 demo duel
    """

    number: Annotated[int, Option(min=1, max=N_DUELS, help="Which duel.")] = 1


def run_duel(options: DuelOptions) -> None:
    """Play one duel.

    Raises:
        UserError: the input ended before anything was typed.
        SandboxError: the sandbox cannot be used at all.
    """
    page, chosen = Page(as_json=options.as_json), duel(options.number)
    human = HumanAgent()
    game = PersonGame(chosen.problem, "tester", lambda _: fenced_reply(chosen.program), hints=chosen.hints)
    page.say(DUEL_TASK)
    points = MOST_POINTS
    with page.apart():
        judged = _play_try(game, human)
        while (points := game.points) and not game.has_won:
            _tell(page, game, judged)
            try:
                judged = _play_try(game, human, is_again=True)
            except UserError:  # the input has ended
                points = 0
                break
    page.show(duel_picture(judged, width=page.width, reveals=True, is_brief=True))
    page.say(f"You have {'won' if game.has_won else 'lost'}: {answers(judged)}; {points} of {MOST_POINTS} points.")
    for missed in missed_tests(game):
        page.say(f"A test that finds it: {missed.test}. {missed.told}")
    page.finish(duel=options.number, problem=chosen.problem.id, points=points, most_points=MOST_POINTS)
    show_next(page, "duel", number=options.number % N_DUELS + 1)


def _tell(page: Page, game: PersonGame, judged: JudgedRound) -> None:
    """Print what a try without success has shown, line by line, and the hint."""
    page.say(sentence(describe_finding(game, judged)))
    for explained in explain_tests(game, judged):
        page.say(f"  {explained.test}")
        page.say(f"    {explained.told}")
    for line in remarks(game, judged):
        page.say(f"  {line}")
    if hint := game.hint():
        page.say(f"Hint: {hint}")


def _play_try(game: PersonGame, human: HumanAgent, *, is_again: bool = False) -> JudgedRound:
    """Return the round of one try."""
    turn = game.turn()
    return game.submit(human.act(turn.observation, turn.info, is_again=is_again))
