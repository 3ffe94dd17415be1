"""`codea1 game ...`: the options. What they do: `game_commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="The game as a matrix: equilibria, dynamics, and what follows from them.")

_Source = Annotated[
    str, typer.Argument(help="Problems by name or path, a run folder, or a bank (a file ending in .bank.jsonl).")
]
_Rules = Annotated[str, typer.Option("--rules", "--preset", help="Preset of the rules.")]
_Alpha = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the preset's"),
]
_Limit = Annotated[int | None, typer.Option(min=1, help="Only so many problems, from the front.", show_default="all")]
_Problem = Annotated[str | None, typer.Option(help="Only this problem.", show_default="all")]
_Solution = Annotated[
    bool | None,
    typer.Option(help="Whether the coder can choose the right program.", show_default="yes, but in a run's bank"),
]
_Sandbox = Annotated[str, typer.Option(help="Where programs run.")]
_Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder for pictures (SVG and PNG).", show_default="none")
]


@app.command()
def solve(
    source: _Source = "starter",
    rules: _Rules = "fixed",
    alpha: _Alpha = None,
    limit: _Limit = None,
    problem: _Problem = None,
    solution: _Solution = None,
    save: Annotated[
        Path | None, typer.Option(help="Also write the bank into this file (.bank.jsonl).", show_default="none")
    ] = None,
    sandbox: _Sandbox = "local",
    out: _Out = None,
    as_json: Json = False,
) -> None:
    """Find an equilibrium of every problem's game, and how exact it is.

    The tester does not see the program (matrix game); the solution for a tester that does stands beside it.

    \b
    Example:
      codea1 game solve starter --no-solution --problem starter/free_gaps -o pictures
    """
    from codea1_agents.cli.game_commands import Asked, solve_game  # noqa: PLC0415  heavy

    asked = Asked(source, rules, alpha, limit, problem, solution, sandbox)
    solve_game(asked, save=save, out=out, as_json=as_json)


@app.command()
def dynamics(
    source: _Source = "starter",
    method: Annotated[str, typer.Option(help="fictitious, regret or replicator.")] = "fictitious",
    steps: Annotated[int, typer.Option(min=1, help="Of each problem's game.")] = 10_000,
    rules: _Rules = "fixed",
    alpha: _Alpha = None,
    limit: _Limit = None,
    problem: _Problem = None,
    solution: _Solution = None,
    sandbox: _Sandbox = "local",
    out: _Out = None,
    as_json: Json = False,
) -> None:
    """Follow players who learn, and tell how exploitable they are over time.

    \b
    Example:
      codea1 game dynamics starter --no-solution --method replicator -o pictures
    """
    from codea1_agents.cli.game_commands import Asked, follow_dynamics  # noqa: PLC0415  heavy

    asked = Asked(source, rules, alpha, limit, problem, solution, sandbox)
    follow_dynamics(asked, method=method, steps=steps, out=out, as_json=as_json)


@app.command()
def questions(
    source: _Source = "starter",
    limit: _Limit = None,
    rounds: Annotated[int, typer.Option(min=1, help="With the Mistake Book, per problem.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws and the intervals.")] = 0,
    sandbox: _Sandbox = "local",
    out: _Out = None,
    as_json: Json = False,
) -> None:
    """Compute what alpha, the Mistake Book and zero-sum rewards change: the tables of docs/game.md.

    \b
    Example:
      codea1 game questions starter -o docs/pictures
    """
    from codea1_agents.cli.game_questions import answer_questions  # noqa: PLC0415  heavy

    answer_questions(source, limit=limit, rounds=rounds, seed=seed, sandbox=sandbox, out=out, as_json=as_json)
