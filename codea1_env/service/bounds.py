"""The bounds of a server."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.errors import UserError
from codea1_env.sandbox.interface import Limits


@dataclass(frozen=True, slots=True)
class ServiceBounds:
    """What a server accepts, and how long it waits. Each must be positive."""

    client_s: float = 30.0
    """How long a client may take for the head of a request, and for its body, and may read nothing of a response."""
    grace_s: float = 8.0
    """How long running requests may go on after `stop`."""
    max_body_bytes: int = 16 << 20
    """The longest body of one request."""
    max_values: int = 1 << 20
    """Objects, arrays, keys and items of one request."""
    max_held_bytes: int = 256 << 20
    """Total size of the bodies of all requests that are being read, waiting or running."""
    max_items: int = 1024
    """Programs of one request, or jobs."""
    n_running: int = 32
    """Requests that run at the same time; the sandbox decides how many programs do."""
    n_waiting: int = 256
    """Requests that wait for a place; one more gets 429."""
    max_limits: Limits = Limits(  # noqa: RUF009  frozen
        cpu_s=3600, wall_s=7300, memory_mb=8192, value_bytes=32 << 20, max_restarts=64, job_factor=64
    )
    """The most that a request can set."""

    def require_allowed(self, limits: Limits) -> Limits:
        """Return limits that a request has set.

        Raises:
            UserError: one exceeds `max_limits`.
        """
        for name in Limits.__slots__:
            most = getattr(self.max_limits, name)
            if not getattr(limits, name) <= most:  # also nan
                raise UserError(f"limits.{name} must be at most {most:g} on this server, got {getattr(limits, name):g}")
        return limits
