"""The options of `codea1 serve`; `serving` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from codea1_agents.cli.options import DEFAULT_SOURCE, Options, Problems, Rules, Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(Options):
    """Serve the judge, the sandbox and SandboxFusion's `/run_code` over HTTP until Ctrl-C or SIGTERM.

    Without a token it listens on this machine only. The token is in CODEA1_SERVE_TOKEN, or in a file.

    \b
    Example:
      codea1 serve -p starter
      CODEA1_SERVE_TOKEN=... codea1 serve --host 0.0.0.0
    """

    problems: Problems = DEFAULT_SOURCE
    rules: Rules = "fixed"
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Option(min=0, max=65_535, help="Port to listen on; 0: any free port.")] = 8080
    workers: Annotated[
        int | None, Option(min=1, help="Programs run at the same time.", show_default="one per core")
    ] = None
    sandbox: Sandbox = "local"
    token_file: Annotated[Path | None, Option(help="File with the token that requests must have.")] = None
    running: Annotated[int, Option(min=1, help="Requests judged at the same time.")] = 32
    waiting: Annotated[int, Option(min=0, help="Requests that wait; one more gets status 429.")] = 256
    grace: Annotated[float, Option(min=0, help="Seconds for running requests at the end.")] = 8.0
