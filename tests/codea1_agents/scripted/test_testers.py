from __future__ import annotations

import ast
from typing import Any

import pytest

from codea1_agents.scripted.testers import BoundaryTester, ExamplesTester, FuzzTester, InvalidKind, InvalidTester
from codea1_env import values
from codea1_env.agent import AgentContext, load_agent
from codea1_env.errors import UserError
from codea1_env.facts.submissions import RejectionReason, Suite
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.problems import humaneval, starter
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading
from codea1_env.sandbox.interface import Call, Job, Sandbox
from tests.codea1_agents.scripted.conftest import CLIP, COUNT, SHELVES, turn


@pytest.fixture(params=[BoundaryTester, FuzzTester])
def tester_class(request: pytest.FixtureRequest) -> Any:
    return request.param


def suite(reply: str, problem: Problem) -> Suite:
    return read_suite(reply, Reading.STRICT, entry_point=problem.entry_point)


def calls(reply: str, problem: Problem) -> list[str]:
    return [case.expression for case in suite(reply, problem).cases]


@pytest.mark.parametrize(
    "spec", ["fuzz,predict=magic", "boundary,hunt=true,predict=program", "invalid,kind=polite", "fuzz,depth=3"]
)
def test_unknown_options_are_the_callers_fault(spec: str, context: AgentContext) -> None:
    with pytest.raises(UserError):
        load_agent(spec, context)


@pytest.mark.parametrize(("problem", "k", "asked"), [(COUNT, 8, 2), (COUNT, 1, 1), (SHELVES, 8, 0)])
def test_examples_are_copied_in_order_up_to_the_number_asked_for(problem: Problem, k: int, asked: int) -> None:
    wanted = ["count('banana')", "count('banana', 'n')"][:asked]
    assert calls(ExamplesTester().act(*turn(problem, k=k)), problem) == wanted


@pytest.mark.parametrize("problem", [COUNT, CLIP, SHELVES], ids=["count", "clip", "shelves"])
def test_a_suite_is_full_direct_distinct_and_right(tester_class: Any, problem: Problem, context: AgentContext) -> None:
    names: dict[str, Any] = {}
    exec(problem.solution, names)
    reply = tester_class(context).act(*turn(problem))
    read = suite(reply, problem)
    assert reply.isascii()
    assert read.rejections == ()
    assert len({case.expression for case in read.cases}) == len(read.cases) == 8
    assert len({case.prediction for case in read.cases}) >= 3 or problem is not COUNT
    assert len(calls(tester_class(context).act(*turn(problem, k=3)), problem)) == 3
    for case in read.cases:
        assert case.direct
        assert eval(case.expression, dict(names)) == eval(case.prediction or "")


def test_inputs_on_which_the_solution_fails_are_replaced_by_others(tester_class: Any, context: AgentContext) -> None:
    for _ in range(5):
        asked = calls(tester_class(context).act(*turn(CLIP)), CLIP)
        assert asked
        for text in asked:
            _, low, high = ast.literal_eval(text.removeprefix("clip"))
            assert low <= high


@pytest.mark.parametrize(
    ("predict", "program", "predicted"),
    [("none", "", "None"), ("program", "", "None"), ("program", "def count(text, letter='a'):\n    return -7", "-7")],
)
def test_predictions_are_those_of_the_program_or_placeholders(
    tester_class: Any, predict: str, program: str, predicted: str, context: AgentContext, direct: Any
) -> None:
    read = suite(tester_class(context, predict=predict).act(*turn(COUNT, program=program)), COUNT)
    assert {case.prediction for case in read.cases} == {predicted}
    assert program or (len(read.cases), direct.asked) == (8, [])


def test_hunting_finds_more_failing_inputs(tester_class: Any, context: AgentContext) -> None:
    subtle = "def count(text, letter='a'):\n    return text.count(letter) if letter else len(text)"

    def n_beating(hunt: bool) -> int:
        reply = tester_class(context, hunt=hunt).act(*turn(COUNT, program=subtle))
        names: dict[str, Any] = {}
        exec(subtle, names)
        return sum(eval(c.expression, dict(names)) != eval(c.prediction or "") for c in suite(reply, COUNT).cases)

    assert n_beating(hunt=True) > n_beating(hunt=False)
    assert n_beating(hunt=True) >= 3
    # Without a program it is ordinary testing.
    hunting, ordinary = (BoundaryTester(context, hunt=hunt) for hunt in (True, False))
    assert hunting.act(*turn(COUNT)) == ordinary.act(*turn(COUNT))


@pytest.mark.parametrize(
    ("returned", "written"),
    [("float('nan')", False), ("'x' * 1000", False), ("object()", False), ("'\\u00e9'", True), ("1e400", True)],
)
def test_only_values_that_make_a_readable_test_are_predicted(returned: str, written: bool, direct: Any) -> None:
    problem = Problem("p", "def f(a: int): ...", "f", f"def f(a):\n    return {returned}", ())
    context = AgentContext(ProblemSet("p", (problem,)), direct)
    direct_outcome = direct._outcome
    unreadable = Outcome(OutcomeKind.OPAQUE)
    direct._outcome = lambda e, n: unreadable if returned == "object()" else direct_outcome(e, n)
    reply = BoundaryTester(context).act(*turn(problem))
    assert bool(suite(reply, problem).cases) is written
    assert reply.isascii()


