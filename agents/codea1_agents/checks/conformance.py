"""The tests of `codea1 check agent`: seeds, batches, unusual observations, errors, time, and what a game reads."""

from __future__ import annotations

import inspect
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any, Literal, get_args

from codea1_agents.checks.conformance_cases import CONFORMANCE_PROBLEMS, Case, cases
from codea1_agents.play.named_agent import is_text, no_text
from codea1_agents.play.own_code import describe_failure
from codea1_env.agent import Agent, AgentContext, AgentSpec, Role, agent_name, load_agent
from codea1_env.agent.threads import REPLY_TIMEOUT_S, CallThread, too_late, wait_within
from codea1_env.errors import AgentUnavailable, CodeA1Error, UserError
from codea1_env.facts.verdicts import CandidateReport
from codea1_env.rounds.referee import Referee
from codea1_env.rules.funnel import count_tests, funnel
from codea1_env.sandbox import Sandbox, load_sandbox

_SEEDS = (1, 2)


class Conformance(StrEnum):
    """The result of one test."""

    PASSED = auto()
    FAILED = auto()
    """A game would stop here, or the agent is too slow."""
    NOTED = auto()
    """Games can be played; the detail says what they lack."""
    SKIPPED = auto()
    """The test does not apply, or the agent was unavailable."""


@dataclass(frozen=True, slots=True)
class AgentFinding:
    """One test of one agent in one role."""

    role: Role
    name: str
    result: Conformance
    detail: str
    """Why the test did not pass, or what a game reads in the replies; else empty."""
    seconds: float
    """Wall-clock time; never part of a comparison."""
    traceback: str = ""
    """The traceback, if the agent raised an error."""


@dataclass(frozen=True, slots=True)
class AgentReport:
    """All tests of one agent."""

    agent: str
    findings: tuple[AgentFinding, ...]
    slowest_s: float
    """Longest time that one reply took, in seconds."""

    @property
    def ok(self) -> bool:
        """True iff no test failed."""
        return all(each.result is not Conformance.FAILED for each in self.findings)


class _Fault(Exception):
    """A test failed."""


class _Remark(Exception):
    """Games can be played, but the agent does not do what the test expects."""


class _NotApplicable(Exception):
    """A test does not apply to this agent."""


def check_agent(
    spec: AgentSpec,
    *,
    role: Role | Literal["both"] | None = None,
    sandbox: Sandbox | str = "local",
    slow_s: float = 60.0,
    reply_timeout_s: float | None = REPLY_TIMEOUT_S,
) -> AgentReport:
    """Run all tests on an agent and return their results.

    Args:
        spec: an agent, a function, or a name. A named agent is made once per role, so that the roles share no state; an
            agent that is an object is shared by the roles, and not closed.
        role: the role to test, or both; None: the role that the agent declares, else both.
        sandbox: judges the replies, and is in the context of agents that take one.
        slow_s: a reply that takes more seconds of wall-clock time than this fails the test.
        reply_timeout_s: seconds after which a call is given up; the agent's other tests are skipped then. None:
            never.

    Raises:
        UserError: the agent does not exist, cannot be made, or does not play that role or both.
    """
    context = AgentContext(CONFORMANCE_PROBLEMS, load_sandbox(sandbox) if isinstance(sandbox, str) else sandbox)
    one = None if role == "both" else role
    first = load_agent(spec, context, role=one)
    plays = getattr(first, "plays", None)
    if role == "both" and plays in get_args(Role):
        raise UserError(f"{agent_name(spec, first)} cannot be checked in both roles: it plays only the {plays}")
    roles: tuple[Role, ...] = (one,) if one else (plays,) if plays in get_args(Role) else get_args(Role)
    findings: list[AgentFinding] = []
    slowest = 0.0
    for number, each in enumerate(roles):
        agent = first if number == 0 else load_agent(spec, context)
        tests = _AgentTests(agent, each, slow_s, reply_timeout_s, context.sandbox)
        findings += tests.run(closing=isinstance(spec, str) or inspect.isclass(spec))
        slowest = max(slowest, tests.slowest_s)
    return AgentReport(agent_name(spec, first), tuple(findings), slowest)


