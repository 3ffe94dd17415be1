"""`codea1 check`: the options. What they do: `checking`."""

from __future__ import annotations

from typing import Annotated

import typer

from codea1_agents.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="Check problems, the environment, an agent, or this machine's sandbox.")

_Sandbox = Annotated[str, typer.Option(help="Where programs run.")]


@app.command()
def problems(
    source: Annotated[str, typer.Argument(help="Source by name or path.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Check only so many, from the front.")] = None,
    runs: Annotated[
        int, typer.Option(min=1, max=1000, help="Runs of each solution; every second one in reverse order.")
    ] = 2,
    slow: Annotated[float, typer.Option(min=0, help="Processor seconds per run above which a row is slow.")] = 5.0,
    sandbox: _Sandbox = "local",
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Run every solution against its own golden tests and examples, several times.

    Tells wrong, flaky, slow, untested and unparsable rows; exits with 1 if there is any.

    \b
    Example:
      codea1 check problems humaneval
    """
    from codea1_agents.cli.checking import run_check_problems  # noqa: PLC0415  heavy

    run_check_problems(source, limit=limit, runs=runs, slow_s=slow, sandbox=sandbox, as_json=as_json, quiet=quiet)


@app.command()
def env(as_json: Json = False) -> None:
    """Run the conformance tests of PettingZoo and Gymnasium on this environment, warnings as errors.

    \b
    Example:
      codea1 check env
    """
    from codea1_agents.cli.checking import run_check_env  # noqa: PLC0415  heavy

    run_check_env(as_json=as_json)


@app.command()
def agent(
    spec: Annotated[str, typer.Argument(metavar="AGENT", help="A name with its options, or module:attribute.")],
    role: Annotated[
        str, typer.Option(help="coder or tester.", show_default="what it says that it plays, else both")
    ] = "",
    slow: Annotated[float, typer.Option(min=0, help="Seconds above which a single reply is a fault.")] = 60.0,
    sandbox: _Sandbox = "local",
    as_json: Json = False,
) -> None:
    """Test an agent: seeds, batches, strange observations, errors, time.

    Exits with 1 if a test fails, with 3 if the agent could not be asked.

    \b
    Example:
      codea1 check agent mutant,strength=0.3
      codea1 check agent my_module:my_function --role tester
    """
    from codea1_agents.cli.checking import run_check_agent  # noqa: PLC0415  heavy

    run_check_agent(spec, role=role, slow_s=slow, sandbox=sandbox, as_json=as_json)


@app.command()
def sandbox(
    name: Annotated[str, typer.Argument(help="Which sandbox.")] = "local",
    require: Annotated[
        str, typer.Option(metavar="TIER", help="Weakest tier to accept: namespaces, bwrap, landlock, seccomp, rlimits.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Obtain every kind of outcome from a small program, twice, and say what the sandbox promises here.

    \b
    Example:
      codea1 check sandbox
      codea1 check sandbox --require namespaces
    """
    from codea1_agents.cli.checking import run_check_sandbox  # noqa: PLC0415  heavy

    run_check_sandbox(name, require=require, as_json=as_json)
