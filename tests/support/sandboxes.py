"""Sandboxes around a real one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from codea1_env.errors import SandboxError
from codea1_env.sandbox import Call, Closing, Job, JobReport, Sandbox
from codea1_env.sandbox.local import LocalSandbox

DOUBLE = Job("def f(x): return x * 2\n", "f", (Call("f(21)"),))


def answers(sandbox: Sandbox) -> bool:
    """Whether a sandbox runs a program."""
    return sandbox.run([DOUBLE])[0].outcomes[0].value == b"42"


@contextmanager
def sandbox_of(tier: str, **options: object) -> Iterator[LocalSandbox]:
    """A sandbox of this tier and no other; where there is none, the test is skipped."""
    with LocalSandbox(1, tiers=(tier,), **options) as sandbox:  # type: ignore[arg-type]
        try:
            assert sandbox.tier == tier
        except SandboxError as refusal:
            pytest.skip(str(refusal))
        yield sandbox


def busy_user(sandbox: str, ending: str) -> str:
    """Return a program that has a sandbox of a class, "module.Class", with a job that does not end, and ends meanwhile.

    It prints `ready` once its sandbox has answered, starts the job at the first line of its input and goes on to its
    ending at the second.
    """
    module, _, name = sandbox.rpartition(".")
    return f"""
import os, signal, sys, threading, time
from {module} import {name}
from codea1_env.sandbox.interface import Call, Job, Limits
sandbox = {name}(1)
busy = Job("def f():\\n    while True: pass\\n", "f", (Call("f()"),), limits=Limits(cpu_s=60, wall_s=60))
sandbox.run([Job("def f(): pass", "f")])
print("ready", flush=True)
input()
threading.Thread(target=sandbox.run, args=([busy],), daemon=True).start()
input()
{ending}
"""


class Wrapper(Closing):
    """Another sandbox, which it does not close: it is shared."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.name, self.guarantee, self._sandbox = sandbox.name, sandbox.guarantee, sandbox

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        return self._sandbox.run(jobs)

    def close(self) -> None:
        """Nothing of its own to end."""


class Counting(Wrapper):
    """Keeps the jobs that it is given."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self.jobs: list[Job] = []

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        self.jobs += jobs
        return super().run(jobs)
