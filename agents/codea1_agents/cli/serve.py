"""`codea1 serve`: the judge and the sandbox over HTTP, until Ctrl-C."""

from __future__ import annotations

import sys
import threading
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Annotated

from typer import Option

from codea1_agents.checks.sandbox_check import promise_of
from codea1_agents.cli.console import Page, problems_document
from codea1_agents.cli.options import Host, Options, Port, Problems, Rules, SandboxName
from codea1_env.errors import UserError
from codea1_env.problems import DEFAULT_SOURCE
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.service.bounds import ServiceBounds
from codea1_env.service.guard import token_of_environment
from codea1_env.service.judging import ServedJudge


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(Options):
    """Serve the judge and the sandbox over HTTP until Ctrl-C or SIGTERM.

    Without a token it listens on this machine only. The token is in CODEA1_SERVE_TOKEN.

    \b
    Example:
      codea1 serve -p starter
      CODEA1_SERVE_TOKEN=... codea1 serve --host 0.0.0.0
    """

    problems: Problems = DEFAULT_SOURCE
    rules: Rules = "fixed"
    host: Host = "127.0.0.1"
    port: Port = 8080
    workers: Annotated[int | None, Option(min=1, help="Programs run at once.", show_default="one per core")] = None
    sandbox: SandboxName = "local"
    running: Annotated[int, Option(min=1, help="Requests judged at the same time.")] = 64
    waiting: Annotated[int, Option(min=0, help="Requests that wait; one more gets status 429.")] = 256
    grace: Annotated[float, Option(min=0, help="Seconds that running requests get at shutdown.")] = 8.0


def run_serve(options: ServeOptions) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        KeyboardInterrupt: the signal came; what runs has been answered.
        UserError: the address is in use or needs a token, or the sandbox, source or rules do not exist.
        SandboxError: the sandbox cannot be used at all.
        MissingExtra: FastAPI or uvicorn is not installed.
    """
    from codea1_env.service.server import ServiceServer  # noqa: PLC0415  needs the extra `serve`

    page, token = Page(as_json=options.as_json), token_of_environment()
    bounds = ServiceBounds(n_running=options.running, n_waiting=options.waiting, grace_s=options.grace)
    with closing(_backend(options.sandbox, options.workers)) as backend:
        judge = ServedJudge(backend, options.problems, options.rules, bounds=bounds)
        with ServiceServer(judge, options.host, options.port, token=token) as server:
            promise = promise_of(backend)
            page.say(f"serving {server.url} with {promise.sentence()}")
            page.finish(
                url=server.url,
                sandbox=asdict(promise),
                problems=problems_document(options.problems, judge.problems),
                rules=judge.rules.name,
                needs_token=token is not None,
            )
            wait_for_interrupt()


def wait_for_interrupt() -> None:
    """Wait for Ctrl-C or SIGTERM. What is printed reaches readers first: one at the end of a pipe would wait for ever.

    Raises:
        KeyboardInterrupt: it came.
    """
    sys.stdout.flush()
    threading.Event().wait()


def _backend(name: str, workers: int | None) -> Sandbox:
    if workers is None:
        return load_sandbox(name)
    if name != "local":
        raise UserError(f"--workers requires --sandbox local (got {name!r})")
    return LocalSandbox(workers)
