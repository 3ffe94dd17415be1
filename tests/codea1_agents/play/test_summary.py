from __future__ import annotations

import json
from dataclasses import replace
from math import isnan, nan

import pytest

from codea1_agents.play.summary import Tally
from codea1_env.facts.verdicts import Verdict
from codea1_env.problems import Problem
from codea1_env.rules.mistake_book import BookDelta
from codea1_env.rules.ruleset import preset
from codea1_env.runs.records import EpisodeRecord, RoundRecord
from tests.support.reports import FAILED, INVALID, OURS, PASSED, UNRUN, candidate, judged_round, met, suite_of
from tests.support.runs import summarise

NAMED = {"p": PASSED, "w": FAILED, "n": UNRUN, "i": OURS}
RULES = replace(preset("fixed"), tests_per_suite=4)


def episode(
    problem_id: str,
    new: str = "",
    replayed: str = "",
    *,
    right: bool = True,
    copied: bool = False,
    verdict: Verdict = PASSED,
    asked: bool = True,
    book: int | None = None,
) -> EpisodeRecord:
    suite = suite_of(*(met(NAMED[each], n=n, right=right, example=copied) for n, each in enumerate(new)))
    report = candidate(suite, replayed=(NAMED[each] for each in replayed), verdict=verdict)
    delta, problem = None if book is None else BookDelta(size=book), Problem(problem_id, "s", "f", "s", ())
    judged = judged_round(report, RULES, problem, tester_reply="" if asked else None, book=delta)
    played = (RoundRecord.of(judged),)
    return EpisodeRecord(episode=0, episode_id="0", problem_id=problem_id, seed=0, rounds=played)


def summary(*records: EpisodeRecord):
    return summarise(records, tests_per_suite=4)


@pytest.mark.parametrize(
    ("records", "name", "mean", "n"),
    [
        # Pass rates tell new tests from replayed ones; problems are weighed, not episodes.
        ([episode("a", "pppw", "pw"), episode("b", "", "pp")], "pass_new", 0.75, 1),
        ([episode("a", "pppw", "pw"), episode("b", "", "pp")], "pass_replayed", 0.75, 2),
        ([*[episode("a", "p")] * 3, episode("b", "w")], "pass_new", 0.5, 4),
        # A suite's validity is the share of right predictions among what was asked for, at most 1.
        ([episode("a", "pw")], "suite_validity", 0.5, 1),
        ([episode("a", "pppp", right=False)], "suite_validity", 0.0, 1),
        ([episode("a", "pppppp")], "suite_validity", 1.0, 1),
        # A suite beats a program if any new case does. Nobody beats an invalid program.
        ([episode("a", "pppw"), episode("b", "pp", "ww"), episode("c")], "kill_rate", 1 / 3, 3),
        ([episode("a", "nn", verdict=INVALID)], "kill_rate", nan, 0),
        # A wrong answer beats nobody, though the program fails its input.
        ([episode("a", "pppw"), episode("b", "pw", right=False)], "right_kill_rate", 0.5, 2),
        ([episode("a", "pppw"), episode("b", "pw", right=False)], "kill_rate", 1.0, 2),
        # Nor does a copied example.
        ([episode("a", "pppw"), episode("b", "pw", copied=True)], "right_kill_rate", 0.5, 2),
        ([episode("a", "pppw"), episode("b", "pw", copied=True)], "kill_rate", 1.0, 2),
        ([episode("a", "nn", verdict=INVALID)], "suite_validity", 0.5, 1),
        # Cases that were not run are not evidence.
        ([episode("a", "pn", "n")], "pass_new", 1.0, 1),
        ([episode("a", "pn", "n")], "pass_replayed", nan, 0),
        ([episode("a", "pn", "n")], "zero_evidence", 0.0, 1),
        ([episode("a", "nn", "n")], "zero_evidence", 1.0, 1),
        ([episode("a")], "zero_evidence", 1.0, 1),
    ],
)
def test_a_figure_is_a_mean_of_so_many_rounds(records: list[EpisodeRecord], name: str, mean: float, n: int) -> None:
    found = getattr(summary(*records), name)
    assert (found.mean, found.n) == (pytest.approx(mean, nan_ok=True), n)


@pytest.mark.parametrize(("right", "copied"), [(True, False), (True, True), (False, False)])
def test_a_report_has_the_same_meaning_of_a_beaten_program(right: bool, copied: bool) -> None:
    (played,) = episode("a", "pw", right=right, copied=copied).rounds
    (suite,) = played.to_report().suites
    assert suite.beats
    assert suite.beats_rightly is (right and not copied)


def test_programs_that_do_not_load_are_counted_by_the_reason() -> None:
    records = [episode(name, verdict=INVALID) for name in "abcd"]
    details = ("SyntaxError: line 1", "AssertionError", "AssertionError: 2", "it holds no program")
    for record, detail in zip(records, details, strict=True):
        object.__setattr__(record.rounds[0].candidate, "detail", detail)
    assert summary(episode("a", "p"), *records).not_loading == {"AssertionError": 2, "SyntaxError": 1, INVALID: 1}


def test_rounds_without_a_tester_are_counted_and_say_nothing_about_testers() -> None:
    found = summary(episode("a", verdict=INVALID, asked=False), episode("b", "w"))
    assert (found.n_unasked_rounds, found.candidate_validity.mean) == (1, 0.5)
    assert found.tester_reward.n == found.suite_validity.n == found.kill_rate.n == found.zero_evidence.n == 1
    assert found.coder_reward.n == 2


def test_masked_rounds_are_counted_and_enter_no_figure_also_those_that_ended_before_the_tester() -> None:
    found = summary(episode("a", "pi"), episode("b", "pp"))
    assert (found.n_masked_rounds, found.n_rounds) == (1, 2)
    assert (found.coder_reward.n_masked, found.tester_reward.n_masked) == (1, 1)
    assert (found.coder_reward.n, found.tester_reward.n) == (1, 1)
    assert found.coder_reward.n == found.pass_new.n == found.candidate_validity.n == 1
    assert found.coder_reward.mean == 1.0
    found = summary(episode("a", verdict=OURS, asked=False))
    assert (found.n_masked_rounds, found.n_unasked_rounds) == (1, 0)


def test_episodes_problems_and_the_last_size_of_their_books_are_counted_and_no_figure_is_null() -> None:
    found = summary(episode("a", "p"), episode("a", "p"), episode("b", "w"))
    assert (found.n_episodes, found.n_problems) == (3, 2)
    found = summary(episode("a", "w", book=1), episode("b", "w", book=5), episode("a", "w", book=2))
    assert found.book_size == 7
    data = summary(episode("a", "p")).to_json()
    assert json.loads(json.dumps(data, allow_nan=False))["pass_replayed"]["mean"] is None
    assert data["coder_reward"] == {"mean": 1.0, "low": None, "high": None, "n": 1, "n_problems": 1, "n_masked": 0}


def test_a_tally_may_be_asked_at_any_time() -> None:
    tally = Tally(tests_per_suite=4)
    assert isnan(tally.summary().coder_reward.mean)
    tally.add(episode("a", "p"))
    assert tally.summary().coder_reward.mean == 1.0
    tally.add(episode("b", "w"))
    assert tally.summary().coder_reward.mean == 0.5
