"""The bounds of a server."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.errors import UserError
from codea1_env.sandbox.interface import Limits


@dataclass(frozen=True, slots=True)
class ServiceBounds:
    """The requests that a server accepts, and the times that it waits. Each must be positive."""

    client_s: float = 30.0
    """The time that a client may take for the head of a request, and for its body, or read nothing of a response."""
    grace_s: float = 8.0
    """The time for which running requests may go on after `stop`."""
    max_body_bytes: int = 16 << 20
    """The longest body of one request."""
    max_values: int = 1 << 20
    """Objects, arrays, keys and items of one request."""
    max_held_bytes: int = 256 << 20
    """Bytes of all requests together: bodies, what is made of them, answers. One may take as much as it leaves to the
    others, so at most half of it."""
    max_items: int = 1024
    """Programs of one request, or jobs."""
    n_running: int = 64
    """Requests that run at the same time, up to an eighth of them with a body above 256 KiB; the sandbox decides how
    many programs do."""
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
        if name := limits.above(self.max_limits):
            most, got = getattr(self.max_limits, name), getattr(limits, name)
            raise UserError(f"limits.{name} must be at most {most:g} on this server, got {got:g}")
        return limits
