"""Judges what requests ask for: the work behind the routes, which blocks and knows no HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from codea1_env.errors import UserError
from codea1_env.problems.own_rows import problem_from_row
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.problems.sources import ProblemSource, load_problems
from codea1_env.python_text import TextBudget, UnreadableError
from codea1_env.rounds.referee import Referee
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox.interface import Sandbox
from codea1_env.sandbox.job_json import jobs_from_json, reports_to_json
from codea1_env.service.bodies import JudgeAnswer, JudgedItem, JudgeRequest, require_few_values
from codea1_env.service.bounds import ServiceBounds

_N_RULESETS = 8
"""Referees that keep their caches of solutions' values."""


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
        self._referee = lru_cache(_N_RULESETS)(partial(Referee, self.problems, sandbox=sandbox))

    def judge(self, body: bytes) -> JudgeAnswer:
        """Judge the programs and suites of a request; waits.

        Raises:
            UserError: it is not a request, exceeds a bound, or names a problem or rules that cannot be used.
            SandboxError: the sandbox cannot be used at all.
        """
        require_few_values(body, self.bounds.max_values)
        request = JudgeRequest.of(body)
        if len(request.problem_ids) > self.bounds.max_items:
            raise UserError(f"a request may have at most {self.bounds.max_items} programs")
        limits = None if request.limits is None else self.bounds.require_allowed(request.limits)
        rules = request.rules or self.rules
        if not request.problems:
            self.problems.by_id(request.problem_ids[0])  # a referee needs a problem
            new_referee: Callable[..., Referee] = self._referee
        else:
            new_referee = partial(Referee, self._with_posted(request), sandbox=self.sandbox)
        referee = new_referee(rules, limits=limits, golden=request.golden)
        programs, suites = request.replies()
        scored = referee.rewards(request.problem_ids, programs, suites, replayed=request.cases())
        return JudgeAnswer(items=tuple(map(JudgedItem.of, scored)))

    def run_jobs(self, body: bytes) -> bytes:
        """Run the jobs of a request and return the response; both are JSON of `sandbox.job_json`.

        Raises:
            UserError: the body is none of jobs, or a bound is exceeded.
            SandboxError: the sandbox cannot be used at all.
        """
        require_few_values(body, self.bounds.max_values)
        jobs = jobs_from_json(body)
        if len(jobs) > self.bounds.max_items:
            raise UserError(f"a request may have at most {self.bounds.max_items} jobs")
        for job in jobs:
            self.bounds.require_allowed(job.limits)
        return reports_to_json(self.sandbox.run(jobs) if jobs else [])

    def _with_posted(self, request: JudgeRequest) -> ProblemSet:
        posted = ProblemSet("this request", posted_problems(request.problems))
        own = {problem.id for problem in posted}
        others = dict.fromkeys(name for name in request.problem_ids if name not in own)
        return ProblemSet("this request", (*posted, *map(self.problems.by_id, others)))


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
