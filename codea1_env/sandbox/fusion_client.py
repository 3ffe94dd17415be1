"""The sandbox that is someone else's SandboxFusion server, reached over HTTP.

Program, solution and harness are separate requests, so separate processes of the server; values are compared here.
How well those processes are kept apart is the server's affair and cannot be checked from here: by default it runs them
side by side as its own user, without isolation. There a hostile program can meddle with the server, with other
requests under way, and so with the solution's values. That is why this back end is for trusted programs only, unless
you know better about your server. docs/decisions/005-sandbox-fusion.md says what holds.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from functools import cache

from codea1_env.errors import SandboxError, UserError
from codea1_env.sandbox.fusion_execution import run_job
from codea1_env.sandbox.fusion_http import Endpoint, Unanswered
from codea1_env.sandbox.fusion_ledger import SAFE_OUTPUT_BYTES, Bounds
from codea1_env.sandbox.fusion_runner import Mark
from codea1_env.sandbox.fusion_schema import CommandResult, CommandStatus, RunRequest
from codea1_env.sandbox.fusion_script import Script, program_script
from codea1_env.sandbox.fusion_talk import Talk, read_talk
from codea1_env.sandbox.interface import Call, Guarantee, Job, JobReport

__all__ = ["ENDPOINT_VARIABLE", "SandboxFusion", "shared_fusion"]

ENDPOINT_VARIABLE = "SANDBOX_FUSION_ENDPOINT"
"""Environment variable that names the server, as for SandboxFusion's own client."""

_MUCH_OUTPUT = 1_000_000
_MUCH_OUTPUT_S = 5.0  # older servers let a process wait for ever to print so much
_DYING = Job("import os\ndef f():\n    os.abort()", "f", (Call("f()"),))
_LIVING = Job("def f():\n    pass", "f", (Call("f()"),))


class SandboxFusion:
    """Runs jobs on a server that speaks SandboxFusion's `/run_code`. Safe to use from any thread.

    Args:
        endpoint: the server's address, like `http://127.0.0.1:8080`; by default the environment names it.
        concurrency: how many requests are under way at the same time.
        attempts: how often a request is sent, with growing pauses, before it is given up.
        bounds: of the requests of one job; by default, what the server lets a process print is found out.

    Raises:
        UserError: no address, or a broken one.
        ValueError: fewer than one request or attempt.
    """

    def __init__(
        self, endpoint: str | None = None, *, concurrency: int = 8, attempts: int = 5, bounds: Bounds | None = None
    ) -> None:
        if concurrency < 1 or attempts < 1:
            raise ValueError(f"at least one request and one attempt are needed, not {concurrency} and {attempts}")
        self._url = endpoint or _url_of_environment()
        self._concurrency = concurrency
        self._attempts = attempts
        self._bounds = bounds
        self._lock = threading.Lock()
        self._line: _Line | None = None
        self._end: weakref.finalize[..., SandboxFusion] | None = None
        Endpoint(self._url, attempts=1)  # refuses a broken address now and not later

    @property
    def name(self) -> str:
        """`sandbox-fusion`."""
        return "sandbox-fusion"

    @property
    def guarantee(self) -> Guarantee:
        """Trusted programs only: how the server isolates cannot be known from here."""
        return Guarantee.TRUSTED_ONLY

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs; reports in the order of the jobs.

        What the server fails to answer after all retries is INTERNAL_ERROR.

        Raises:
            SandboxError: the server cannot be reached, is no SandboxFusion or does not run our programs, or `close`
                was called meanwhile.
        """
        if not jobs:
            return []
        line = self._open_line()
        bounds = line.probe(self._bounds)
        futures = line.submit(jobs, bounds)
        try:
            done = wait(futures, return_when=FIRST_EXCEPTION).done
            for future in done:  # an exception of any of them, not only of the first in order
                future.result()
            return [future.result() for future in futures]
        except CancelledError:
            raise SandboxError("the sandbox was closed") from None
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End all requests and threads; idempotent. A later `run` starts afresh."""
        with self._lock:
            end, self._end, self._line = self._end, None, None
        if end is not None:
            end()

    def __enter__(self) -> SandboxFusion:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        return _remade, (self._url, self._concurrency, self._attempts, self._bounds)

    def _open_line(self) -> _Line:
        with self._lock:
            if self._line is None or self._line.pid != os.getpid():  # threads and sockets do not survive a fork
                self._line = _Line(Endpoint(self._url, attempts=self._attempts), self._concurrency)
                self._end = weakref.finalize(self, self._line.close)  # also at interpreter exit
            return self._line


