from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from codea1_agents.play.person import (
    MOST_POINTS,
    PersonGame,
    describe_finding,
    ending,
    explain_tests,
    missed_tests,
    remarks,
    why_dropped,
)
from codea1_env.errors import AgentUnavailable, SandboxError, UserError
from codea1_env.facts.submissions import RejectionReason, Role
from codea1_env.facts.verdicts import Verdict
from codea1_env.rounds.rounds import Turn
from codea1_env.sandbox import Job, JobReport, Limits, Sandbox
from tests.support.sandboxes import Wrapper
from tests.support.toys import ADD

WRONG, RIGHT = "def add(a, b):\n    return a + b if a else a", "def add(a, b):\n    return a + b"
FINDS = "assert add(0, 3) == 3"


def game_of(sandbox: Sandbox, role: Role, opponent: Callable[[Turn], str]) -> PersonGame:
    return PersonGame(ADD, role, opponent, sandbox=sandbox)


def test_a_tester_wins_with_a_right_answer_that_the_program_does_not_give(sandbox: Sandbox) -> None:
    game = game_of(sandbox, "tester", lambda _: WRONG)
    assert game.turn().observation["program"] == game.program == WRONG
    judged = game.submit("assert add(1, 2) == 3\nassert add(0, 3) == 0")
    assert (
        describe_finding(game, judged)
        == "1 of 2 answers right; for an input the program is wrong, but so is your answer"
    )
    assert (game.points, game.has_won, game.hint()) == (2, False, "Read line 2 again.")
    judged = game.submit(FINDS)
    assert (game.points, game.has_won, game.is_over) == (2, True, True)
    assert ending(game, judged) == (
        "Line 2 is `return a + b if a else a`, in the solution it is `return a + b`; test 1 found it."
        " 1 of 1 answers right; 2 of 3 points."
    )
    with pytest.raises(UserError, match="is over"):
        game.submit(FINDS)


def test_a_lost_game_does_not_praise_wrong_answers(sandbox: Sandbox) -> None:
    game = game_of(sandbox, "tester", lambda _: WRONG)
    judged = [game.submit("assert add(0, 3) == 0") for _ in range(MOST_POINTS)]
    assert (game.points, game.is_over) == (0, True)
    assert describe_finding(game, judged[0]) == "the program is wrong for your input, but so is your answer"
    (shown,) = missed_tests(game)
    assert shown.test.startswith("assert add(0, ")  # fuzz has found it
    assert shown.told.startswith("The solution gives ")
    assert shown.told.endswith("; the program gives 0.")
    why = "no test found it: of those that the program fails, test 1 has a wrong answer"
    assert f"; {why}. 0 of 1 answers right; 0 of 3 points." in ending(game, judged[-1])


@pytest.mark.parametrize("reply", ["", "x", "assert add(", "assert 1 == 1", "assert add('x', 1) == 2"])
def test_a_try_without_a_test_that_counts_costs_nothing(sandbox: Sandbox, reply: str) -> None:
    game = game_of(sandbox, "tester", lambda _: WRONG)
    judged = game.submit(reply)
    assert describe_finding(game, judged).startswith(
        "no test counts, so this try costs no point: write `assert add(...)"
    )
    assert (game.points, game.hint(), len(remarks(game, judged))) == (MOST_POINTS, "", 1)
    game.submit("assert add(0, 0) == 0")
    assert (game.points, game.hint()) == (MOST_POINTS - 1, "Read line 2 again.")


def test_other_programs_lose_to_an_example_have_general_hints_or_are_no_opponents(sandbox: Sandbox) -> None:
    game = game_of(sandbox, "tester", lambda _: "def add(a, b):\n    return a - b")
    assert "; test 1 found it." in ending(game, game.submit(ADD.examples[0]))
    game = game_of(sandbox, "tester", lambda _: "def add(a, b):\n    c = b\n    d = a\n    e = c + d\n    return e")
    game.submit("assert add(1, 2) == 3")
    assert game.hint().startswith("Try the ends")
    with pytest.raises(UserError, match="no program that loads"):
        game_of(sandbox, "tester", lambda _: "I refuse.").turn()


def test_a_program_that_no_test_can_tell_from_the_solution_is_drawn_again(sandbox: Sandbox) -> None:
    drawn: list[tuple[int, ...]] = []

    def coder(turn: Turn) -> str:
        drawn.append(turn.seed[:2])
        return [RIGHT, "I refuse.", WRONG][len(drawn) - 1]

    game = PersonGame(ADD, "tester", coder, seed=7, sandbox=sandbox)
    game.turn()
    assert (drawn, game.program) == ([(7, 0), (7, 1), (7, 2)], WRONG)
    assert game.killer.verdict is Verdict.WRONG_ANSWER


def test_an_opponent_that_repeats_itself_is_asked_twice_and_runs_under_the_limits_of_the_game(sandbox: Sandbox) -> None:
    class Watching(Wrapper):
        def run(self, jobs: Sequence[Job]) -> list[JobReport]:
            ran.extend(job for job in jobs if job.program == RIGHT)
            return super().run(jobs)

    def coder(turn: Turn) -> str:
        drawn.append(turn)
        return RIGHT

    ran: list[Job] = []
    drawn: list[Turn] = []
    game = PersonGame(ADD, "tester", coder, sandbox=Watching(sandbox), limits=Limits(memory_mb=300))
    game.turn()
    assert (game.program, len(drawn)) == (RIGHT, 2)
    assert max(len(job.calls) for job in ran) > len(ADD.golden)  # the hunt's
    assert {job.limits.memory_mb for job in ran} == {300}


