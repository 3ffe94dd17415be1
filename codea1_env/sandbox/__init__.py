"""Where untrusted programs run: the only part that starts processes."""

from codea1_env.sandbox.choice import load_sandbox
from codea1_env.sandbox.interface import (
    Call,
    Finished,
    Guarantee,
    Harness,
    Job,
    JobReport,
    Limits,
    Place,
    Sandbox,
)
from codea1_env.sandbox.streaming import as_completed, run_async, stream

__all__ = [
    "Call",
    "Finished",
    "Guarantee",
    "Harness",
    "Job",
    "JobReport",
    "Limits",
    "Place",
    "Sandbox",
    "as_completed",
    "load_sandbox",
    "run_async",
    "stream",
]
