"""`codea1 web`: one page to play, watch and read, until Ctrl-C."""

from __future__ import annotations

import os
import re
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.checks.sandbox_check import SandboxPromise, promise_of
from codea1_agents.cli.console import Page, problems_document
from codea1_agents.cli.options import Host, Limit, Options, Port, Problems, SandboxName, agent_spec
from codea1_agents.cli.progress import Progress
from codea1_agents.cli.serve import wait_for_interrupt
from codea1_env.agent import AgentContext
from codea1_env.errors import UserError, extra_needed
from codea1_env.problems import load_problems
from codea1_env.sandbox import Guarantee, load_sandbox
from codea1_env.sandbox.local.sandbox import WEAK_TIERS
from codea1_env.sandbox.remote import TOKEN_VARIABLE
from codea1_env.service.admission import Admission
from codea1_env.service.guard import token_of_environment


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions(Options):
    """Serve a page to play the game, and to watch and read runs, until Ctrl-C or SIGTERM.

    Without a token it listens on this machine only. The token is in CODEA1_SERVE_TOKEN.

    \b
    Example:
      codea1 web
      codea1 web runs
      codea1 web -p humaneval --coders mutant,strength=1 --testers boundary
    """

    folder: Annotated[
        Path | None,
        Argument(help="Folder whose runs, and those below it, are shown; not with --public.", show_default="runs"),
    ] = None
    problems: Problems = "starter"
    coders: Annotated[
        list[str] | None,
        agent_spec("--coders", "Opponent of testers, by name; may be repeated.", show_default="mutant,strength=1"),
    ] = None
    testers: Annotated[
        list[str] | None,
        agent_spec("--testers", "Opponent of coders, by name; may be repeated.", show_default="fuzz"),
    ] = None
    limit: Limit = None
    sandbox: SandboxName = "local"
    host: Host = "127.0.0.1"
    port: Port = 8088
    running: Annotated[int | None, Option(min=1, help="Tries judged at once.", show_default="one per core")] = None
    public: Annotated[
        bool, Option("--public", help="Let anybody play without a token; refuses a sandbox that shows files.")
    ] = False


def run_web(options: WebOptions) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        KeyboardInterrupt: the signal came; what runs has been answered.
        UserError: an opponent or the source does not exist, the address is in use or needs a token, or the sandbox is
            too weak for the public.
        SandboxError: the sandbox cannot be used at all.
        MissingExtra: FastAPI or uvicorn is not installed.
    """
    with extra_needed("the server of codea1 web", "serve"):
        from codea1_lab.web.app import BOUNDS, WebServer  # noqa: PLC0415
        from codea1_lab.web.play import Opponent, Play  # noqa: PLC0415
        from codea1_lab.web.watch import watch_part  # noqa: PLC0415

    if options.folder is not None and (options.public or not options.folder.is_dir()):
        fault = "--public shows nobody's runs" if options.public else "no such folder"
        raise UserError(f"{options.folder}: {fault}")

    page, token = Page(as_json=options.as_json), token_of_environment()
    with Progress("loading problems", None, page):
        problems, admission = load_problems(options.problems, limit=options.limit), Admission(BOUNDS.n_running, 0)
    page.note_skipped(problems.skipped)
    with closing(load_sandbox(options.sandbox)) as sandbox:
        promise, context = promise_of(sandbox), AgentContext(problems, sandbox)
        if options.public:
            _require_strong(promise)
        with Progress("loading opponents", None, page):
            coders = [Opponent(spec, "coder", context, page.note) for spec in options.coders or ["mutant,strength=1"]]
            testers = [Opponent(spec, "tester", context, page.note) for spec in options.testers or ["fuzz"]]
        n_running = options.running or len(os.sched_getaffinity(0))
        play = Play(problems, coders, testers, sandbox, admission, n_running)
        parts = [play.part(), *([] if options.public else [watch_part(options.folder or Path("runs"))])]
        with WebServer(parts, admission, options.host, options.port, token=token, is_public=options.public) as server:
            here = re.sub(r"//(0\.0\.0\.0|\[::\])", "//localhost", server.url)  # addresses that only servers have
            page.say(f"open {here if token is None else f'{here}/?token=... with the value of {TOKEN_VARIABLE}'}")
            page.say(f"sandbox: {promise.sentence()}")
            document = problems_document(options.problems, problems)
            page.finish(url=server.url, sandbox=asdict(promise), problems=document, needs_token=token is not None)
            wait_for_interrupt()


def _require_strong(promise: SandboxPromise) -> None:
    """Raise UserError if programs could read this machine's files, as strangers' must not."""
    if promise.tier in WEAK_TIERS or promise.guarantee is Guarantee.TRUSTED_ONLY:
        raise UserError(f"--public runs strangers' programs, for which this sandbox is too weak: {promise.sentence()}")
