from __future__ import annotations

from typing import Any

import pytest

from codea1_agents.evaluation.coder import evaluate_coder
from codea1_agents.evaluation.records import CoderSample
from codea1_agents.evaluation.repairs import RepairCounts, by_turn, count_repairs, evaluate_turns, gain_by, is_settled
from codea1_env import code_a1_v0
from codea1_env.problems.problem import ProblemSet
from codea1_env.sandbox import Sandbox
from tests.support.scripted import scripted

CONSTANT = "def larger(a, b):\n    return {}"
RIGHT = "def larger(a, b):\n    return max(a, b)"
SUITE = "assert larger(1, 2) == 2\nassert larger(5, 4) == 5\nassert larger(1, 1) == 7"


def in_turns(*programs: str | None) -> Any:
    """Return what a coder replies: a program for each round."""
    return lambda observation, info: programs[min(int(info["round"]), len(programs) - 1)]


def evaluated(problems: Any, coder: Any, sandbox: Sandbox, tester: Any = None, **options: Any) -> list[CoderSample]:
    testers = None if tester is None else scripted(tester)[1]
    batches = evaluate_turns(problems, scripted(coder)[1], sandbox, tester=testers, **options)
    return [each for batch in batches for each in batch]


def test_agents_see_what_a_game_of_as_many_rounds_shows(problems: ProblemSet, sandbox: Sandbox) -> None:
    programs = [CONSTANT.format(n) for n in range(3)]
    coder, tester = scripted(in_turns(*programs)), scripted(lambda observation, info: SUITE)
    batches = evaluate_turns(problems[:1], coder[1], sandbox, turns=3, tester=tester[1])
    assert [each.turn for batch in batches for each in batch] == [1, 2, 3]
    game = code_a1_v0.raw_env(problems[:1], max_cycles=3)
    game.reset(seed=0)
    seen: dict[str, list[Any]] = {"coder": [], "tester": []}
    for program in programs:
        for role, reply in (("coder", program), ("tester", SUITE)):
            seen[role].append(game.observe(f"{role}_0"))
            game.step(reply)
    # The third coder of the game sees the cases of its Mistake Book, too; an evaluation has none.
    assert [observation for observation, _ in coder[0].asked][:2] == seen["coder"][:2]
    assert [observation for observation, _ in tester[0].asked] == seen["tester"][:2]
    assert len(set(coder[0].seeds)) == 3


def test_golden_tests_that_failed_are_shown_and_judge_every_turn(problems: ProblemSet, sandbox: Sandbox) -> None:
    found = evaluated(problems[:1], in_turns(CONSTANT.format("a"), RIGHT), sandbox, turns=3)
    assert [(each.turn, each.passed, each.kept) for each in found] == [
        (1, False, ""),
        (2, True, ""),
        (3, True, "passed"),
    ]
    assert found[1].feedback == "1 of 2 tests failed.\nlarger(1, 2) should be 2; it gave 1"
    turns = by_turn(found)
    assert count_repairs(turns, 2) == RepairCounts(2, 1, 1, 0, {}, {})
    assert count_repairs(turns, 3) == RepairCounts(3, 0, 0, 0, {"passed": 1}, {})
    assert gain_by(turns[3], turns[1]).mean == 1.0


def test_turn_1_is_byte_for_byte_that_of_an_evaluation_without_turns(problems: ProblemSet, sandbox: Sandbox) -> None:
    coder = in_turns(CONSTANT.format("a"), CONSTANT.format("b"))
    alone = [each for batch in evaluate_coder(problems, scripted(coder)[1], sandbox, samples=2) for each in batch]
    lines = [each.model_dump_json() for each in alone]
    assert not any('"turn"' in line for line in lines)
    found = evaluated(problems, coder, sandbox, samples=2, turns=2)
    assert [each.model_dump_json() for each in found[: len(lines)]] == lines
    again = [CoderSample.model_validate_json(each.model_dump_json()) for each in found]
    assert again == found


@pytest.mark.parametrize(
    ("coder", "tester", "kept"),
    [
        ((CONSTANT.format("b"),) * 3, "assert larger(1, 2) == 2", ["", "passed", "passed"]),
        ((CONSTANT.format("a"),) * 3, SUITE, ["", "unchanged", "unchanged"]),
        ((CONSTANT.format("a"), None), SUITE, ["", "coder", "coder"]),
        ((None, RIGHT), SUITE, ["", "masked", "masked"]),
        ((CONSTANT.format("a"), RIGHT), None, ["", "tester", "tester"]),
        ((RIGHT, CONSTANT.format("a")), "assert larger(2, 1) == 1", ["", "passed", "passed"]),
        ((CONSTANT.format("a"), "no program"), SUITE, ["", "", "unchanged"]),
    ],
    ids=["passes", "unchanged", "no coder", "no program", "no tester", "corrected", "no code"],
)
def test_a_sample_stops_and_keeps_its_program(
    problems: ProblemSet, sandbox: Sandbox, coder: Any, tester: str | None, kept: list[str]
) -> None:
    found = evaluated(problems[:1], in_turns(*coder), sandbox, lambda observation, info: tester, turns=3)
    assert [each.kept for each in found] == kept
    if kept[1] in ("passed", "coder", "tester", "masked"):
        assert [(each.reply, each.passed, each.masked) for each in found[1:]] == [
            (found[0].reply, found[0].passed, found[0].masked)
        ] * 2
    assert all(map(is_settled, found)) == (kept[1] in ("", "passed", "unchanged"))


def test_a_failing_sandbox_masks_and_shows_nothing(problems: ProblemSet, sandbox: Sandbox, broken_sandbox: Any) -> None:
    found = evaluated(problems[:1], in_turns(RIGHT), broken_sandbox, turns=2)
    assert [(each.masked, each.kept) for each in found] == [("sandbox", ""), ("sandbox", "masked")]
    first = evaluated(problems[:1], in_turns(CONSTANT.format("a")), sandbox, turns=1)
    tester = scripted(lambda observation, info: SUITE)[1]
    coder = scripted(in_turns(RIGHT))[1]
    later = evaluate_turns(problems[:1], coder, broken_sandbox, turns=2, tester=tester, known=first)
    assert [(each.masked, each.kept, each.passed) for batch in later for each in batch] == [("", "sandbox", False)]


def test_what_is_missing_is_requested_again_with_all_that_followed_it(problems: ProblemSet, sandbox: Sandbox) -> None:
    def coder(observation: Any, info: Any) -> str:
        return f"def {observation['entry_point']}(*args):\n    return {info['sample']}, {info['round']}"

    options: dict[str, Any] = {"samples": 2, "turns": 3}
    complete = evaluated(problems, coder, sandbox, **options)
    assert len(complete) == 12
    for n in range(len(complete)):
        assert evaluated(problems, coder, sandbox, known=complete[:n], **options) == complete[n:]
    hole = (complete[5].problem_id, complete[5].sample)
    known = [each for each in complete if each is not complete[5]]
    found = evaluated(problems, coder, sandbox, known=known, **options)
    assert found == [each for each in complete if (each.problem_id, each.sample) == hole and each.turn > 1]


def test_a_coder_that_is_gone_is_asked_no_more(problems: ProblemSet, sandbox: Sandbox) -> None:
    agent, named = scripted(in_turns(CONSTANT.format("a"), None))
    batches = evaluate_turns(problems[:1], named, sandbox, turns=3, tester=None, samples=70)
    found = [each for batch in batches for each in batch]
    assert (len(found), len(agent.asked)) == (70 + 64, 70 + 64)
