"""Runs the commands of `codea1 sandbox`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict

from codea1_agents.checks.sandbox_check import promise_of
from codea1_agents.cli.console import Page
from codea1_agents.cli.sandbox import CleanOptions, ServeOptions
from codea1_agents.play.interrupts import STOP_SIGNALS, handled_signals
from codea1_env.errors import UserError
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_env.sandbox.docker.cleaning import clean as clean_docker
from codea1_env.sandbox.fusion_server.server import FusionServer
from codea1_env.sandbox.local import LocalSandbox


def clean(options: CleanOptions) -> None:
    """Remove what killed processes left of the docker sandbox."""
    page = Page(as_json=options.as_json)
    cleaned = clean_docker()
    for kind, names in (("container", cleaned.containers), ("image", cleaned.images), ("folder", cleaned.folders)):
        for name in names:
            page.say(f"removed {kind} {name}")
    if not (cleaned.containers or cleaned.images or cleaned.folders):
        page.say("nothing to remove")
    if cleaned.n_left:
        page.say(f"kept {cleaned.n_left} that are in use")
    page.finish(**asdict(cleaned))


def serve(options: ServeOptions) -> None:
    """Serve `/run_code` until SIGINT or SIGTERM.

    Raises:
        UserError: the address is in use or is not a loopback address, or there is no such sandbox.
        SandboxError: the sandbox cannot be used at all.
    """
    page = Page(as_json=options.as_json)
    with (
        _stop_signal() as end,
        closing(_backend(options.sandbox, options.workers)) as backend,
        FusionServer(backend, options.host, options.port, allow_remote=options.allow_remote) as server,
    ):
        promise = promise_of(backend)
        threading.Thread(target=server.serve_forever, name="codea1-serve", daemon=True).start()
        try:
            page.say(f"serving {server.url}/run_code with {promise.sentence()}")
            page.finish(url=server.url, sandbox=asdict(promise))
            sys.stdout.flush()  # or a reader at the end of a pipe waits for ever
            end.wait()
            page.say("ending")
        finally:
            server.stop()


def _backend(name: str, workers: int | None) -> Sandbox:
    if workers is None:
        return load_sandbox(name)
    if name != "local":
        raise UserError(f"--workers is for the sandbox 'local', not for {name!r}")
    return LocalSandbox(workers)


@contextmanager
def _stop_signal() -> Iterator[threading.Event]:
    """Yield an event; inside the block, SIGTERM and SIGINT only set it."""
    end = threading.Event()
    with handled_signals(STOP_SIGNALS, lambda *_: end.set()):
        yield end
