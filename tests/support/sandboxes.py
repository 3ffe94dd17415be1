"""Sandboxes around a real one."""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.sandbox import Job, JobReport, Sandbox


class Wrapper:
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
