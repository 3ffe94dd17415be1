from __future__ import annotations

import ast
from collections import Counter
from typing import Any

import pytest

from codea1_agents.scripted.coders import MutantCoder, RandomCoder, ReferenceCoder, reports_failure
from codea1_agents.scripted.mutation import mutants, without_docstrings
from codea1_env.agent import AgentContext, load_agent
from codea1_env.errors import UserError
from codea1_env.problems import humaneval
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.rules.replies import read_candidate
from codea1_env.rules.ruleset import Reading
from tests.codea1_agents.scripted.conftest import CLIP, COUNT, turn

FAILED = "1 of 3 tests failed.\nclip([1], 2, 3) should be [2]; it gave [1]"


def program(reply: str, entry_point: str) -> str:
    candidate = read_candidate(reply, Reading.STRICT, entry_point=entry_point)
    assert candidate.rejection is None
    return candidate.program.strip()


def programs(coder: Any, problem: Problem, n: int, **seen: Any) -> list[str]:
    return [program(coder.act(*turn(problem, **seen)), problem.entry_point) for _ in range(n)]


def test_the_reference_coder_replies_the_solution(context: AgentContext) -> None:
    for problem in context.problems:
        assert programs(ReferenceCoder(context), problem, 1) == [problem.solution.strip()]


@pytest.mark.parametrize("strength", ["-0.1", "1.5", "nan", "strong"])
def test_a_strength_outside_of_zero_to_one_is_the_callers_fault(strength: str, context: AgentContext) -> None:
    with pytest.raises(UserError, match=r"strength|convert"):
        load_agent(f"mutant,strength={strength}", context)


def test_strength_is_the_share_of_variants_none_at_zero_and_all_at_one(context: AgentContext) -> None:
    right = without_docstrings(CLIP.solution)
    assert set(programs(MutantCoder(context, strength=0), CLIP, 30)) == {right}
    assert right not in programs(MutantCoder(context, strength=1), CLIP, 30)
    made = programs(MutantCoder(context, strength=0.3), CLIP, 400)
    share = sum(text != without_docstrings(CLIP.solution) for text in made) / 400
    assert 0.22 < share < 0.38


def test_variants_are_known_wrong_programs_and_mutants_coarser_ones_of_a_stronger_coder(context: AgentContext) -> None:
    made = set(programs(MutantCoder(context, strength=1), CLIP, 60))
    known = {without_docstrings(wrong.program) for wrong in CLIP.wrong_programs}
    faults = {without_docstrings(mutant.program) for mutant in mutants(CLIP.solution, entry_point="clip")}
    assert made & known
    assert made & faults
    assert made <= known | faults
    coarse, subtle = (without_docstrings(wrong.program) for wrong in CLIP.wrong_programs)
    strong = Counter(programs(MutantCoder(context, strength=1), CLIP, 200))
    weak = Counter(programs(MutantCoder(context, strength=0.1), CLIP, 800))
    assert strong[coarse] > 5 * strong[subtle]
    assert weak[subtle] > 2 * weak[coarse]


def test_right_and_wrong_programs_are_written_alike(direct: Any) -> None:
    problem = Problem("p", "def f(a): ...", "f", 'def f(a):\n    """Add one."""\n    return (a + 1)  # one more\n', ())
    coder = MutantCoder(AgentContext(ProblemSet("p", (problem,)), direct), strength=0.5)
    made = set(programs(coder, problem, 40))
    assert "def f(a):\n    return a + 1" in made
    assert len(made) > 2
    assert all(text == without_docstrings(text) for text in made)


def test_failures_halve_the_strength_and_a_program_that_did_not_fail_is_repeated(context: AgentContext) -> None:
    seen = {"program": "def clip(values, low, high):\n    return values", "feedback": FAILED}
    shares = []
    for round_ in (0, 1, 3):
        made = programs(MutantCoder(context, strength=1), CLIP, 200, round_=round_, **seen)
        shares.append(sum(text != without_docstrings(CLIP.solution) for text in made) / 200)
    assert shares[0] == 1
    assert 0.4 < shares[1] < 0.6
    assert 0.06 < shares[2] < 0.2
    seen = {"program": "def clip(values, low, high):\n    return 0", "feedback": "0 of 3 tests failed."}
    made = programs(MutantCoder(context, strength=1), CLIP, 5, round_=1, **seen)
    assert set(made) == {seen["program"]}


@pytest.mark.parametrize(
    ("feedback", "failed"),
    [
        ("", False),
        ("0 of 8 tests failed.", False),
        ("No tests failed.", False),
        ("10 of 10 tests failed.", True),
        (FAILED, True),
        ("The program is invalid (syntax error).", True),
        ("0 of 8 tests failed in round 1.\n1 of 8 tests failed in round 2.", True),
    ],
)
def test_feedback_tells_of_failures(feedback: str, failed: bool) -> None:
    assert reports_failure(feedback) is failed


@pytest.mark.parametrize("coder_class", [MutantCoder, RandomCoder])
def test_the_seed_decides_the_replies(coder_class: Any, context: AgentContext) -> None:
    coder, other = coder_class(context), coder_class(context)
    first = programs(coder, CLIP, 12)
    assert programs(other, CLIP, 12) == first  # both start from the context's seed
    coder.reset(5)
    fifth = programs(coder, CLIP, 12)
    coder.reset(context.seed)
    assert programs(coder, CLIP, 12) == first
    assert fifth != first


def test_random_programs_have_the_signature_load_and_follow_the_hint(context: AgentContext, direct: Any) -> None:
    coder = RandomCoder(context)
    for problem in [*context.problems, *humaneval.load()[::20]]:
        for text in programs(coder, problem, 5):
            names: dict[str, Any] = {}
            exec(text, names)
            wanted = problem.statement.split("\n")
            assert callable(names[problem.entry_point]), wanted
    made = programs(RandomCoder(context), COUNT, 40)
    assert any("len(" in text or "return 0" in text for text in made)
    assert not any("[::-1]" in text or "bool(" in text for text in made)
    assert all([arg.arg for arg in ast.parse(text).body[0].args.args] == ["text", "letter"] for text in made)  # type: ignore[attr-defined]
    problem = Problem("p", "Add two numbers.", "add", "def add(a, b):\n    return a + b", ())
    other = RandomCoder(AgentContext(ProblemSet("p", (problem,)), direct))
    assert "def add(*arguments):" in other.act(*turn(problem))
