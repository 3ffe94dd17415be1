"""A sandbox in a package of its own: copy the folder, change the names, and replace `run`."""

from collections.abc import Sequence

from codea1_env.sandbox import Closing, Guarantee, Job, JobReport, load_sandbox
from codea1_env.sandbox.shared import one_per_process


class MeteredSandbox(Closing):
    """Counts what it sends to the local sandbox; yours may send jobs to other machines."""

    name = "metered"

    def __init__(self) -> None:
        self._local = load_sandbox("local")
        self.n_jobs = 0
        self.cpu_s = 0.0

    @property
    def guarantee(self) -> Guarantee:
        """What it promises here; the local sandbox keeps the promise."""
        return self._local.guarantee

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Return one report per job, in order; a job that could not be run has outcomes of kind INTERNAL_ERROR."""
        reports = self._local.run(jobs)
        self.n_jobs += len(jobs)
        self.cpu_s += sum(report.cpu_s for report in reports)
        return reports

    def close(self) -> None:
        """End every process; a later `run` starts new ones."""
        self._local.close()


@one_per_process
def shared() -> MeteredSandbox:
    """Return the sandbox of this process: all its users share one."""
    return MeteredSandbox()