class _Line:
    """Threads and connections of one process to the server."""

    def __init__(self, endpoint: Endpoint, concurrency: int) -> None:
        self.pid = os.getpid()
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="codea1-fusion")
        self._endpoint = endpoint
        self._probing = threading.Lock()
        self._bounds: Bounds | None = None
        self._keeps_output = False

    def probe(self, wanted: Bounds | None) -> Bounds:
        """Return the bounds of requests, after finding out, once, what the server is like.

        Raises:
            SandboxError: it does not run our programs.
        """
        with self._probing:
            if self._bounds is None:
                try:
                    dying = self._heard(_script(_DYING), _DYING)[1]
                    self._keeps_output = dying.has_begun and Mark.END not in dying.marks
                    if not self._keeps_output:
                        result, talk = self._heard(_script(_LIVING), _LIVING)
                        if not talk.has_begun:
                            raise self._silence(result)
                    self._bounds = wanted or Bounds(self._measured_output())
                except Unanswered as failure:
                    raise SandboxError(str(failure)) from failure
            return self._bounds

    def _measured_output(self) -> int:
        """Return how much a process may print: a lot, if that comes back whole."""
        request = RunRequest(f"print('x' * {_MUCH_OUTPUT})", _MUCH_OUTPUT_S)
        result = self._endpoint.run(request)
        is_whole = result is not None and len(result.stdout) >= _MUCH_OUTPUT
        return _MUCH_OUTPUT if is_whole else SAFE_OUTPUT_BYTES

    def submit(self, jobs: Sequence[Job], bounds: Bounds) -> list[Future[JobReport]]:
        """Start on jobs."""
        try:
            return [self._pool.submit(run_job, job, self.ask, bounds) for job in jobs]
        except RuntimeError:  # the pool has been shut down
            raise SandboxError("the sandbox was closed") from None

    def ask(self, script: Script, job: Job) -> Talk:
        """Make a request; see `fusion_ledger.Ask`."""
        for _ in range(2):
            result, talk = self._heard(script, job)
            if talk.has_begun or result is None or not self._must_speak(result):
                return talk
        raise self._silence(result)

    def close(self) -> None:
        """End everything, unless it is that of the process which this one was forked from."""
        if self.pid == os.getpid():
            self._endpoint.close()
            self._pool.shutdown(cancel_futures=True)

    def _heard(self, script: Script, job: Job) -> tuple[CommandResult | None, Talk]:
        result = self._endpoint.run(RunRequest(script.code, script.run_timeout_s))
        return result, read_talk(result, script.nonce, job.limits)

    def _must_speak(self, result: CommandResult) -> bool:
        """Whether a process that ended like this has said something, so that the server has lost it."""
        return result.status is CommandStatus.FINISHED and (self._keeps_output or result.return_code == 0)

    def _silence(self, result: CommandResult | None) -> Unanswered:
        complaint = result.stderr.strip().rpartition("\n")[2][:200] if result is not None else ""
        return Unanswered(f"our program said nothing on the server at {self._endpoint.url}: {complaint or 'no reason'}")


def _script(job: Job) -> Script:
    return program_script(job, range(len(job.calls)), SAFE_OUTPUT_BYTES)


@cache
def _shared(url: str) -> SandboxFusion:
    return SandboxFusion(url)


def shared_fusion() -> SandboxFusion:
    """Return this process's own client of the server that the environment names.

    Raises:
        UserError: it names none, or a broken address.
    """
    return _shared(_url_of_environment())


def _url_of_environment() -> str:
    url = os.environ.get(ENDPOINT_VARIABLE, "")
    if not url:
        raise UserError(f"sandbox-fusion needs a server: set {ENDPOINT_VARIABLE}, e.g. to http://127.0.0.1:8080")
    return url


def _remade(url: str, concurrency: int, attempts: int, bounds: Bounds | None) -> SandboxFusion:
    return SandboxFusion(url, concurrency=concurrency, attempts=attempts, bounds=bounds)