class _AgentTests:
    """The tests of one agent in one role."""

    def __init__(self, agent: Agent, role: Role, slow_s: float, limit_s: float | None, sandbox: Sandbox) -> None:
        self._agent, self._role, self._slow_s, self._limit_s = agent, role, slow_s, limit_s
        self._referee = Referee(CONFORMANCE_PROBLEMS, sandbox=sandbox)
        self._thread, self._gave_up = CallThread("the agent"), False
        self._cases = {each.name: each for each in cases(role)}
        self._first_replies: dict[str, str] = {}
        self.slowest_s = 0.0

    def run(self, *, closing: bool) -> list[AgentFinding]:
        tests: dict[str, Callable[[], str | None]] = {
            f"answers {name} with text": lambda case=case: self._answers(case)  # type: ignore[misc]
            for name, case in self._cases.items()
        }
        tests |= {
            "same seed, same reply": self._same_seed,
            "batch equals single": self._batch_equals_single,
            "a batch's order does not matter": self._order_does_not_matter,
            "leaves the observation alone": self._leaves_observation_alone,
            f"answers within {self._slow_s:g} s": self._in_time,
            "programs load" if self._role == "coder" else "test cases are right": self._read,
        }
        if closing:
            tests["closes"] = self._closes
        findings = [self._run_test(name, test) for name, test in tests.items()]
        self._thread.end()
        return findings

    def _run_test(self, name: str, test: Callable[[], str | None]) -> AgentFinding:
        start = time.perf_counter()
        result, detail, traceback_text = Conformance.PASSED, "", ""
        try:
            if self._gave_up:
                raise _NotApplicable("an earlier call did not return")
            detail = test() or ""
        except _NotApplicable as reason:
            result, detail = Conformance.SKIPPED, str(reason)
        except _Remark as remark:
            result, detail = Conformance.NOTED, str(remark)
        except AgentUnavailable as reason:
            result, detail = Conformance.SKIPPED, f"unavailable: {reason}"
            if self._gave_up:
                result, detail = Conformance.FAILED, str(reason)
        except _Fault as fault:
            result, detail = Conformance.FAILED, str(fault)
        except (Exception, SystemExit) as error:  # noqa: BLE001  agents are anyone's code and may raise anything
            text = str(error) if isinstance(error, CodeA1Error) else describe_failure(error)
            result, detail = Conformance.FAILED, f"raises {text}"
            traceback_text = "".join(traceback.format_exception(error))
        return AgentFinding(self._role, name, result, detail, time.perf_counter() - start, traceback_text)

    def _call(self, function: Callable[..., Any], *arguments: object, n_replies: int = 1) -> Any:
        if self._limit_s is None:
            return function(*arguments)
        done = self._thread.submit(function, *arguments)
        if not wait_within(done, n_replies * self._limit_s):
            self._gave_up = True
            raise too_late("the agent", self._limit_s)
        return done.result()

    def _act(self, case: Case) -> str:
        start = time.perf_counter()
        reply: object = self._call(self._agent.act, dict(case.observation), dict(case.info))
        self.slowest_s = max(self.slowest_s, time.perf_counter() - start)
        return _text(reply)

    def _answers(self, case: Case) -> None:
        self._first_replies[case.name] = self._act(case)

    def _reset(self, seed: int) -> None:
        reset = getattr(self._agent, "reset", None)
        if callable(reset):
            self._call(reset, seed)

    def _ordinary(self) -> list[Case]:
        return [self._cases[name] for name in ("an ordinary observation", "a second round", "a Unicode observation")]

    def _replies(self, seed: int) -> list[str]:
        self._reset(seed)
        return [self._act(case) for case in self._ordinary()]

    def _same_seed(self) -> None:
        for seed in _SEEDS:
            if self._replies(seed) != self._replies(seed):
                without = "" if callable(getattr(self._agent, "reset", None)) else " (it has no reset(seed))"
                raise _Remark(f"replies differ after the same seed{without}, so a run cannot be repeated")

    def _batch(self, some: list[Case]) -> list[str]:
        act_batch = getattr(self._agent, "act_batch", None)
        if not callable(act_batch):
            raise _NotApplicable("has no act_batch")
        given = [dict(each.observation) for each in some], [dict(each.info) for each in some]
        replies: Any = self._call(act_batch, *given, n_replies=len(some))
        if not isinstance(replies, list | tuple) or len(replies) != len(some):
            raise _Fault(f"act_batch must return a list of {len(some)} replies")
        for reply in replies:
            if isinstance(reply, AgentUnavailable):
                raise reply
        return [_text(reply) for reply in replies]

    def _batch_equals_single(self) -> None:
        some = self._ordinary()
        self._reset(_SEEDS[0])
        batch = self._batch(some)
        for case, reply in zip(some, batch, strict=True):
            self._reset(_SEEDS[0])
            if self._act(case) != reply:
                raise _Remark(
                    f"the reply to {case.name} differs between a batch and a single call, after the same seed"
                )

    def _order_does_not_matter(self) -> None:
        some = self._ordinary()
        self._reset(_SEEDS[0])
        forth = self._batch(some)
        self._reset(_SEEDS[0])
        back = self._batch(some[::-1])[::-1]
        if forth != back:
            raise _Remark("the same observations in another order get other replies, after the same seed")

    def _leaves_observation_alone(self) -> None:
        case = self._cases["an ordinary observation"]
        observation, info = dict(case.observation), dict(case.info)
        self._call(self._agent.act, observation, info)
        if observation != dict(case.observation) or info != dict(case.info):
            raise _Remark("act changes its observation or its info")

    def _in_time(self) -> None:
        if self.slowest_s > self._slow_s:
            raise _Fault(f"one reply took {self.slowest_s:.1f} s")

    def _read(self) -> str:
        """Judge the first reply to each observation and return what a game reads in them."""
        if not self._first_replies:
            raise _NotApplicable("no reply to read")
        asked, replies = [self._cases[name] for name in self._first_replies], list(self._first_replies.values())
        programs, suites = replies, None
        if self._role == "tester":
            programs, suites = [case.observation["program"] for case in asked], replies
        scored = self._referee.rewards([case.info["problem_id"] for case in asked], programs, suites)
        if masked := [each.masked_because for each in scored if each.masked_because]:
            raise _NotApplicable(masked[0])
        reports = [each.report for each in scored if each.report is not None]
        return _read_programs(reports) if self._role == "coder" else _read_suites(reports)

    def _closes(self) -> None:
        close = getattr(self._agent, "close", None)
        if not callable(close):
            raise _NotApplicable("has no close")
        self._call(close)