def test_where_nobody_sees_the_arguments_only_the_privileged_write_tests(direct: Any) -> None:
    problem = Problem("p", "Add numbers.", "add", "def add(a, b):\n    return a + b", ())
    context = AgentContext(ProblemSet("p", (problem,)), direct)
    tester = BoundaryTester(context, predict="program")
    assert suite(tester.act(*turn(problem)), problem).cases == ()
    assert len(calls(tester.act(*turn(problem, program=problem.solution)), problem)) == 8
    assert len(calls(BoundaryTester(context).act(*turn(problem)), problem)) == 8


def test_unknown_types_are_tried_as_several_and_nothing_is_claimed_without_a_sandbox(
    tester_class: Any, shapes: ProblemSet, direct: Any, broken_sandbox: Sandbox
) -> None:
    problem = Problem("p", "def f(q): ...", "f", "def f(q):\n    return q.upper() + 'x'", ())
    tester = tester_class(AgentContext(ProblemSet("p", (problem,)), direct))
    assert len(calls(tester.act(*turn(problem)), problem)) == 8
    assert suite(tester_class(AgentContext(shapes, broken_sandbox)).act(*turn(COUNT)), COUNT).cases == ()


@pytest.mark.parametrize("tester_class", [BoundaryTester, FuzzTester, InvalidTester])
def test_the_seed_decides_the_suites(tester_class: Any, context: AgentContext) -> None:
    tester, other = tester_class(context), tester_class(context)

    def suites(one: Any) -> list[str]:
        return [one.act(*turn(COUNT)) for _ in range(6)]

    first = suites(tester)
    assert suites(other) == first
    tester.reset(5)
    assert suites(tester) != first
    tester.reset(context.seed)
    assert suites(tester) == first
    assert len(set(first)) > 1


@pytest.mark.parametrize("kind", list(InvalidKind))
def test_an_invalid_suite_holds_no_right_test(kind: InvalidKind, context: AgentContext, direct: Any) -> None:
    names: dict[str, Any] = {}
    exec(COUNT.solution, names)
    for case in suite(InvalidTester(context, kind=kind).act(*turn(COUNT)), COUNT).cases:
        try:
            value = eval(case.expression, dict(names))
        except (NameError, TypeError):
            continue
        assert value != eval(case.prediction or "")
    assert direct.asked == []


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (InvalidKind.EMPTY, RejectionReason.EMPTY_REPLY),
        (InvalidKind.PROSE, RejectionReason.NO_CODE),
        (InvalidKind.NO_CALL, RejectionReason.NO_ENTRY_POINT_CALL),
        (InvalidKind.NOT_ASSERTS, RejectionReason.NOT_AN_ASSERT),
        (InvalidKind.SYNTAX_ERROR, RejectionReason.SYNTAX_ERROR),
        (InvalidKind.UNCLOSED, RejectionReason.SYNTAX_ERROR),
        (InvalidKind.FORBIDDEN, RejectionReason.FORBIDDEN_NAME),
        (InvalidKind.UNDEFINED_NAME, RejectionReason.FORBIDDEN_NAME),
    ],
)
def test_a_kind_is_rejected_for_its_reason(kind: InvalidKind, reason: RejectionReason, context: AgentContext) -> None:
    rejections = suite(InvalidTester(context, kind=kind).act(*turn(COUNT)), COUNT).rejections
    assert reason in {rejection.reason for rejection in rejections}


def test_all_kinds_turn_up_by_themselves_and_non_printable_suites_are_counted_as_such(context: AgentContext) -> None:
    tester = InvalidTester(context)
    assert len({tester.act(*turn(COUNT)) for _ in range(200)}) == len(InvalidKind)
    reply = InvalidTester(context, kind="non_printable").act(*turn(COUNT))
    assert suite(reply, COUNT).nonprintable_share > 0
    assert read_suite(reply, Reading.RELEASE, entry_point="count").nonprintable_share > 0


@pytest.mark.slow
def test_real_problems_get_full_and_right_suites(tester_class: Any, sandbox: Sandbox) -> None:
    problems = ProblemSet("some", (*humaneval.load()[::16], *starter.load()[::13]))
    tester = tester_class(AgentContext(problems, sandbox, seed=3))
    jobs = []
    for problem in problems:
        read = suite(tester.act(*turn(problem)), problem)
        assert len(read.cases) == 8
        assert read.rejections == ()
        asked = tuple(Call(f"{case.expression}") for case in read.cases)
        jobs.append((problem, read, Job(problem.solution, problem.entry_point, asked, problem.imports)))
    for (problem, read, _), report in zip(jobs, sandbox.run([job for *_, job in jobs]), strict=True):
        for case, outcome in zip(read.cases, report.outcomes, strict=True):
            assert outcome.value is not None, (problem.id, case)
            assert values.equal(outcome.value, values.encode(eval(case.prediction or ""))), (problem.id, case)
