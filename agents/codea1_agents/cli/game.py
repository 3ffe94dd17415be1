"""The options of `codea1 game ...`; `game_commands` and `game_questions` run its commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import Alpha, Limit, NoProgress, Options, Rules, Sandbox, output, seed_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(Options):
    """The source of the game, and the folder for pictures."""

    source: Annotated[
        str,
        Argument(
            help="Problems by name or path, a run folder, or a bank (a file ending in .bank.jsonl).",
            autocompletion=completing.sources,
        ),
    ] = "starter"
    limit: Limit = None
    sandbox: Sandbox = "local"
    out: Annotated[Path | None, output("Folder for pictures (SVG and PNG).", show_default="none")] = None
    quiet: NoProgress = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BankOptions(SourceOptions):
    """The options that define the game."""

    rules: Rules = "fixed"
    alpha: Alpha = None
    problem: Annotated[str | None, Option(help="Use only this problem.", show_default="all")] = None
    solution: Annotated[
        bool | None,
        Option(help="Whether the coder can choose the right program.", show_default="yes, except in a run's bank"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions(BankOptions):
    """Find an equilibrium of every problem's game, and its residual.

    In the matrix game, the tester does not see the program; the output also has the solution for a tester that does.

    \b
    Example:
      codea1 game solve starter --no-solution --problem starter/free_gaps -o pictures
    """

    save: Annotated[
        Path | None, Option(help="Also write the bank into this file (.bank.jsonl).", show_default="none")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicsOptions(BankOptions):
    """Simulate learning players, and show how exploitable they are over time.

    \b
    Example:
      codea1 game dynamics starter --no-solution --method replicator -o pictures
    """

    method: Annotated[str, Option(help="fictitious, regret or replicator.")] = "fictitious"
    steps: Annotated[int, Option(min=1, help="Steps in each problem's game.")] = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TabularOptions(Options):
    """Train Code-A1 and other systems in a tabular game, and print by how much Code-A1 leads.

    A program has a bug or none at each of four places. Half of the kinds of bugs are found by any input, the others by
    one trigger of V, drawn anew with each program. A tester that sees the program reads a bug with probability rho. The
    rewards, groups, advantages and the Mistake Book are those of training. Without --triggers and --reading: the
    regimes of the study, by default those of docs/tabular-game.md.

    \b
    Example:
      codea1 game tabular --seeds 6
      codea1 game tabular --study map --seeds 3 -o pictures
      codea1 game tabular --triggers 10 --reading 0.5 --alpha 0.1
    """

    study: Annotated[str, Option(help="Systems and regimes: tabular-game, causes, map, deep-rare or long.")] = (
        "tabular-game"
    )
    triggers: Annotated[list[int] | None, Option(min=1, help="Values of which one is the trigger (V).")] = None
    reading: Annotated[
        list[float] | None, Option(min=0, max=1, help="Probability that a tester reads a bug (rho).")
    ] = None
    rules: Rules = "fixed"
    alpha: Alpha = None
    right_naive: Annotated[float, Option(min=0, max=1, help="Share of right answers to naive tests (v).")] = 0.8
    right_aimed: Annotated[float, Option(min=0, max=1, help="The same of aimed tests (va).")] = 0.6
    steps: Annotated[int, Option(min=1, help="Steps of training.")] = 50
    seeds: Annotated[int, Option(min=1, help="Trainings per system.")] = 6
    out: Annotated[Path | None, output("Folder for the results, and the map's picture.", show_default="none")] = None
    quiet: NoProgress = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardsOptions(Options):
    """Train testers of the tabular game under several rewards, and print which of them aim and which of them lie.

    A test that is answered without care hits its aim and is hardly ever right. A star marks rewards under which the
    tester aims no less than under `release`, and is no less valid and careful, and the coder no worse, than under
    `fixed`.

    \b
    Example:
      codea1 game rewards --seeds 6
    """

    steps: Annotated[int, Option(min=1, help="Steps of training.")] = 50
    seeds: Annotated[int, Option(min=1, help="Trainings per world and reward.")] = 6
    out: Annotated[Path | None, output("Folder for rewards.json.", show_default="none")] = None
    quiet: NoProgress = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AimOptions(Options):
    """Say whether a tester gains by aiming at bugs, or retreats to safe inputs.

    \b
    Example:
      codea1 game aim --right-naive 0.8 --right-aimed 0.6 --kills-naive 0.1 --alpha 0.5 --book
    """

    right_naive: Annotated[float, Option(min=0, max=1, help="Share of right answers to naive tests (v).")]
    right_aimed: Annotated[float, Option(min=0, max=1, help="The same of aimed tests (va).")]
    kills_naive: Annotated[float, Option(min=0, max=1, help="How often a naive test fails the program (h).")]
    kills_aimed: Annotated[
        float | None, Option(min=0, max=1, help="How often an aimed test does (ha).", show_default="none")
    ] = None
    alpha: Annotated[float, Option(min=0, max=1, help="Weight of validity.")] = 0.5
    book: Annotated[bool, Option(help="Whether programs run replays of a Mistake Book.")] = False
    formula: Annotated[str, Option(help="Reward: fixed or paper.")] = "fixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsOptions(SourceOptions):
    """Compute the effects of alpha, the Mistake Book and zero-sum rewards: the tables of docs/game.md.

    \b
    Example:
      codea1 game questions starter -o docs/pictures
    """

    rounds: Annotated[int, Option(min=1, help="Rounds per problem with the Mistake Book.")] = 30
    seed: Annotated[int, seed_of("the random draws and the intervals")] = 0
