"""`codea1 game ...`: the options. What they do: `game_commands`, `game_questions`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import Alpha, Limit, Options, Rules, Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(Options):
    """Whose game is meant, and where pictures go."""

    source: Annotated[
        str, Argument(help="Problems by name or path, a run folder, or a bank (a file ending in .bank.jsonl).")
    ] = "starter"
    limit: Limit = None
    sandbox: Sandbox = "local"
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder for pictures (SVG and PNG).", show_default="none")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BankOptions(SourceOptions):
    """Which game is meant."""

    rules: Rules = "fixed"
    alpha: Alpha = None
    problem: Annotated[str | None, Option(help="Only this problem.", show_default="all")] = None
    solution: Annotated[
        bool | None,
        Option(help="Whether the coder can choose the right program.", show_default="yes, but in a run's bank"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions(BankOptions):
    """Find an equilibrium of every problem's game, and how exact it is.

    The tester does not see the program (matrix game); the solution for a tester that does stands beside it.

    \b
    Example:
      codea1 game solve starter --no-solution --problem starter/free_gaps -o pictures
    """

    save: Annotated[
        Path | None, Option(help="Also write the bank into this file (.bank.jsonl).", show_default="none")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicsOptions(BankOptions):
    """Follow players who learn, and tell how exploitable they are over time.

    \b
    Example:
      codea1 game dynamics starter --no-solution --method replicator -o pictures
    """

    method: Annotated[str, Option(help="fictitious, regret or replicator.")] = "fictitious"
    steps: Annotated[int, Option(min=1, help="Of each problem's game.")] = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsOptions(SourceOptions):
    """Compute what alpha, the Mistake Book and zero-sum rewards change: the tables of docs/game.md.

    \b
    Example:
      codea1 game questions starter -o docs/pictures
    """

    rounds: Annotated[int, Option(min=1, help="With the Mistake Book, per problem.")] = 30
    seed: Annotated[int, Option(min=0, help="Of the draws and the intervals.")] = 0
