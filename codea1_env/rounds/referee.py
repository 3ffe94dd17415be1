"""The referee: judges raw replies for trainers, drivers and scripts, with given problems, rules, sandbox and limits.

::

    referee = Referee("starter", "fixed")
    scored = referee.rewards(["starter/count_carries"], ["def count_carries..."], ["assert count_carries(5, 5) == 1"])
    scored[0].coder, scored[0].tester, scored[0].masked_because, scored[0].parts
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from math import isnan
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from codea1_env.errors import AgentUnavailable, SandboxError, UserError, as_lists, of_type
from codea1_env.facts.submissions import Candidate, Role
from codea1_env.facts.verdicts import CandidateReport, GoldenFinding, ValidCase, Verdict
from codea1_env.judging.golden import golden_reports, run_golden
from codea1_env.judging.judge import Judge
from codea1_env.plugins import names
from codea1_env.problems import Problem, ProblemSource, load_problems
from codea1_env.records.closing import Closing
from codea1_env.rounds.rounds import JudgedTree, Program, RoundOptions, Rounds, Tree, candidate_of, require_golden_tests
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits, Sandbox, load_sandbox

_P = ParamSpec("_P")
_T = TypeVar("_T")

Reply: TypeAlias = str | AgentUnavailable | Sequence[Mapping[str, Any]]
"""A raw reply; the reason why there is none; or chat messages, whose last `content` is the reply. None there, as in a
refusal or a call of a tool, is an empty reply."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The rewards of one program and of the suite that it ran."""

    problem_id: str
    coder: float | None
    """The program's reward; None where masked."""
    tester: float | None
    """The suite's reward; None if it is masked, or without a suite."""
    masked_because: str = ""
    """Why `coder`, or the `tester` of a suite, is None; empty if neither is."""
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By role, the weighted terms, which add up to the reward; {} where masked."""
    report: CandidateReport | None = None
    """All verdicts; None: the sandbox could not be used at all."""

    def __repr__(self) -> str:
        why = f" ({self.masked_because:.60})" if self.masked_because else ""
        return f"<Scored {self.problem_id:.60}: coder {self.coder}, tester {self.tester}{why}>"

    def reward(self, role: Role) -> float | None:
        """Return the reward of one role; None where masked."""
        return self.coder if role == "coder" else self.tester

    def record(self) -> dict[str, Any]:
        """Return all fields but the report as plain data for a log: JSON without nan.

        `loads` says whether the program could be loaded (`passed`), or why not; `verdict` is `passed` iff the program
        has passed all tests, too.
        """
        report = self.report
        cases = [case for suite in report.suites for case in suite.cases] if report is not None else []
        verdict = None  # the first on the program and its tests that is not PASSED
        if report is not None:
            golden = Verdict.PASSED if report.golden_pass_rate in (None, 1.0) else Verdict.WRONG_ANSWER
            verdicts = (report.verdict, *(case.verdict for case in cases), golden)
            verdict = next((it.value for it in verdicts if it is not Verdict.PASSED), Verdict.PASSED.value)
        return {
            "problem_id": self.problem_id,
            "coder": self.coder,
            "tester": self.tester,
            "masked_because": self.masked_because,
            "parts": {role: dict(terms) for role, terms in self.parts.items()},
            "loads": None if report is None else report.verdict.value,
            "verdict": verdict,
            "golden_pass_rate": None if report is None else report.golden_pass_rate,
            "new_tests": len(cases),
            "passed_tests": sum(case.verdict is Verdict.PASSED for case in cases),
        }


class Referee(Closing):
    """Judges replies about a set of problems under one ruleset. Thread-safe where the sandbox is.

    Use it where another program owns the loop, such as a trainer that has replies and wants their rewards:

    >>> from codea1_env import Referee
    >>> referee = Referee("starter")
    >>> programs, suites = ["def count_carries(a, b): return 0"], ["assert count_carries(5, 5) == 1"]
    >>> (scored,) = referee.rewards(["starter/count_carries"], programs, suites)
    >>> scored.coder, scored.tester
    (0.0, 0.125)

    It pickles: the receiving process opens the sandbox by its name and starts with an empty cache of solutions' values.
    """

    def __init__(
        self,
        problems: ProblemSource,
        rules: str | Ruleset = "fixed",
        *,
        sandbox: Sandbox | str = "local",
        limits: Limits | None = None,
        golden: bool | None = None,
    ) -> None:
        """Make a referee; it starts nothing before it judges the first reply.

        Args:
            problems: a source that `load_problems` takes.
            rules: a ruleset or the name of one.
            sandbox: a back end or its name; users of the same name in a process share one.
            limits: bounds per call of a program; None: the defaults of `Limits`.
            golden: whether reports state golden pass rates; None: iff the rules pay for golden tests.

        Raises:
            UserError: an argument is invalid, the problems are empty, or the rules pay for golden tests and a
                problem has none.
        """
        self.problems = load_problems(problems)
        self.rules = of_type("rules", preset(rules) if isinstance(rules, str) else rules, Ruleset)
        limits = None if limits is None else of_type("limits", limits, Limits)
        require_golden_tests(self.problems, self.rules)
        self.sandbox = load_sandbox(sandbox)
        self.judge = Judge(self.sandbox, self.rules, limits=limits, golden=golden)
        self._sandbox_name = sandbox if isinstance(sandbox, str) else self.sandbox.name
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None

    def __repr__(self) -> str:
        return f"<Referee {self.problems.name:.60}, {len(self.problems)} problems; rules {self.rules.name:.40}>"

    def open(self, trees: Sequence[Tree], options: RoundOptions | None = None) -> Rounds:
        """Begin a round of a batch of trees; their problems need not be among the referee's.

        Args:
            trees: one per problem to play.
            options: how the trees are played.

        Raises:
            UserError: one is not a tree, or the rules pay for golden tests and a problem has none.
        """
        trees = [of_type("trees", tree, Tree) for tree in as_lists(trees=trees)[0]]
        require_golden_tests([tree.problem for tree in trees], self.rules)
        return Rounds(trees, self.judge, options)

    def start(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Start a method of a round on the referee's thread and return at once.

        There is one thread for all rounds, so they share the sandbox one after the other, in the order of the calls.

        Returns:
            The future whose `result()` waits.
        """
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="codea1-judging")
            return self._thread.submit(work, *args, **kwargs)

    def rewards(
        self,
        problem_ids: Sequence[str],
        programs: Sequence[Reply],
        suites: Sequence[Reply | None] | None = None,
        *,
        replayed: Mapping[str, Sequence[ValidCase]] | None = None,
    ) -> list[Scored]:
        """Return the rewards of programs and their suites, each pair by itself, in order; waits.

        All pairs share the calls of the sandbox, so pass a whole batch. Schemes that compare candidates (`cure`,
        `learnability`) compare nothing here: open a `Tree` for them.

        Args:
            problem_ids: (B,) of problems of the referee; may repeat.
            programs: (B,) a coder's reply each.
            suites: (B,) a tester's reply each, None where there is none; None: there are none at all.
            replayed: by problem, the cases of the Mistake Book that every program runs.

        Returns:
            (B,). Where the sandbox fails, rewards are masked.

        Raises:
            UnknownName: no problem has this id.
            UserError: the lengths differ, or a reply is neither text nor chat messages.
        """
        given = {"problem_ids": problem_ids, "programs": programs} | ({} if suites is None else {"suites": suites})
        ids, replies, *tests = as_lists(**given)
        suites_of = [
            () if reply is None else (reply_text(reply),) for reply in (tests[0] if tests else [None] * len(ids))
        ]
        rows = list(zip(map(reply_text, replies), suites_of, strict=True))
        cases = of_type("replayed", replayed or {}, Mapping)  # type: ignore[type-abstract]  # python/mypy#4717
        places: dict[str, list[int]] = {}
        for position, problem_id in enumerate(ids):
            places.setdefault(self.problems.by_id(problem_id).id, []).append(position)
        trees = [
            Tree(self.problems.by_id(name), len(rows_of), 1, replayed=tuple(cases.get(name, ())))
            for name, rows_of in places.items()
        ]
        options = RoundOptions(skips_invalid=False, masks_sandbox_errors=True)
        rounds, in_order = self.open(trees, options), [position for of_tree in places.values() for position in of_tree]
        rounds.submit_programs([rows[position][0] for position in in_order])
        sizes = [[len(rows[position][1]) for position in of_tree] for of_tree in places.values()]
        rounds.submit_suites([suite for position in in_order for suite in rows[position][1]], sizes)
        scored = (_score_candidate(judged, n) for judged in rounds.results() for n in range(judged.tree.n_candidates))
        by_position = dict(zip(in_order, scored, strict=True))
        return [by_position[position] for position in range(len(rows))]

    async def arewards(
        self,
        problem_ids: Sequence[str],
        programs: Sequence[Reply],
        suites: Sequence[Reply | None] | None = None,
        *,
        replayed: Mapping[str, Sequence[ValidCase]] | None = None,
    ) -> list[Scored]:
        """Return the result of `rewards` without blocking the event loop."""
        return await asyncio.to_thread(self.rewards, problem_ids, programs, suites, replayed=replayed)

    def golden(self, problem_ids: Sequence[str], programs: Sequence[Reply]) -> list[GoldenFinding]:
        """Run programs on all golden tests of their problems and return the findings, in order; waits.

        The referee's rules decide how programs are read and values compared; the limits are those of evaluations
        (`judging.golden.PROGRAM_LIMITS`). Each distinct program of a problem runs once.

        Args:
            problem_ids: (B,) of problems of the referee that have golden tests; may repeat.
            programs: (B,) a coder's reply each.

        Raises:
            UnknownName: no problem has this id.
            UserError: the lengths differ, or a reply is neither text nor chat messages.
            SandboxError: the sandbox cannot be used at all.
        """
        ids, given = as_lists(problem_ids=problem_ids, programs=programs)
        replies = list(map(reply_text, given))
        read = self._read(ids, replies)
        findings = run_golden([(problem, it.program) for problem, it in read], self.sandbox, self.rules.comparison)
        return [
            GoldenFinding(None, None, Verdict.INTERNAL_ERROR, str(reply), "agent")
            if isinstance(reply, AgentUnavailable)
            else replace(
                each,
                detail=candidate.rejection.detail if candidate.rejection else each.detail,
                program=candidate.program,
                n_own_tests=candidate.n_own_tests,
            )
            for each, reply, (_, candidate) in zip(findings, replies, read, strict=True)
        ]

    def golden_reports(self, problem_ids: Sequence[str], programs: Sequence[str]) -> list[CandidateReport]:
        """Return reports on programs, in order, as if the golden tests of each problem were its suite; waits.

        Arguments and errors are those of `golden`, but every program is text.
        """
        return golden_reports(self._read(problem_ids, programs), self.sandbox, self.rules.comparison)

    def _read(self, problem_ids: Sequence[str], replies: Sequence[Program]) -> list[tuple[Problem, Candidate]]:
        problems = map(self.problems.by_id, problem_ids)
        return [(each, candidate_of(reply, each, self.rules)) for each, reply in zip(problems, replies, strict=True)]

    def loaded_program(self, problem: Problem, reply: str) -> str | None:
        """Return the program in a coder's reply, or None if it does not load, as a tester then never sees it; waits.

        Args:
            problem: need not be among the referee's.
            reply: the coder's, as text.

        Raises:
            UserError: the reply is not text.
        """
        rounds = self.open([Tree(problem)], RoundOptions(masks_sandbox_errors=True))
        rounds.submit_programs([reply])
        return rounds.candidates()[0][0].program if rounds.tester_turns() else None

    def close(self) -> None:
        """End the referee's thread. The sandbox is shared and stays open."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._sandbox_name not in names("sandboxes") and ":" not in self._sandbox_name:
            raise UserError(f"a referee pickles its sandbox by name, but {self._sandbox_name!r} is not registered")
        settings: dict[str, Any] = {
            "sandbox": self._sandbox_name,
            "limits": self.judge.limits,
            "golden": self.judge.golden,
        }
        return partial(Referee, self.problems, self.rules, **settings), ()


def judge(
    problem: Problem,
    program: Reply,
    tests: Reply | Sequence[Reply],
    rules: str | Ruleset = "fixed",
    *,
    sandbox: Sandbox | str = "local",
    limits: Limits | None = None,
    golden: bool | None = None,
) -> CandidateReport:
    """Judge one program by one or several suites of tests, as a round of the game does; waits.

    >>> from codea1_env import judge, load_problems
    >>> problem = load_problems("starter").by_id("starter/count_carries")
    >>> report = judge(problem, "def count_carries(a, b): return 0", "assert count_carries(5, 5) == 1")
    >>> report.loads, report.passes
    (True, False)
    >>> [(case.verdict.value, case.actual, case.answer_right) for case in report.suites[0].cases]
    [('wrong_answer', '0', True)]

    Args:
        problem: its solution says which tests are right.
        program: a coder's reply: Python text, with or without prose around it, or chat messages.
        tests: a tester's reply, in the same forms; or a list of M of them.
        rules: a ruleset or the name of one.
        sandbox: a back end or its name.
        limits: bounds per call of the program; None: the defaults of `Limits`.
        golden: whether the report states a golden pass rate; None: iff the rules pay for golden tests.

    Returns:
        The verdict on the program, and on each case of the (M,) `suites`. Which tests were rejected, and why, stands in
        `suites[0].suite.rejections`; `codea1_env.score` makes rewards of it.

    Raises:
        UserError: an argument has an invalid value.
        SandboxError: the sandbox cannot be used at all.
    """
    if not isinstance(problem, Problem):
        raise UserError(f"problem must be one, such as load_problems('starter')[0], got {problem!r:.80}")
    if isinstance(tests, list | tuple) and not tests:
        raise UserError("tests must be a reply or a list of at least one, got an empty list")
    referee = Referee([problem], rules, sandbox=sandbox, limits=limits, golden=golden)
    # A list holds replies; chat messages, which are mappings, are one.
    are_many = isinstance(tests, list | tuple) and all(isinstance(item, str | list | tuple) for item in tests)
    suites = [reply_text(reply) for reply in (cast(Sequence[Reply], tests) if are_many else [cast(Reply, tests)])]
    rounds = referee.open([Tree(problem, 1, len(suites))], RoundOptions(skips_invalid=False, masks_sandbox_errors=True))
    rounds.submit_programs([reply_text(program)])
    rounds.submit_suites(suites, [[len(suites)]])
    (judged,) = rounds.results()
    if judged.report is None:
        raise SandboxError(judged.why_masked(0))
    return judged.report.candidates[0]


def reply_text(given: object) -> str | AgentUnavailable:
    """Return the text of a reply, or the reason why there is none.

    Args:
        given: text; a chat message, as a mapping or an object with `content`; or several turns, of which the last one
            of the assistant counts, or the last one where none says so. The content is text or typed parts, of which
            those of text count.

    Raises:
        UserError: it is neither text nor chat messages.
    """
    if isinstance(given, str | AgentUnavailable):
        return given
    turns = given if isinstance(given, Sequence) else [given]
    said = [turn for turn in turns if _field(turn, "role") == "assistant"] or turns
    content = _field(said[-1], "content") if said else 0
    try:
        return content if isinstance(content, str) else "".join(map(_part_text, () if content is None else content))  # type: ignore[call-overload]
    except TypeError:
        raise UserError(f"a reply must be text or chat messages that end with one, got {given!r:.100}") from None


def _field(message: object, name: str) -> object:
    """Return a field of a chat message; 0 where it has none, since None is a message without text."""
    return message.get(name, 0) if isinstance(message, Mapping) else getattr(message, name, 0)


def _part_text(part: object) -> str:
    """Return the text of one typed part; empty for parts that hold something else, such as reasoning and images."""
    if isinstance(part, str):
        return part
    kind, text = _field(part, "type"), _field(part, "text")
    if not isinstance(kind, str):
        raise TypeError
    return text if kind in ("text", "output_text") and isinstance(text, str) else ""


def _score_candidate(judged: JudgedTree, n: int) -> Scored:
    """Return the rewards of one candidate of a tree, which has at most one suite."""
    coder, has_suite = float(judged.coder_rewards[n]), bool(judged.suites[n])
    tester = float(judged.tester_rewards[n, 0])
    rewards = judged.rewards[n] if judged.rewards else None
    parts: dict[str, Mapping[str, float]] = {"coder": {}, "tester": {}}
    if rewards is not None and not isnan(coder):
        parts["coder"] = rewards.coder.weighted()
    if rewards is not None and not isnan(tester):
        parts["tester"] = rewards.testers[0].weighted()
    why = judged.why_masked(n) if isnan(coder) or (has_suite and isnan(tester)) else ""
    return Scored(
        problem_id=judged.tree.problem.id,
        coder=None if isnan(coder) else coder,
        tester=None if isnan(tester) else tester,
        masked_because=why,
        parts=parts,
        report=judged.report.candidates[n] if judged.report is not None else None,
    )