def _text(reply: object) -> str:
    if not is_text(reply):
        raise _Fault(f"returns {no_text(reply)}, expected text (str)")
    return reply


def _read_programs(reports: Sequence[CandidateReport]) -> str:
    faults = [(each.verdict.value, each.detail) for each in reports if not each.loads]
    return _with_faults(f"{len(reports) - len(faults)} of {len(reports)} programs load", faults)


def _read_suites(reports: Sequence[CandidateReport]) -> str:
    cases = [case for report in reports for case in report.suites[0].cases]
    rejections = [each for report in reports for each in report.suites[0].suite.rejections]
    judged = ((case.answer_right, case.case.is_example, case.verdict) for case in cases)
    _, n_read, n_right, *_ = (stage.n for stage in funnel(count_tests(judged, (each.reason for each in rejections))))
    told = f"{len(reports)} replies: {n_read} test cases can be read, {n_right} of them are right"
    return _with_faults(told, [(each.reason.value, each.detail or each.source) for each in rejections])


def _with_faults(told: str, faults: Sequence[tuple[str, str]]) -> str:
    """Return what was read.

    Raises:
        _Remark: there are faults, each a reason and a detail; it has the count and the first detail of each reason.
    """
    first = dict(reversed(faults))
    counts = Counter(reason for reason, _ in faults).most_common()
    if counts:
        why = (f"{n} {reason.replace('_', ' ')} ({first[reason]:.100})" for reason, n in counts)
        raise _Remark(f"{told}; rejected: {', '.join(why)}")
    return told
