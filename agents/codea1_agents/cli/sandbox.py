"""`codea1 sandbox`: the options of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from codea1_agents.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="Places where programs run.")


@app.callback()
def _sandbox() -> None:
    """Places where programs run."""  # a callback keeps a single command a command of its own


@app.command("clean")
def clean(
    as_json: Json = False,
) -> None:
    """Remove what killed processes have left of the docker sandbox: containers, images and temporary folders.

    Looks only at what this program has made, and leaves whatever belongs to a process that still runs. What is removed
    and needed again is made again.

    \b
    Example:
      codea1 sandbox clean
    """
    from dataclasses import asdict  # noqa: PLC0415  only when run

    from codea1_agents.cli.console import Page  # noqa: PLC0415  heavy
    from codea1_env.sandbox.docker_cleaning import clean as clean_docker  # noqa: PLC0415  heavy

    page = Page(as_json=as_json)
    cleaned = clean_docker()
    for kind, names in (("container", cleaned.containers), ("image", cleaned.images), ("folder", cleaned.folders)):
        for name in names:
            page.say(f"removed {kind} {name}")
    if not (cleaned.containers or cleaned.images or cleaned.folders):
        page.say("nothing to remove")
    if cleaned.n_left:
        page.say(f"left {cleaned.n_left} in use")
    page.finish(asdict(cleaned))


@app.command("serve")
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: any that is free.")] = 8080,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Programs run at the same time.", show_default="one per core")
    ] = None,
    sandbox: Annotated[str, typer.Option(help="Where programs run.")] = "local",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines in: whoever reaches the port can run programs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run others' programs behind SandboxFusion's `/run_code`, until stopped by Ctrl-C or SIGTERM.

    For programs that expect such a server: point SANDBOX_FUSION_ENDPOINT at it. Scripts run in our sandbox, but where
    they print their own verdicts, a hostile program in them can still print them too.

    \b
    Example:
      codea1 sandbox serve --port 8080
    """
    from codea1_agents.cli import sandbox_commands  # noqa: PLC0415  heavy

    sandbox_commands.serve(
        host=host, port=port, workers=workers, sandbox=sandbox, allow_remote=allow_remote, as_json=as_json
    )
