"""Reports as they come, and from asynchronous code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from codea1_env.errors import SandboxError
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox import Call, Guarantee, Job, JobReport, Limits, as_completed, run_async, stream
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.values import encode

SLEEPS = "import time\ndef f(x): time.sleep(x); return x"
QUICK = "def f(x): return x"


def job(program: str, argument: float) -> Job:
    return Job(program, "f", (Call(f"f({argument})"),))


class InOrder:
    """A back end that does not stream."""

    name = "in order"
    guarantee = Guarantee.TRUSTED_ONLY

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        return [JobReport(Outcome(OutcomeKind.VALUE, encode(None)), ()) for _ in jobs]

    def close(self) -> None:
        """Nothing to end."""


def values(reports: Sequence[JobReport]) -> list[bytes | None]:
    return [report.outcomes[0].value for report in reports]


def test_a_quick_job_does_not_wait_for_a_slow_one() -> None:
    with LocalSandbox(2) as sandbox:
        found = [each.position for each in as_completed(sandbox, [job(SLEEPS, 0.5), job(QUICK, 1), job(QUICK, 2)])]
    assert sorted(found) == [0, 1, 2]
    assert found[-1] == 0


def test_leaving_early_cancels_the_rest() -> None:
    with LocalSandbox(2) as sandbox:
        started = time.monotonic()
        reports = as_completed(sandbox, [job(QUICK, 1), *[job(SLEEPS, 5)] * 20])
        assert next(reports).position == 0
        reports.close()
        assert values(sandbox.run([job(QUICK, 3)])) == [b"3"]
        assert time.monotonic() - started < 4


def test_no_jobs_give_no_reports(sandbox: LocalSandbox) -> None:
    assert list(as_completed(sandbox, [])) == []
    assert asyncio.run(run_async(sandbox, [])) == []


def test_a_back_end_that_does_not_stream_gives_all_in_order() -> None:
    assert [each.position for each in as_completed(InOrder(), [job(QUICK, 1), job(QUICK, 2)])] == [0, 1]


def test_an_error_arrives_where_the_reports_are_awaited(sandbox: LocalSandbox) -> None:
    async def lost() -> None:
        async for _ in stream(Failing(), [job(QUICK, 1)]):
            pass

    class Failing(InOrder):
        def run(self, jobs: Sequence[Job]) -> list[JobReport]:
            raise SandboxError("gone")

    with pytest.raises(SandboxError, match="gone"):
        asyncio.run(lost())


def test_the_event_loop_goes_on_while_programs_run(sandbox: LocalSandbox) -> None:
    async def both() -> list[str]:
        seen: list[str] = []

        async def tick() -> None:
            await asyncio.sleep(0.05)
            seen.append("tick")

        async def run() -> None:
            reports = await run_async(sandbox, [job(SLEEPS, 0.3), job(QUICK, 7)])
            assert values(reports) == [b"0.3", b"7"]
            seen.append("done")

        await asyncio.gather(tick(), run())
        return seen

    assert asyncio.run(both()) == ["tick", "done"]


def test_a_task_that_is_cancelled_leaves_the_sandbox_usable(sandbox: LocalSandbox) -> None:
    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run_async(sandbox, [job(SLEEPS, 1)] * 3), timeout=0.2)

    asyncio.run(give_up())
    assert values(sandbox.run([job(QUICK, 5)])) == [b"5"]


def test_a_sandbox_closed_meanwhile_says_so() -> None:
    sandbox = LocalSandbox(1)
    reports = as_completed(sandbox, [job(QUICK, 1), Job("import time\ntime.sleep(9)", "f", limits=Limits(wall_s=20))])
    assert next(reports).position == 0
    sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        next(reports)
