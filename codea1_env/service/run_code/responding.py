"""Runs the programs of SandboxFusion's `/run_code` in a sandbox of this project.

For software that expects a SandboxFusion server. It does not make their protocols safe: if a script prints its own
verdict (`__PASS__`), a hostile program in that script can print it too, in any sandbox. A program can only not forge
values that are compared outside its process.
"""

from __future__ import annotations

import signal
from functools import cache
from importlib.resources import files

from codea1_env.errors import SandboxError
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox.interface import Call, Job, JobReport, Limits, Sandbox
from codea1_env.service.bounds import ServiceBounds
from codea1_env.service.run_code.schema import CommandResult, CommandStatus, RunRequest, RunResponse, RunStatus
from codea1_env.values import Malformed
from codea1_env.values.tree import Tagged, parse

_MAX_STREAM_BYTES = 1 << 20
"""How much of stdout and of stderr is returned, as in SandboxFusion; the rest is discarded."""
_VALUE_BYTES = 5 << 20
"""Enough for both streams in hexadecimal."""
_SLACK_S = 0.5
"""Added to the sandbox's limits, so that the clock in `posted` stops the program first and its output is returned."""


def response_to(request: RunRequest, sandbox: Sandbox, bounds: ServiceBounds) -> RunResponse:
    """Run a posted program; if the sandbox fails, return the status `SandboxError`."""
    try:
        report = sandbox.run([_job(request, bounds)])[0]
    except SandboxError as error:
        return _sandbox_error(str(error))
    if report.loaded:
        return _response(report.outcomes[0], report)
    if report.load.kind is OutcomeKind.MEMORY_LIMIT:
        return _failed(report, "MemoryError\n")
    return _sandbox_error(f"our own program does not load: {report.load.summary}")


def _job(request: RunRequest, bounds: ServiceBounds) -> Job:
    """Return the job whose only call runs the program."""
    timeout_s = request.run_timeout_s
    # The limit on wall-clock time is only for programs that sleep: on a busy machine other programs may need it.
    wall_s = 2 * timeout_s + 1
    limits = Limits(
        cpu_s=timeout_s + _SLACK_S,
        wall_s=wall_s + 2 * _SLACK_S,
        memory_mb=min(request.memory_mb or bounds.memory_mb, bounds.max_limits.memory_mb),
        value_bytes=_VALUE_BYTES,
        max_restarts=0,
    )
    stdin = request.stdin.encode("utf-8", "surrogatepass")  # JSON may contain lone surrogates
    call = f"run({request.code!a}, {stdin!r}, {timeout_s!r}, {wall_s!r}, {_MAX_STREAM_BYTES})"
    hint = "\n# numpy\n" if "numpy" in request.code else ""  # the sandbox searches the source for this name
    return Job(_runner() + hint, "run", (Call(call),), limits=limits)


@cache
def _runner() -> str:
    return files("codea1_env").joinpath("service/run_code/posted.py").read_text("utf-8")


def _response(outcome: Outcome, report: JobReport) -> RunResponse:
    kind = outcome.kind
    if outcome.value is not None:
        return _ran(outcome.value) or _failed(report, "the program has replaced its own output\n")
    if kind in (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN):
        return _sandbox_error(outcome.summary)
    if kind is OutcomeKind.TIME_LIMIT:
        return RunResponse(RunStatus.FAILED, run=CommandResult(CommandStatus.TIME_LIMIT_EXCEEDED, report.cpu_s))
    if kind is OutcomeKind.CRASHED:
        return _failed(report, f"{outcome.message}\n", _signal_code(outcome.error_type))
    return _failed(report, f"{outcome.summary}; what it printed is lost\n")


def _ran(value: bytes) -> RunResponse | None:
    """Return the response for the returned value; None if the value is malformed because the program changed it."""
    try:
        tree = parse(value)
    except Malformed:
        return None
    match tree:
        case Tagged("t", [Tagged("b", out), Tagged("b", err), int(code), bool(is_late), float(elapsed_s)]):
            texts = [bytes.fromhex(stream)[:_MAX_STREAM_BYTES].decode("utf-8", "replace") for stream in (out, err)]
        case _:
            return None
    if is_late:
        late = CommandResult(CommandStatus.TIME_LIMIT_EXCEEDED, elapsed_s, None, *texts)
        return RunResponse(RunStatus.FAILED, run=late)
    status = RunStatus.SUCCESS if code == 0 else RunStatus.FAILED
    return RunResponse(status, run=CommandResult(CommandStatus.FINISHED, elapsed_s, code, *texts))


def _failed(report: JobReport, stderr: str, return_code: int = 1) -> RunResponse:
    run = CommandResult(CommandStatus.FINISHED, report.cpu_s, return_code, stderr=stderr)
    return RunResponse(RunStatus.FAILED, run=run)


def _sandbox_error(message: str) -> RunResponse:
    return RunResponse(RunStatus.SANDBOX_ERROR, message, CommandResult(CommandStatus.ERROR, stderr=message))


def _signal_code(name: str) -> int:
    return -signal.Signals[name].value if name in signal.Signals.__members__ else 1
