"""The agents' inputs: observations, feedback between rounds, and infos. Pure.

Infos are plain data that compares with `==` and is the same in every process: no times, paths, process ids or nan.
"""

from __future__ import annotations

import hashlib
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory

from codea1_env import values
from codea1_env.errors import UserError
from codea1_env.facts.answers import AnswerOrder
from codea1_env.facts.verdicts import CandidateReport, SuiteReport, Verdict
from codea1_env.problems.problem import Problem
from codea1_env.rules.rewards import with_decided

MAX_PROBLEM_CHARS = 65_536
MAX_REPLY_CHARS = 1_048_576
_MAX_CASES_SHOWN = 10
_ORDER_NOTES = {
    AnswerOrder.FIXED: "",
    AnswerOrder.UNORDERED: "The items of an answer may have any order.",
    AnswerOrder.UNORDERED_ROWS: "The items of an answer, and the items of each of them, may have any order.",
}


class UnicodeText(spaces.Text):
    """Any `str` of at most `max_length` characters; samples are short printable ASCII.

    `gymnasium.spaces.Text` needs the alphabet as a set: for Unicode it takes a second to build and 51 MB to pickle.
    """

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length=max_length, min_length=0, charset=string.printable)

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a string that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return up to 80 random printable characters."""
        if mask is not None or probability is not None:
            return super().sample(mask=mask, probability=probability)
        length = int(self.np_random.integers(0, min(80, self.max_length) + 1))
        letters = self.np_random.integers(0, len(string.printable), size=length)
        return "".join(string.printable[i] for i in letters)

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"

    def __reduce__(self) -> tuple[type[UnicodeText], tuple[int], dict[str, Any]]:
        return (type(self), (self.max_length,), {"_np_random": self._np_random})


@create_shared_memory.register(UnicodeText)
def _refuse_shared_memory(space: UnicodeText, *_: Any, **__: Any) -> None:
    """Refuse: Gymnasium reads texts from shared memory once, when the vector is made."""
    raise UserError(
        "texts cannot be read from shared memory: pass shared_memory=False to AsyncVectorEnv, "
        "vector_kwargs={'shared_memory': False} to gymnasium.make_vec"
    )


def observation_of(problem: Problem, round_: int, program: str = "", feedback: str = "") -> dict[str, Any]:
    """Return one agent's observation; texts are cut to the space's bounds."""
    return {
        "problem": problem.statement[:MAX_PROBLEM_CHARS],
        "entry_point": problem.entry_point[:256],
        "examples": "\n".join(problem.examples)[:MAX_PROBLEM_CHARS],
        "program": program[:MAX_REPLY_CHARS],
        "feedback": feedback[:MAX_PROBLEM_CHARS],
        "round": np.int64(round_),
    }


def observation_space(max_cycles: int) -> spaces.Dict:
    """Return the space of either agent's observations (they are equal, as PettingZoo prefers)."""
    return spaces.Dict(
        {
            "problem": UnicodeText(MAX_PROBLEM_CHARS),
            "entry_point": UnicodeText(256),
            "examples": UnicodeText(MAX_PROBLEM_CHARS),
            "program": UnicodeText(MAX_REPLY_CHARS),
            "feedback": UnicodeText(MAX_PROBLEM_CHARS),
            "round": spaces.Discrete(max_cycles + 1),
        }
    )


def action_space() -> UnicodeText:
    """Return the space of either agent's replies."""
    return UnicodeText(MAX_REPLY_CHARS)


