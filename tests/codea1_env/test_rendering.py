from __future__ import annotations

import unicodedata
from dataclasses import replace
from io import StringIO
from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from codea1_env import values
from codea1_env.facts.submissions import Candidate, Rejection, RejectionReason, TestCase
from codea1_env.facts.verdicts import CandidateReport, CaseReport, ValidCase, Verdict
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems.problem import Problem
from codea1_env.rendering import SYMBOLS, book_sentence, duel_picture, duel_text, harmless, reward_sum
from codea1_env.rules.mistake_book import BookDelta
from codea1_env.rules.rewards import Reward, RewardPart
from codea1_env.rules.ruleset import preset
from tests.support.reports import judged_round, suite_of

PROBLEM = Problem("HumanEval/32", "def find_zero(xs): ...", "find_zero", "def find_zero(xs): pass", ())
RULES = preset("fixed")


def case(expression: str, expected: object, verdict: Verdict, actual: str = "", wrong: str = "") -> CaseReport:
    test = TestCase(expression, wrong or repr(expected), line=1)
    return CaseReport(ValidCase(test, values.encode(expected), not wrong), verdict, actual)


NEW = (
    case("find_zero([1, 2])", -0.5, Verdict.PASSED, "-0.5"),
    case("find_zero([3, -4])", 0.75, Verdict.WRONG_ANSWER, "0.7", wrong="2.0"),
    case("find_zero([0] * 99)", 0.0, Verdict.TIME_LIMIT, "time limit"),
)
REPLAYED = (replace(case("find_zero([0, 1])", 0.0, Verdict.RUNTIME_ERROR, "ZeroDivisionError: division by zero")),)
COPIED = replace(NEW[2], case=replace(NEW[2].case, is_example=True))
DROPPED = (Rejection(RejectionReason.SYNTAX_ERROR, "assert find_zero([1", 7, "'[' was never closed"),)
PROGRAM = Candidate("def find_zero(xs):\n    return -xs[0] / xs[1]\n")
SUITES = (suite_of(*NEW, rejections=DROPPED, n_dropped=1),)
VALID = CandidateReport(PROGRAM, Verdict.PASSED, replayed=REPLAYED, suites=SUITES)
INVALID = CandidateReport(Candidate("def find_zero(:"), Verdict.SYNTAX_ERROR, "invalid syntax", suites=(suite_of(),))


def judged(report: CandidateReport = VALID, **changes: object) -> JudgedRound:
    facts = {"episode_id": "0a1b", "coder_reply": "reply", "book": BookDelta(added=2, removed=1, size=5)}
    return judged_round(report, RULES, PROBLEM, **facts | changes)


def test_a_duel_reads_from_the_program_to_what_entered_the_book() -> None:
    assert (
        duel_text(judged(), width=90)
        == """\
HumanEval/32  find_zero                                              episode 0a1b  round 1

candidate: valid
  1 def find_zero(xs):
  2     return -xs[0] / xs[1]

      test                    solution     predicted    verdict         program gave
──────────────────────────────────────────────────────────────────────────────────────────
  1   find_zero([1, 2])       -0.5         right        passed          -0.5
  2   find_zero([3, -4])      0.75         wrong: 2.0   wrong answer    0.7
  3   find_zero([0] * 99)     0.0          right        time limit      time limit
 R1   find_zero([0, 1])       0.0          right        runtime error   ZeroDivisionError
                                                                        : division by
                                                                        zero

new .WT   replayed E   . passed  W wrong answer  E runtime error  T time limit

 line   dropped or corrected                           because
──────────────────────────────────────────────────────────────────────────────────────────
    7   assert find_zero([1                            syntax error: '[' was never closed

coder         passes 1 of 4 tests
              0.5*pass_replayed 0.000 + 0.5*pass_new 0.333 = 0.167
tester        2 of 4 answers right, the program fails 2 of 3 tests
              0.5*validity 0.250 + 0.5*adversarial 0.062 - 1*nonprintable 0.000 = 0.156
Mistake Book  2 entered, 1 left; 5 for this problem now
"""
    )


def test_an_invalid_candidate_shows_why_and_that_the_tester_was_not_asked() -> None:
    text = duel_text(judged(INVALID, tester_reply=None, book=None))
    assert "candidate: syntax error  invalid syntax" in text
    assert "def find_zero(:" in text
    assert "no turn: the candidate is invalid" in text
    assert "Mistake Book  unchanged" in text
    assert "predicted" not in text


def test_a_reply_without_a_program_is_shown_itself() -> None:
    report = replace(INVALID, candidate=Candidate("", Rejection(RejectionReason.NO_CODE, "")), verdict=Verdict.NO_CODE)
    text = duel_text(judged(report, coder_reply="I would rather not.\n" * 30))
    assert text.count("I would rather not.") == 8
    assert "… 22 more lines" in text


def test_colour_appears_in_a_terminal_and_only_there() -> None:
    page = StringIO()
    console = Console(file=page, force_terminal=True, color_system="truecolor", width=100, _environ={})
    console.print(duel_picture(judged()))
    assert "\x1b[" in page.getvalue()
    assert "\x1b" not in duel_text(judged())


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J", "\x9b31m", "\r", "\x00", "\u202e", "\u2028", "\ud800", "\x07", "\u200b"]
)
def test_what_agents_wrote_cannot_steer_the_terminal(hostile: str) -> None:
    bad = case(f"f('{hostile}')", hostile, Verdict.RUNTIME_ERROR, f"ValueError: {hostile}", wrong=f"'{hostile}'")
    suite = suite_of(bad, rejections=(Rejection(RejectionReason.EMPTY_REPLY, hostile, 1, hostile),))
    report = replace(VALID, candidate=Candidate(f"x = '{hostile}'"), detail=hostile, suites=(suite,))
    problem = replace(PROBLEM, id=f"P{hostile}")
    text = duel_text(judged(report, problem=problem))
    assert hostile not in text
    assert set(text) - {"\n"} == {c for c in text if unicodedata.category(c)[0] != "C"}


