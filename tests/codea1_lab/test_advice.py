"""The advice, against a comparison that tries every way to test on many more inputs and shares no code with it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from statistics import fmean

import pytest

from codea1_agents.evaluation.turns import sample_turn
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.scripted.fences import fenced_reply
from codea1_agents.scripted.oracle import Oracle, subject_of
from codea1_env import values
from codea1_env.agent import AgentContext, AgentSpec, Info, Observation, Role, load_agent
from codea1_env.problems import Problem, ProblemSet, load_problems
from codea1_env.rounds.referee import Referee
from codea1_env.sandbox import Sandbox
from codea1_lab.advice import Choice, Sizes, advise, measure_programs

pytestmark = pytest.mark.slow

SIZES, ALPHA = Sizes(samples=2, inputs=16, suites=2, tests=8), 0.1
N_DRAWS = 4
"""Draws of fresh inputs per problem. Together they are nearly all inputs that the types of many problems here allow."""

Case = tuple[str, str]
"""A call and its predicted answer."""


class SubtleCoder:
    """Its programs are wrong, each at as few inputs as any known wrong program of its problem."""

    plays = "coder"

    def __init__(self, context: AgentContext) -> None:
        self.problems = context.problems

    def act(self, observation: Observation, info: Info) -> str:
        known = self.problems.by_id(info["problem_id"]).wrong_programs
        subtle = sorted(known, key=lambda wrong: -wrong.subtlety)
        return fenced_reply(subtle[info["sample"] % len(subtle)].program, "Here it is.")


def agent(spec: AgentSpec, role: Role, problems: ProblemSet, sandbox: Sandbox) -> NamedAgent:
    return NamedAgent(load_agent(spec, AgentContext(problems, sandbox, 0), role=role), str(spec))


def code_of(reply: object) -> str:
    return "".join(re.findall(r"```python\n(.*?)```", str(reply), re.DOTALL))


def cases_of(reply: object) -> list[Case]:
    asserted = [node.test for node in ast.parse(code_of(reply)).body if isinstance(node, ast.Assert)]
    return [(ast.unparse(e.left), ast.unparse(e.comparators[0])) for e in asserted if isinstance(e, ast.Compare)]


def exhaustive(
    problems: ProblemSet, sandbox: Sandbox, coder: AgentSpec, tester: AgentSpec | None, ratio: float
) -> Choice:
    """Return the choice that wins if everybody tries as many inputs as there are, by means alone."""
    oracle, golden = Oracle(sandbox), Referee(problems, sandbox=sandbox)
    fresh, writer = agent("fuzz", "tester", problems, sandbox), agent(coder, "coder", problems, sandbox)
    by = agent(tester or "fuzz", "tester", problems, sandbox)
    found = defaultdict(list)
    kills: dict[str, list[bool]] = defaultdict(list)
    right: dict[bool, list[bool]] = {True: [], False: []}

    def differ(problem: Problem, program: str, first: Iterable[str], second: Iterable[str]) -> list[bool]:
        expected = oracle.outcomes(subject_of(problem, problem.solution), list(first))
        given = oracle.outcomes(subject_of(problem, program), list(second))
        pairs = [pair for pair in zip(expected, given, strict=True) if pair[0].value is not None]
        return [b.value is None or not values.equal(a.value, b.value, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs]

    for problem in problems:
        programs = writer.replies([sample_turn(problem, "coder", n) for n in range(SIZES.samples)])
        passed = [True] * SIZES.samples
        if problem.golden:
            passed = [each.passed is True for each in golden.golden([problem.id] * SIZES.samples, programs)]
        turns = [sample_turn(problem, "tester", 100 + n, tests=SIZES.inputs) for n in range(N_DRAWS)]
        draws = [[call for call, _ in cases_of(reply)] for reply in fresh.replies(turns)]
        of: dict[str, list[float]] = defaultdict(list)
        for n, program in enumerate(map(code_of, programs)):
            turn = sample_turn(problem, "tester", n, program=program, tests=SIZES.tests, view="white_box")
            (suite,) = by.replies([turn])
            calls, answers = map(list, zip(*cases_of(suite), strict=True))
            hits = differ(problem, program, calls, calls)
            for is_hit, is_wrong in zip(hits, differ(problem, problem.solution, calls, answers), strict=True):
                right[is_hit].append(not is_wrong)
            failed = [differ(problem, program, draw, draw) for draw in draws]
            kills["fresh"] += chain.from_iterable(failed)
            kills["suite"] += hits
            if passed[n]:
                of["fresh"].append(fmean(map(any, failed)))
                of["suite"].append(any(hits))
            if not passed[n] or any(map(any, failed)):
                of["seen"].append(any(hits))
        for name, shares in of.items():
            found[name].append(fmean(shares))
    means = {name: fmean(shares) for name, shares in found.items()}
    if tester is None or means["suite"] <= ratio * means["fresh"]:
        return Choice.FRESH if means["fresh"] > 0.01 else Choice.NONE
    v, va = (fmean(right[is_hit]) for is_hit in (False, True))
    suite, fresh = (ALPHA + (1 - ALPHA) * fmean(kills[name]) for name in ("suite", "fresh"))
    aims = va > 0 and va * suite > v * fresh
    return Choice.TRAINED if aims and means["seen"] * 1.3 < 1 else Choice.FROZEN


def source(name: str, limit: int, n_golden: int | None) -> ProblemSet:
    found = load_problems(name, limit=limit)
    return ProblemSet(name, tuple(replace(each, golden=each.golden[:n_golden]) for each in found))


@pytest.mark.parametrize(
    ("name", "limit", "n_golden", "coder", "tester", "ratio", "choice"),
    [
        ("starter", 24, None, "mutant", "boundary", 1.7, Choice.NONE),
        ("humaneval", 10, None, "mutant", None, 1, Choice.NONE),
        ("starter", 24, 1, "mutant", "boundary", 1.7, Choice.FRESH),
        ("humaneval", 10, 0, "mutant", "boundary", 1.7, Choice.FRESH),
        ("starter", 24, 1, "subtle", "boundary", 0.2, Choice.FROZEN),
        ("tiny:rare-train", 24, 1, "subtle", "fuzz,hunt=true", 1.0, Choice.FROZEN),
        ("tiny:deep-rare-train", 36, 1, "subtle", "fuzz,hunt=true", 1.5, Choice.TRAINED),
    ],
)
def test_the_advice_is_that_of_an_exhaustive_comparison(
    name, limit, n_golden, coder, tester, ratio, choice, sandbox: Sandbox
) -> None:
    problems, writer = source(name, limit, n_golden), SubtleCoder if coder == "subtle" else coder
    by = None if tester is None else agent(tester, "tester", problems, sandbox)
    agents = agent(writer, "coder", problems, sandbox), agent("fuzz", "tester", problems, sandbox)
    found = measure_programs(problems, *agents, by, sandbox, SIZES)
    assert (found.n_masked, len(found.programs) + found.n_broken) == (0, len(problems) * SIZES.samples)
    assert advise(found, ratio=ratio if tester else None, alpha=ALPHA).choice == choice
    assert exhaustive(problems, sandbox, writer, tester, ratio) == choice
