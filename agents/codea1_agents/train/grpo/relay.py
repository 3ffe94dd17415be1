"""Reports of progress from Ray processes to the driver. A report that is lost changes nothing but what is shown."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from threading import Thread

from ray.exceptions import RayError
from ray.util.queue import Queue

from codea1_agents.train.grpo.progress import Part, Report


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """Sends reports from a Ray process to a `Relay`; it can be pickled."""

    queue: Queue

    def __call__(self, part: Part, n: int) -> None:
        """Send a report. It may be lost."""
        with suppress(RayError):
            self.queue.put_nowait((part, n))


class Relay:
    """Passes the reports of Ray processes on to a function, in a thread."""

    def __init__(self, report: Report) -> None:
        self._queue = Queue(actor_options={"num_cpus": 0})
        self.remote = RemoteReport(self._queue)
        self._report = report
        self._thread = Thread(target=self._pass_on, name="progress", daemon=True)
        self._thread.start()

    def _pass_on(self) -> None:
        with suppress(RayError):
            while (received := self._queue.get()) is not None:
                self._report(*received)

    def close(self) -> None:
        """End the thread."""
        with suppress(RayError):
            self._queue.put_nowait(None)
        self._thread.join()
        self._queue.shutdown(force=True)
