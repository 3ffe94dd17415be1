"""`codea1 web`: one page to play, watch and read, until Ctrl-C."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Annotated

from typer import Option

from codea1_agents.checks.sandbox_check import promise_of
from codea1_agents.cli.console import Page
from codea1_agents.cli.options import Options, SandboxName
from codea1_agents.cli.serve import stop_signal, token_of_environment
from codea1_env.errors import UserError
from codea1_env.sandbox import Guarantee, load_sandbox
from codea1_env.sandbox.remote import TOKEN_VARIABLE
from codea1_env.service.admission import Admission


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions(Options):
    """Serve a page to play the game in a browser until Ctrl-C or SIGTERM.

    Without a token it listens on this machine only. The token is in CODEA1_SERVE_TOKEN.

    \b
    Example:
      codea1 web
    """

    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Option(min=0, max=65_535, help="Port to listen on; 0: any free port.")] = 8088
    sandbox: SandboxName = "local"
    public: Annotated[
        bool, Option("--public", help="Let anybody play without a token; refuses a sandbox for trusted programs only.")
    ] = False


def run_web(options: WebOptions) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        UserError: the address is in use or needs a token, or the sandbox is too weak for the public.
        SandboxError: the sandbox cannot be used at all.
        MissingExtra: FastAPI or uvicorn is not installed.
    """
    from codea1_lab.web.app import BOUNDS, WebServer  # noqa: PLC0415  needs the extra `serve`
    from codea1_lab.web.play import play_part  # noqa: PLC0415

    page, token = Page(as_json=options.as_json), token_of_environment()
    admission = Admission(BOUNDS.n_running, BOUNDS.n_waiting)
    with stop_signal() as end, closing(load_sandbox(options.sandbox)) as sandbox:
        promise = promise_of(sandbox)
        if options.public and promise.guarantee is Guarantee.TRUSTED_ONLY:
            raise UserError(f"--public runs strangers' programs, but the sandbox here is {promise.sentence()}")
        parts = [play_part()]
        with WebServer(parts, admission, options.host, options.port, token=token, is_public=options.public) as server:
            key = "" if token is None else f"/?token=... (the value of {TOKEN_VARIABLE})"
            page.say(f"open {server.url}{key}; sandbox: {promise.sentence()}")
            page.finish(url=server.url, sandbox=asdict(promise), needs_token=bool(key))
            sys.stdout.flush()  # or a reader at the end of a pipe waits for ever
            end.wait()
            page.say("ending")
