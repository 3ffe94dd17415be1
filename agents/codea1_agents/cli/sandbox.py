"""The options of `codea1 sandbox`; `sandbox_commands` runs its commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from codea1_agents.cli.options import Options, Sandbox


class CleanOptions(Options):
    """Remove what killed processes left of the docker sandbox: containers, images and temporary folders.

    Removes only what this program created for processes that no longer run. The sandbox creates them again when it
    needs them.

    \b
    Example:
      codea1 sandbox clean
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(Options):
    """Serve SandboxFusion's `/run_code` until Ctrl-C or SIGTERM.

    For clients that expect such a server: set SANDBOX_FUSION_ENDPOINT to its address. Scripts run in our sandbox. But a
    script that prints its own verdict can still be forged by a hostile program inside it.

    \b
    Example:
      codea1 sandbox serve --port 8080
    """

    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Option(min=0, max=65_535, help="Port to listen on; 0: any free port.")] = 8080
    workers: Annotated[
        int | None, Option(min=1, help="Programs run at the same time.", show_default="one per core")
    ] = None
    sandbox: Sandbox = "local"
    allow_remote: Annotated[
        bool, Option("--allow-remote", help="Accept other machines: anyone who reaches the port can run programs.")
    ] = False