def checked_reply(agent: str, action: object) -> tuple[str, int]:
    """Return an agent's reply, cut to `MAX_REPLY_CHARS`, and the number of characters that were cut.

    Raises:
        UserError: the action is not text.
    """
    if not isinstance(action, str):
        raise UserError(f"{agent}'s action must be text (str), got {type(action).__name__}")
    return action[:MAX_REPLY_CHARS], max(0, len(action) - MAX_REPLY_CHARS)


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that a program fails, in words."""

    expression: str
    expected: str
    """The right value."""
    gave: str
    """What the program did: its value, or what went wrong."""


def failures_text(n_tests: int, failed: Sequence[FailedTest]) -> str:
    """Return how many of some tests a program fails, and the first of these tests."""
    lines = [f"{len(failed)} of {n_tests} tests failed."]
    lines += [f"{each.expression} should be {each.expected}; it gave {each.gave}" for each in failed[:_MAX_CASES_SHOWN]]
    if len(failed) > _MAX_CASES_SHOWN:
        lines.append(f"... and {len(failed) - _MAX_CASES_SHOWN} more")
    return "\n".join(lines)


def coder_feedback(report: CandidateReport) -> str:
    """Return the feedback to a coder: the verdict on its program and the failed cases."""
    if not report.loads:
        return f"The program is invalid ({_words(report.verdict)}). {report.detail}".strip()
    cases = [*with_decided(report).replayed, *(case for suite in report.suites for case in suite.cases)]
    failed = [
        FailedTest(case.case.case.expression, values.describe(case.case.expected), case.actual or _words(case.verdict))
        for case in cases
        if case.verdict.is_failure
    ]
    return failures_text(len(cases), failed)


def tester_feedback(suite: SuiteReport | None) -> str:
    """Return the feedback to a tester: how many of its cases were valid and failed, and the rejections.

    Args:
        suite: the tester's; None if it had no turn.
    """
    if suite is None:
        return "The previous program was invalid; no suite was requested."
    n_failed = sum(case.verdict.is_failure for case in suite.cases)
    lines = [f"{len(suite.cases)} valid tests, {n_failed} of them failed on the program."]
    lines += [f"{r.reason.value}: {r.source} {r.detail}".rstrip() for r in suite.suite.rejections[:_MAX_CASES_SHOWN]]
    return "\n".join(lines)


def turn_info(
    problem: Problem,
    *,
    episode_id: str,
    role: str,
    round_: int,
    tests_per_suite: int,
    program: str,
    tester_view: str = "",
) -> dict[str, Any]:
    """Return the infos of an agent that acts.

    `group_id` identifies the rollouts that GRPO compares: a coder's by problem, a tester's by problem and by the
    `program` that it sees (as in the release, trainer_a1.py:158-168). It depends neither on the wording of a prompt nor
    on a program that is hidden from the tester (empty here), since it would reveal which program that is. Only testers
    have `tester_view`, which selects their prompt, and `test_notes`, where there are any.
    """
    group = f"{problem.id}/{role}"
    if role == "tester" and program:
        group += "/" + hashlib.sha256(program.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    info = {
        "problem_id": problem.id,
        "episode_id": episode_id,
        "group_id": group,
        "role": role,
        "round": round_,
        "tests_per_suite": tests_per_suite,
        "kind": problem.kind.value,
    }
    of_tester = {"tester_view": tester_view, "test_notes": test_notes(problem)} if role == "tester" else {}
    return info | {name: text for name, text in of_tester.items() if text}


def test_notes(problem: Problem) -> str:
    """Describe the test forms this problem allows beyond `assert f(args) == value`; empty for most problems."""
    answers = problem.answers
    notes = [_ORDER_NOTES[AnswerOrder(answers.order)]]
    if answers.tolerance:
        notes.append(f"Numbers within {answers.tolerance:g} of the expected ones are right, too.")
    if answers.checker:
        notes.append("Other answers than the expected one can be right; the problem says which.")
    return " ".join(filter(None, [*notes, *problem.calls.notes(problem.entry_point)]))


def judged_pairs_info(
    pairs: Sequence[tuple[CandidateReport, Sequence[SuiteReport]]],
    reward_parts: dict[str, float],
    *,
    tests_per_suite: int,
    book_size: int | None,
    masked: bool,
) -> dict[str, Any]:
    """Return the infos that judging adds; a share of nothing is None.

    `validity` and `difficulty` count the first `tests_per_suite` cases, so they lie in [0, 1] however many were kept.
    For several suites, or for one suite with several candidates, they are means. `verdict` is None for several
    candidates. `own_tests` counts the statements that were left out of programs, since they only test them.

    Args:
        pairs: a candidate with all of its suites, or one suite with each of its candidates; at least one pair.
        reward_parts: weighted terms, which add up to the reward; {} where masked.
        tests_per_suite: K.
        book_size: entries of the problem in the Mistake Book afterwards; None: nothing was recorded.
        masked: whether the reward is nan.
    """
    report, suites = pairs[0]
    n_replayed = len(with_decided(report).replayed)
    suite_reports = [suite for _, reports in pairs for suite in reports]
    counted = [case for suite in suite_reports for case in suite.cases[:tests_per_suite]]
    n_required = tests_per_suite * max(1, len(suite_reports))
    cases = chain.from_iterable([*(each.replayed for each, _ in pairs), *(suite.cases for suite in suite_reports)])
    tried = [case.verdict for case in cases if case.verdict.is_evidence]
    return {
        "verdict": report.verdict.value if len(pairs) == 1 else None,
        "own_tests": sum(each.candidate.n_own_tests for each, _ in pairs),
        "pass_rate": tried.count(Verdict.PASSED) / len(tried) if tried else None,
        "new_tests": sum(len(suite.cases) for suite in suites),
        "replayed_tests": n_replayed,
        "validity": sum(case.case.prediction_right is not False for case in counted) / n_required,
        "difficulty": sum(case.verdict.is_failure for case in counted) / n_required,
        "rejections": dict(Counter(each.reason.value for suite in suites for each in suite.suite.rejections)),
        "reward_parts": reward_parts,
        "book_size": book_size,
        "masked": masked,
    }


def _words(verdict: Verdict) -> str:
    return verdict.value.replace("_", " ")
