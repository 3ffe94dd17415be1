"""Runs untrusted programs; the only package that starts processes."""

from __future__ import annotations

from typing import cast

from codea1_env.errors import UserError
from codea1_env.plugins import resolve, result_of
from codea1_env.records.closing import Closing
from codea1_env.sandbox.interface import Call, Guarantee, Harness, Job, JobReport, Limits, Place, Sandbox
from codea1_env.secret import require_address

__all__ = ["Call", "Closing", "Guarantee", "Harness", "Job", "JobReport", "Limits", "Place", "Sandbox", "load_sandbox"]


def require_sandbox(name: str) -> None:
    """Check a text that names a back end, without making one; see `load_sandbox` for the forms and the errors."""
    if "://" in name:
        require_address("a sandbox's server", name)
    else:
        resolve("sandboxes", name)


def load_sandbox(spec: Sandbox | str) -> Sandbox:
    """Return a back end; within a process, the same name returns the same instance.

    Args:
        spec: a back end, a registered name (`local`), `module:attribute` of one or of a function returning one, or the
            address of a `codea1 serve`, such as `http://localhost:8080`.

    Raises:
        UserError: nothing has that name, or it is not a sandbox.
    """
    if isinstance(spec, str) and "://" in spec:
        from codea1_env.sandbox.remote import shared_remote_sandbox  # noqa: PLC0415  slow to import

        return shared_remote_sandbox(spec)
    target = resolve("sandboxes", spec) if isinstance(spec, str) else spec
    if isinstance(target, type):
        raise UserError(f"sandbox {spec!r}: {target.__name__} is a class, expected a function that returns an instance")
    if not _can_run(target) and callable(target):
        target = result_of(f"sandbox {spec!r}", target)
    if not _can_run(target):
        raise UserError(f"sandbox {spec!r}: {type(target).__name__} does not have the method run(jobs)")
    return cast(Sandbox, target)


def _can_run(target: object) -> bool:
    """Check the class only: `isinstance` would read `guarantee` of the instance, which starts it."""
    return callable(getattr(type(target), "run", None))
