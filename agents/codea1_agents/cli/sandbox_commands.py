"""What `codea1 sandbox serve` does."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict

from codea1_agents.cli.console import Page
from codea1_agents.sandbox_check import promise_of
from codea1_env.errors import UserError
from codea1_env.sandbox import Sandbox, load_sandbox
from codea1_env.sandbox.fusion_server import FusionServer
from codea1_env.sandbox.local import LocalSandbox


def serve(*, host: str, port: int, workers: int | None, sandbox: str, allow_remote: bool, as_json: bool) -> None:
    """Serve `/run_code` until this process is asked to end.

    Raises:
        UserError: the address cannot be had or is not a loopback one, or there is no such sandbox.
        SandboxError: the sandbox cannot be used at all.
    """
    page = Page(as_json=as_json)
    with (
        _asked_to_end() as end,
        closing(_backend(sandbox, workers)) as backend,
        FusionServer(backend, host, port, allow_remote=allow_remote) as server,
    ):
        promise = promise_of(backend)
        threading.Thread(target=server.serve_forever, name="codea1-serve", daemon=True).start()
        try:
            page.say(f"serving {server.url}/run_code with {promise.sentence()}")
            page.finish({"url": server.url, "sandbox": asdict(promise)})
            sys.stdout.flush()  # or whoever reads it through a pipe waits for ever
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
def _asked_to_end() -> Iterator[threading.Event]:
    """Within, SIGTERM and SIGINT only set the event."""
    end = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: end.set()) for number in numbers]
    try:
        yield end
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
