"""`codea1 sandbox`: the options. What they do: `sandbox_commands`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from codea1_agents.cli.options import Options, Sandbox


class CleanOptions(Options):
    """Remove what killed processes have left of the docker sandbox: containers, images and temporary folders.

    Looks only at what this program has made, and leaves whatever belongs to a process that still runs. What is removed
    and needed again is made again.

    \b
    Example:
      codea1 sandbox clean
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(Options):
    """Run others' programs behind SandboxFusion's `/run_code`, until stopped by Ctrl-C or SIGTERM.

    For programs that expect such a server: point SANDBOX_FUSION_ENDPOINT at it. Scripts run in our sandbox, but where
    they print their own verdicts, a hostile program in them can still print them too.

    \b
    Example:
      codea1 sandbox serve --port 8080
    """

    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Option(min=0, max=65_535, help="0: any that is free.")] = 8080
    workers: Annotated[
        int | None, Option(min=1, help="Programs run at the same time.", show_default="one per core")
    ] = None
    sandbox: Sandbox = "local"
    allow_remote: Annotated[
        bool, Option("--allow-remote", help="Let other machines in: whoever reaches the port can run programs.")
    ] = False
