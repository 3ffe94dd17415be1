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
class QuestionsOptions(SourceOptions):
    """Compute the effects of alpha, the Mistake Book and zero-sum rewards: the tables of docs/game.md.

    \b
    Example:
      codea1 game questions starter -o docs/pictures
    """

    rounds: Annotated[int, Option(min=1, help="Rounds per problem with the Mistake Book.")] = 30
    seed: Annotated[int, seed_of("the random draws and the intervals")] = 0