@pytest.mark.parametrize("error", [AgentUnavailable("busy"), UserError("failed"), SandboxError("no process")])
def test_an_error_after_a_program_that_loads_ends_the_draws_only(sandbox: Sandbox, error: Exception) -> None:
    replies = iter(["I refuse.", RIGHT])

    def coder(turn: Turn) -> str:
        if reply := next(replies, None):
            return reply
        raise error

    game = game_of(sandbox, "tester", coder)
    assert game.turn().observation["program"] == game.program == RIGHT
    with pytest.raises(type(error)):
        game_of(sandbox, "tester", coder).turn()


def test_a_game_that_nobody_is_known_to_win_can_be_played(sandbox: Sandbox) -> None:
    game = game_of(sandbox, "tester", lambda _: RIGHT)
    for _ in range(MOST_POINTS):
        game.submit(FINDS)
    assert (game.killer, game.points, missed_tests(game)) == (None, 0, [])


def test_a_coder_wins_when_all_tests_pass_and_the_tester_sees_each_program(sandbox: Sandbox) -> None:
    seen: list[str] = []
    seeds: list[int] = []

    def tester(turn: Turn) -> str:
        seen.append(turn.observation["program"])
        seeds.append(turn.seed[0])
        return FINDS + "\nassert add(1, 1) == 3"

    game = game_of(sandbox, "coder", tester)
    assert "add" in game.turn().observation["problem"]
    assert describe_finding(game, game.submit("def add(a, b):")) == "your program does not run, which costs no point"
    assert describe_finding(game, game.submit(WRONG)) == "your program passes 1 of 2 tests"
    judged = game.submit(RIGHT)
    assert ending(game, judged) == "Your program passes 2 of 2 tests; 2 of 3 points."
    assert seen == [WRONG, RIGHT]  # what does not run has no turn
    assert seeds == [1, 2]


def test_tests_that_did_not_run_come_last_and_keep_their_numbers(sandbox: Sandbox) -> None:
    game = game_of(sandbox, "coder", lambda _: "\n".join(f"assert add({n}, 1) == {n + 1}" for n in range(3)))
    judged = game.submit(RIGHT)
    (candidate,) = judged.report.candidates
    verdicts = (Verdict.NOT_RUN, Verdict.TIME_LIMIT, Verdict.PASSED)
    cases = zip(candidate.suites[0].cases, verdicts, strict=True)
    suite = replace(candidate.suites[0], cases=tuple(replace(case, verdict=verdict) for case, verdict in cases))
    report = replace(candidate, suites=(suite,))
    shown = explain_tests(game, replace(judged, report=replace(judged.report, candidates=(report,))))
    assert [(each.number, each.told) for each in shown] == [
        (2, "Your program does not end in time."),
        (3, "Passed."),
        (1, "Not tried: another test had stopped your program before."),
    ]


def test_a_failure_of_the_sandbox_and_a_program_that_is_not_python_cost_nothing(sandbox: Sandbox) -> None:
    class Failing(Wrapper):
        def run(self, jobs: Sequence[Job]) -> list[JobReport]:
            raise SandboxError("no process")

    game = game_of(Failing(sandbox), "coder", lambda _: FINDS)
    with pytest.raises(SandboxError):
        game.submit(RIGHT)
    assert game.points == MOST_POINTS
    game = game_of(sandbox, "coder", lambda _: FINDS)
    for text, said, points in (("def add(a, b", ", which costs no point", 3), ("def plus(a, b): pass", "", 2)):
        judged = game.submit(f"```python\n{text}\n```")
        assert (describe_finding(game, judged), game.points) == (f"your program does not run{said}", points)


@pytest.mark.parametrize("reason", RejectionReason)
def test_why_a_line_does_not_count_is_said_in_plain_words(reason: RejectionReason) -> None:
    assert why_dropped(reason, "").strip()
    assert "detail" in why_dropped(reason, "detail")


def test_a_program_without_the_function_is_told_plainly(sandbox: Sandbox) -> None:
    game = game_of(sandbox, "coder", lambda _: FINDS)
    assert remarks(game, game.submit("def plus(a, b): pass")) == ["It does not define `add`."]
    game = game_of(sandbox, "tester", lambda _: WRONG)
    told = remarks(game, game.submit("assert add('x', 1) == 2\nassert add(open, 1) == 2"))
    assert sorted(told) == [
        "Line 1 does not count: the solution itself fails for this input"
        ' (TypeError: can only concatenate str (not "int") to str).',
        "Line 2 does not count: a name in it is not defined or not allowed ('open' may not be used).",
    ]


def test_a_reply_begins_with_what_the_problem_fixes(sandbox: Sandbox) -> None:
    def begun(role: Role, statement: str, solution: str = ADD.solution) -> str:
        problem = replace(ADD, statement=statement, solution=solution)
        return PersonGame(problem, role, lambda _: FINDS, sandbox=sandbox).draft()

    assert begun("tester", "Add.") == "assert add("
    stated = 'import math\n\ndef add(a: int, b: int = 1) -> int:\n    """Adds."""\n'
    assert begun("coder", stated) == "import math\n\ndef add(a: int, b: int=1) -> int:\n    "
    secret = "SECRET = 1\n\ndef add(a, *, b):\n    return a + b * SECRET"
    assert begun("coder", "Add two numbers.", secret) == "def add(a, *, b):\n    "
    assert begun("coder", "Add two numbers.", "add = sum") == ""
