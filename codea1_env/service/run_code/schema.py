"""The JSON bodies of SandboxFusion's `POST /run_code`: requests, which are validated strictly, and responses."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

_DEFAULT_TIMEOUT_S = 10.0
_MAX_TIMEOUT_S = 3600.0


class RunStatus(StrEnum):
    """How a request ended."""

    SUCCESS = "Success"
    FAILED = "Failed"
    """Time limit, or an exit code other than 0."""
    SANDBOX_ERROR = "SandboxError"
    """The server's failure."""


class CommandStatus(StrEnum):
    """How the process ended."""

    FINISHED = "Finished"
    ERROR = "Error"
    """The server's failure."""
    TIME_LIMIT_EXCEEDED = "TimeLimitExceeded"


class BadRequest(ValueError):
    """A client's request cannot be served; `field` names the field at fault."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What one process did."""

    status: CommandStatus
    execution_time: float | None = None
    """Wall-clock seconds."""
    return_code: int | None = None
    """Negative: the signal that ended it. None unless it finished."""
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class RunResponse:
    """The body of a response with HTTP status 200."""

    status: RunStatus
    message: str = ""
    run: CommandResult | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the documented object."""
        run = self.run and asdict(self.run)
        shown = {"status": self.status, "message": self.message, "run_result": run}
        return shown | {"compile_result": None, "executor_pod_name": None, "files": {}}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The fields of a request that matter for Python programs."""

    code: str
    run_timeout_s: float = _DEFAULT_TIMEOUT_S
    stdin: str = ""
    memory_mb: int | None = None
    """None: the server's default."""

    @classmethod
    def from_json(cls, body: bytes) -> RunRequest:
        """Read a body. Undocumented fields are ignored, as SandboxFusion does; so is `compile_timeout`.

        Raises:
            BadRequest: a broken body, another language than `python`, or files that the program needs.
        """
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadRequest("", f"not JSON: {error}"[:300]) from error
        if not isinstance(fields, dict):
            raise BadRequest("", "not an object")
        if fields.get("language") != "python":
            raise BadRequest("language", f"must be 'python', got {fields.get('language')!r:.60}")
        if any(content is not None for content in _field(fields, "files", dict, {}).values()):
            raise BadRequest("files", "must be empty: programs run without files")
        memory_mb = _field(fields, "memory_limit_MB", int, -1)
        return cls(
            code=_field(fields, "code", str, None),
            run_timeout_s=_seconds(fields),
            stdin=_field(fields, "stdin", str, ""),
            memory_mb=memory_mb if memory_mb > 0 else None,
        )


def _field(fields: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = fields.get(name)
    value = default if value is None else value
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadRequest(name, f"must be of type {kind.__name__}")
    return value


def _seconds(fields: Mapping[str, Any]) -> float:
    value = fields.get("run_timeout", _DEFAULT_TIMEOUT_S)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise BadRequest("run_timeout", "must be a number of seconds above 0")
    if value > _MAX_TIMEOUT_S:
        raise BadRequest("run_timeout", f"must be at most {_MAX_TIMEOUT_S:g} seconds")
    return float(value)
