"""`codea1 eval ...`: the options. What they do: `evaluating`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="What agents are worth, in numbers that the field knows.")

_Agent = Annotated[
    str,
    typer.Option(help="A name (see codea1 agents) with options behind it, or module:attribute."),
]
_Problems = Annotated[str, typer.Option(help="Source by name or path.")]
_Seed = Annotated[int, typer.Option(min=0, help="Of the agents, the draw of mutants and the intervals.")]
_Temperature = Annotated[
    float | None, typer.Option(min=0, help="The agent's option of that name.", show_default="the agent's own")
]
_Sandbox = Annotated[str, typer.Option(help="Where programs run.")]
_Limit = Annotated[int | None, typer.Option(min=1, help="Only so many problems, from the front.", show_default="all")]
_Without = Annotated[str, typer.Option(help="Problems to leave out, by id, with commas between them.")]
_Out = Annotated[
    Path | None,
    typer.Option(help="Folder of records and figures; the same command goes on there.", show_default="none"),
]


@app.command("coder")
def measure_coder(
    agent: _Agent,
    problems: _Problems = "humaneval",
    samples: Annotated[int, typer.Option("--samples", "-n", min=1, help="Replies per problem.")] = 1,
    temperature: _Temperature = None,
    seed: _Seed = 0,
    sandbox: _Sandbox = "local",
    limit: _Limit = None,
    without: _Without = "",
    out: _Out = None,
    as_json: Json = False,
) -> None:
    """Measure a coder: pass@k (unbiased) and avg@n by the problems' golden tests, with intervals over problems.

    \b
    Example:
      codea1 eval coder --agent mutant,strength=0.5 --problems humaneval --samples 10
    """
    from codea1_agents.cli.evaluating import Asked  # noqa: PLC0415  heavy
    from codea1_agents.cli.evaluating_agents import run_coder  # noqa: PLC0415  heavy

    asked = Asked(problems=problems, seed=seed, sandbox=sandbox, limit=limit, without=without, out=out, as_json=as_json)
    run_coder(asked, agent, samples=samples, temperature=temperature)


@app.command("tester")
def measure_tester(
    agent: _Agent,
    problems: _Problems = "humaneval",
    tests: Annotated[int, typer.Option(min=1, max=1000, help="K, tests per problem.")] = 5,
    mode: Annotated[
        str, typer.Option(help="queries (one test at a time, those before it in view) or suite (all at once).")
    ] = "queries",
    mutants: Annotated[int, typer.Option(min=0, help="At most so many mutants per solution; 0: none.")] = 40,
    coder: Annotated[
        str | None,
        typer.Option(help="Also measure best-of-N gain and fidelity on this coder's programs.", show_default="none"),
    ] = None,
    candidates: Annotated[int, typer.Option(min=2, help="Its programs per problem, N.")] = 8,
    temperature: _Temperature = None,
    seed: _Seed = 0,
    sandbox: _Sandbox = "local",
    limit: _Limit = None,
    without: _Without = "",
    out: _Out = None,
    as_json: Json = False,
) -> None:
    """Measure a tester on right programs, as UnLeakedTestBench does: validity, pass@k, mut@k, cov@k, Mul.

    Figures with "fixed" in their name are means over all problems; the others over those that enter.

    \b
    Example:
      codea1 eval tester --agent boundary --problems starter --limit 10
    """
    from codea1_agents.cli.evaluating import Asked  # noqa: PLC0415  heavy
    from codea1_agents.cli.evaluating_agents import run_tester  # noqa: PLC0415  heavy

    asked = Asked(problems=problems, seed=seed, sandbox=sandbox, limit=limit, without=without, out=out, as_json=as_json)
    options = {"tests": tests, "mode": mode, "mutants": mutants, "candidates": candidates}
    run_tester(asked, agent, options, coder=coder, temperature=temperature)


@app.command("compare")
def compare(
    before: Annotated[Path, typer.Argument(help="Folder that codea1 eval wrote with --out.")],
    after: Annotated[Path, typer.Argument(help="Another one, of the same kind.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the intervals.")] = 0,
    as_json: Json = False,
) -> None:
    """Compare two evaluations problem by problem, and say how many problems would show each difference.

    \b
    Example:
      codea1 eval compare runs/base runs/trained
    """
    from codea1_agents.cli.evaluating_pairs import run_compare  # noqa: PLC0415  heavy

    run_compare(before, after, seed=seed, as_json=as_json)