def test_markup_in_what_agents_wrote_is_shown_not_obeyed() -> None:
    bad = case("f('[bold]x[/bold]')", "[red]", Verdict.WRONG_ANSWER, "[/]")
    text = duel_text(judged(replace(VALID, candidate=Candidate("a = '[link=x]y[/link]'"), suites=(suite_of(bad),))))
    for shown in ("[bold]x[/bold]", "[red]", "[/]", "[link=x]y[/link]"):
        assert shown in text


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=300), st.text(max_size=60))
def test_any_text_gives_a_picture_within_the_width(program: str, actual: str) -> None:
    bad = case("f(1)", 1, Verdict.WRONG_ANSWER, actual)
    report = replace(VALID, candidate=Candidate(program), suites=(suite_of(bad),))
    for line in duel_text(judged(report, coder_reply=program), width=80).split("\n"):
        assert cell_len(line) <= 80


def test_long_programs_and_suites_are_cut_and_say_by_how_much() -> None:
    many = tuple(case(f"f({i})", i, Verdict.PASSED, str(i)) for i in range(100))
    suite = suite_of(*many, rejections=DROPPED * 20)
    report = replace(VALID, candidate=Candidate("x = 1\n" * 1000 + "y" * 10_000_000), suites=(suite,))
    text = duel_text(judged(report))
    assert "… 961 more lines" in text
    assert "… and 61 more" in text
    assert "… and 8 more" in text
    assert "." * 100 in text.replace("\n", "")  # the row of verdicts stays whole
    assert len(text) < 20_000


def test_a_copy_of_an_example_is_marked_since_it_may_pay_nothing() -> None:
    copied = replace(NEW[0], case=replace(NEW[0].case, is_example=True))
    report = replace(VALID, suites=(replace(VALID.suites[0], cases=(copied, *NEW[1:])),))
    assert duel_text(judged(report)).count("right, an example") == 1


def test_every_verdict_of_a_case_has_a_symbol_of_its_own() -> None:
    of_candidates_only = {Verdict.NO_CODE, Verdict.SYNTAX_ERROR, Verdict.NO_ENTRY_POINT}
    assert set(SYMBOLS) == set(Verdict) - of_candidates_only
    assert len(set(SYMBOLS.values())) == len(SYMBOLS)


def test_a_reward_is_shown_as_the_sum_that_it_is() -> None:
    terms = (("validity", 1.0, 0.5), ("adversarial", 0.25, 0.5), ("nonprintable", 0.1, -1.0))
    parts = [RewardPart(*each) for each in terms]
    assert reward_sum(Reward.of(*parts[:2])) == "0.5*validity 1.000 + 0.5*adversarial 0.250 = 0.625"
    assert reward_sum(Reward.of(*parts)).endswith(" - 1*nonprintable 0.100 = 0.525")
    assert reward_sum(Reward.of(parts[2])) == "-1*nonprintable 0.100 = -0.100"
    assert reward_sum(Reward(nan, ())) == "masked: our own failure hides it"
    assert reward_sum(Reward.of()) == "nothing = 0.000"


def test_the_book_says_only_what_changed() -> None:
    assert book_sentence(BookDelta(size=3)) == "nothing changed; 3 for this problem now"
    assert book_sentence(BookDelta(6, 1, 2, 3, 4, 5)) == (
        "1 entered, 2 left, 3 pushed out, 4 counted up, 5 counted down; 6 for this problem now"
    )


def test_letters_and_emoji_of_every_script_stay_readable() -> None:
    assert harmless("naïve 数学 😀") == "naïve 数学 😀"
    assert harmless("a\nb\tc", keep="\n") == "a\nb\\tc"


def test_a_duel_that_reveals_the_solution_marks_the_line_and_tells_who_found_it() -> None:
    problem = replace(PROBLEM, solution="def find_zero(xs):\n    return xs[0] / xs[1]\n")
    console = Console(file=StringIO(), width=100, force_terminal=False)
    with console.capture() as shown:
        console.print(duel_picture(judged(problem=problem), reveals=True))
    assert "❱ 2     return -xs[0] / xs[1]" in shown.get()
    sentence = "line 2 is `return -xs[0] / xs[1]`, in the solution it is `return xs[0] / xs[1]`; tests 3, R1 found it."
    assert sentence in " ".join(shown.get().split())
    assert "solution it is" not in duel_text(judged(problem=problem))


@pytest.mark.parametrize(
    ("cases", "told"),
    [
        ((NEW[0],), "no test found it."),
        ((NEW[1],), "no test found it: of those that the program fails, test 1 has a wrong answer."),
        ((NEW[1], COPIED, COPIED), "fails, tests 2, 3 copy examples and test 1 has a wrong answer."),
        ((COPIED, NEW[2]), "test 2 found it."),
    ],
)
def test_only_tests_that_count_found_it(cases: tuple[CaseReport, ...], told: str) -> None:
    problem = replace(PROBLEM, solution="def find_zero(xs):\n    return xs[0] / xs[1]\n")
    report = replace(VALID, replayed=(), suites=(suite_of(*cases),))
    console = Console(file=StringIO(), width=100, force_terminal=False)
    with console.capture() as shown:
        console.print(duel_picture(judged(report, problem=problem), reveals=True))
    assert told in " ".join(shown.get().split())
