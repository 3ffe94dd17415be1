"""Judges what requests ask for: the work behind the routes, which blocks and knows no HTTP."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any

from codea1_env.errors import UserError
from codea1_env.problems.own_rows import problem_from_row
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.problems.sources import ProblemSource, load_problems
from codea1_env.python_text import TextBudget, UnreadableError
from codea1_env.records.closing import Closing
from codea1_env.records.faults import count_values
from codea1_env.rounds.referee import Referee, Scored
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox.interface import Guarantee, Job, JobReport, Sandbox
from codea1_env.sandbox.job_json import jobs_from_json, reports_to_json
from codea1_env.sandbox.local import LocalSandbox
from codea1_env.service.admission import HOLDING, Refused
from codea1_env.service.bodies import JudgeAnswer, JudgedItem, JudgeRequest
from codea1_env.service.bounds import ServiceBounds

_N_RULESETS = 4
"""Referees that keep their caches of solutions' values, 64 MiB each."""
_VALUE_BYTES, _CASE_BYTES = 128, 3072
"""About what an object, array, key or item of a body takes, and a case with its verdict, apart from their texts."""


class _Metered(Closing):
    """A sandbox whose reports the request that runs here holds. It closes nothing: the sandbox is shared."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.name, self._sandbox = sandbox.name, sandbox

    @property
    def guarantee(self) -> Guarantee:
        return self._sandbox.guarantee

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        hold = HOLDING.get().take
        if isinstance(self._sandbox, LocalSandbox):
            return self._sandbox.run(jobs, hold)
        reports = self._sandbox.run(jobs)
        hold(sum(report.n_bytes for report in reports))
        return reports

    def close(self) -> None:
        """Nothing of its own to end."""


class ServedJudge:
    """Judges requests with one sandbox, about the server's problems and those that requests bring. Thread-safe.

    The values of the server's solutions are cached. Problems of a request are judged by a referee of their own, which
    ends with the request: no client can change the answers that another gets, nor fill memory with values.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        problems: ProblemSource = (),
        rules: str | Ruleset = "fixed",
        *,
        bounds: ServiceBounds | None = None,
    ) -> None:
        """Make a judge.

        Args:
            sandbox: where programs run; the caller closes it.
            problems: that requests may name; none: they bring their own.
            rules: what requests that name no rules get.
            bounds: on requests.

        Raises:
            UserError: the problems cannot be loaded, or the rules are unknown.
        """
        self.sandbox = sandbox
        self.problems = load_problems(problems) if problems else ProblemSet("this server", ())
        self.rules = preset(rules) if isinstance(rules, str) else rules
        self.bounds = bounds or ServiceBounds()
        self._metered = _Metered(sandbox)
        self._referee = lru_cache(_N_RULESETS)(partial(Referee, self.problems, sandbox=self._metered))

    def judge(self, body: bytes) -> list[bytes]:
        """Judge the programs and suites of a request; waits.

        Returns:
            The parts of a `JudgeAnswer` as JSON.

        Raises:
            UserError: it is not a request, exceeds a bound, or names a problem or rules that cannot be used.
            Refused: it takes too much memory.
            SandboxError: the sandbox cannot be used at all.
        """
        self._hold_values(body)
        request = JudgeRequest.of(body)
        if len(request.problem_ids) > self.bounds.max_items:
            raise UserError(f"a request may have at most {self.bounds.max_items} programs")
        limits = None if request.limits is None else self.bounds.require_allowed(request.limits)
        rules = request.rules or self.rules
        if not request.problems:
            self.problems.by_id(request.problem_ids[0])  # a referee needs a problem
            new_referee: Callable[..., Referee] = self._referee
        else:
            new_referee = partial(Referee, self._with_posted(request), sandbox=self._metered)
        referee = new_referee(rules, limits=limits, golden=request.golden)
        programs, suites = request.replies()
        replayed, hold = request.cases(), HOLDING.get().take
        for problem_id, suite in zip(request.problem_ids, suites or [None] * len(programs), strict=True):
            n_golden = len(referee.problems.by_id(problem_id).golden) if referee.judge.golden else 0
            n_cases = len(replayed.get(problem_id, ())) + (0 if suite is None else referee.rules.tests_per_suite)
            hold(_CASE_BYTES * (n_golden + n_cases))
        scored = referee.rewards(request.problem_ids, programs, suites, replayed=replayed)

        def item(one: Scored) -> bytes:
            report = one.report
            of_suites = [case for suite in report.suites for case in suite.cases] if report else []
            hold(sum(len(case.case.expected) for case in (*(report.replayed if report else ()), *of_suites)))
            return JudgedItem.of(one).model_dump_json().encode()

        begin, end = JudgeAnswer(items=()).model_dump_json().encode().split(b"[]")
        return [begin, *_array(map(item, scored)), end]

    def run_jobs(self, body: bytes) -> list[bytes]:
        """Run the jobs of a request; waits.

        Returns:
            The parts of the response; it and the body are JSON of `sandbox.job_json`.

        Raises:
            UserError: the body is none of jobs, or a bound is exceeded.
            Refused: it takes too much memory.
            SandboxError: the sandbox cannot be used at all.
        """
        self._hold_values(body)
        jobs = jobs_from_json(body)
        if len(jobs) > self.bounds.max_items:
            raise UserError(f"a request may have at most {self.bounds.max_items} jobs")
        for job in jobs:
            self.bounds.require_allowed(job.limits)
        reports = deque(self._metered.run(jobs) if jobs else ())

        def write_reports() -> Iterator[bytes]:
            while reports:  # none stays beside all that is written
                report = reports.popleft()
                yield reports_to_json([report])[1:-1]
                HOLDING.get().take(-report.n_bytes)

        return [*_array(write_reports())]

    def _hold_values(self, body: bytes) -> None:
        """Hold what reading a body will make of it: once its text, which is decoded, and once its values."""
        n_values = count_values(body)
        if n_values > (most := self.bounds.max_values):
            fault = f"the body must have at most {most} objects, arrays, keys and items"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, fault)
        HOLDING.get().take(2 * len(body) * (1 if body.isascii() else 4) + _VALUE_BYTES * n_values)

    def _with_posted(self, request: JudgeRequest) -> ProblemSet:
        posted = ProblemSet("this request", posted_problems(request.problems))
        own = {problem.id for problem in posted}
        others = dict.fromkeys(name for name in request.problem_ids if name not in own)
        return ProblemSet("this request", (*posted, *map(self.problems.by_id, others)))


def _array(items: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts of a JSON array; the request holds the items."""
    mark = b"["
    for item in items:
        HOLDING.get().take(len(item))
        yield from (mark, item)
        mark = b","
    yield b"]" if mark == b"," else b"[]"


def posted_problems(rows: Sequence[dict[str, Any]]) -> tuple[Problem, ...]:
    """Read the problems that a request brings, with the fields of this project's own rows.

    Raises:
        UserError: a row is faulty, or all of them together cost more than a `TextBudget` to read.
    """
    budget = TextBudget()
    try:
        for text in _texts(rows):
            budget.take_parsing(text)
    except UnreadableError as error:
        raise UserError(f"the problems of a request take too long to read: {error.detail}") from error
    return tuple(map(problem_from_row, rows))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
