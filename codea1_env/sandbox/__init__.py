"""Runs untrusted programs; the only package that starts processes."""

from codea1_env.sandbox.choice import load_sandbox
from codea1_env.sandbox.interface import (
    Call,
    Guarantee,
    Harness,
    Job,
    JobReport,
    Limits,
    Place,
    Sandbox,
)

__all__ = [
    "Call",
    "Guarantee",
    "Harness",
    "Job",
    "JobReport",
    "Limits",
    "Place",
    "Sandbox",
    "load_sandbox",
]
