from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from math import inf, nan
from operator import getitem
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env import values
from codea1_env.errors import BrokenInput
from codea1_env.facts.submissions import Candidate, Rejection, RejectionReason, TestCase
from codea1_env.facts.verdicts import CandidateReport, CaseReport, SuiteReport, ValidCase, ValidSuite, Verdict
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.rules.mistake_book import BookDelta, changes
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import PRESETS, Ruleset, preset
from codea1_env.runs import records
from codea1_env.runs.records import EpisodeRecord, RewardsRecord, RoundRecord, from_line, to_line
from tests.support.books import candidate, identity
from tests.support.reports import judged_round
from tests.support.runs import EPISODE_SCHEMA

PROBLEM = identity("P/1", "f")

words = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
encoded = st.one_of(st.integers(), st.floats(), words, st.binary(max_size=4), st.lists(st.booleans())).map(
    values.encode
)
shares = st.floats(0, 1)
rejections = st.builds(Rejection, st.sampled_from(RejectionReason), words, st.integers(0, 99), words)
test_cases = st.builds(
    TestCase, words, st.none() | words, st.lists(words, max_size=2).map(tuple), st.booleans(), st.integers(0, 99)
)
valid_cases = st.builds(ValidCase, test_cases, encoded, st.sampled_from([True, False, None]), st.booleans())
case_verdicts = st.sampled_from([Verdict.PASSED, Verdict.WRONG_ANSWER, Verdict.TIME_LIMIT, Verdict.NOT_RUN])
case_reports = st.builds(CaseReport, valid_cases, case_verdicts | st.just(Verdict.INTERNAL_ERROR), words)


@st.composite
def suite_reports(draw: st.DrawFn) -> SuiteReport:
    cases = tuple(draw(st.lists(case_reports, max_size=4)))
    dropped = tuple(draw(st.lists(rejections, max_size=2)))
    n_invalid, share, broken = draw(st.integers(0, 9)), draw(shares), draw(st.sampled_from([False, False, True]))
    return SuiteReport(ValidSuite(tuple(c.case for c in cases), dropped, n_invalid, share, broken), cases)


candidate_reports = st.builds(
    CandidateReport,
    st.builds(Candidate, words, st.none() | rejections),
    st.sampled_from([Verdict.PASSED, Verdict.PASSED, Verdict.SYNTAX_ERROR, Verdict.INTERNAL_ERROR]),
    words,
    st.lists(case_reports, max_size=3).map(tuple),
    st.lists(suite_reports(), max_size=2).map(tuple),
    st.none() | shares,
)
deltas = st.none() | st.builds(BookDelta, *[st.integers(0, 9)] * 6)


def judged(report: CandidateReport, rules: Ruleset, delta: BookDelta | None = None, reply: str = "r") -> JudgedRound:
    return judged_round(report, rules, PROBLEM, coder_reply=reply, tester_reply=None, book=delta)


def episode(*rounds: JudgedRound) -> EpisodeRecord:
    played = tuple(RoundRecord.of(each) for each in rounds)
    return EpisodeRecord(episode=0, episode_id="0a", problem_id=PROBLEM.id, seed=7, rounds=played)


def simple_episode(verdict: Verdict = Verdict.WRONG_ANSWER, reply: str = "r") -> EpisodeRecord:
    return episode(judged(candidate({}, {1: verdict}), preset("fixed"), reply=reply))


@given(candidate_reports, st.sampled_from(sorted(PRESETS)), deltas, words)
def test_a_line_gives_back_every_fact(report: CandidateReport, name: str, delta: BookDelta | None, reply: str) -> None:
    played = judged(report, preset(name), delta, reply)
    back = from_line(to_line(episode(played)), "here").rounds[0]
    assert back.to_report() == report
    assert back.rewards == RewardsRecord.model_validate(played.rewards)
    assert (None if back.book is None else back.book.to_delta()) == delta
    assert back.coder_reply == reply


@given(candidate_reports, st.sampled_from(sorted(PRESETS)), st.sampled_from(sorted(PRESETS)), shares)
def test_rewards_under_other_rules_follow(report: CandidateReport, played_under: str, asked: str, alpha: float) -> None:
    back = from_line(to_line(episode(judged(report, preset(played_under)))), "here")
    rules = preset(asked)
    rules = replace(rules, reward=replace(rules.reward, alpha=alpha))
    assert repr(score(back.rounds[0].to_report(), rules)) == repr(score(report, rules))


@pytest.mark.slow
@given(candidate_reports, deltas)
def test_every_line_obeys_the_published_schema(report: CandidateReport, delta: BookDelta | None) -> None:
    line = to_line(episode(judged(report, preset("fixed"), delta)))
    jsonschema.validate(json.loads(line), EPISODE_SCHEMA)


def test_the_published_schema_is_the_one_of_the_models() -> None:
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "episode_v1.json"}
    wanted = about | EpisodeRecord.model_json_schema(mode="serialization")
    assert wanted == EPISODE_SCHEMA, "write json.dumps(wanted, indent=2) there"


def test_the_published_schema_refuses_a_line_without_a_verdict() -> None:
    data = json.loads(to_line(simple_episode()))
    jsonschema.validate(data, EPISODE_SCHEMA)
    del data["rounds"][0]["suites"][0]["cases"][0]["verdict"]
    with pytest.raises(jsonschema.ValidationError, match="verdict"):
        jsonschema.validate(data, EPISODE_SCHEMA)


@pytest.mark.parametrize("reply", ["\x00", "a\r\nb\u2028c\x85d", "😀", "\ud800lone", "x" * 100_000])
def test_any_reply_becomes_one_line_of_ascii(reply: str) -> None:
    line = to_line(simple_episode(reply=reply))
    assert line.isascii()
    assert line.startswith(b'{"schema_version":1,')  # which tells how to read the rest
    assert len(line.decode().splitlines()) == 1
    assert from_line(line, "here").rounds[0].coder_reply == reply.encode("utf-8", "backslashreplace").decode()


def test_a_masked_reward_is_null() -> None:
    record = simple_episode(Verdict.INTERNAL_ERROR)
    line = to_line(record)
    assert json.loads(line)["rounds"][0]["rewards"]["coder"] == {"value": None, "parts": []}
    assert from_line(line, "here").rounds[0].rewards.testers[0].value is None
    assert record.masked
    assert not simple_episode().masked


def edited(**changes: object) -> bytes:
    return json.dumps({**json.loads(to_line(simple_episode())), **changes}).encode()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "is not JSON"),
        (b"{}", "expected schema version 1, got None"),
        (b"[1]", "expected schema version 1, got None"),
        (b'{"schema_version": 2}', "expected schema version 1, got 2"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (edited(episode=-1), "episode: expected greater"),
        (edited(extra=1), "extra: Extra inputs are not permitted"),
        (edited(rounds=[{"round": 0}]), r"rounds.0.coder_reply: Field required \(and 6 more\)"),
        (edited()[:-10], "is not JSON"),
    ],
)
def test_a_broken_line_is_refused_with_its_place_and_its_first_fault(line: bytes, said: str) -> None:
    with pytest.raises(BrokenInput, match=f"^lines.jsonl line 3:? {said}"):
        from_line(line, "lines.jsonl line 3")


@pytest.mark.parametrize("number", [nan, inf, 1e300])
def test_no_number_that_json_or_a_sum_cannot_hold_is_recorded(number: float) -> None:
    with pytest.raises(ValueError, match="value"):
        records.RewardPartRecord(name="a", value=number, weight=1.0)


def places(tree: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything in a document."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [above, *(place for key, value in inner for place in places(value, (*above, key)))]


@given(data=st.data())
def test_a_line_with_anything_in_it_is_refused_or_can_be_used(data: st.DataObject) -> None:
    document = json.loads(to_line(simple_episode()))
    *above, last = data.draw(st.sampled_from(places(document)[1:]))
    odd = st.sampled_from((nan, inf, 1e308, -1, 10**30, "", "\0", "1e999", "passed", None, True, [], {}, [[]]))
    reduce(getitem, above, document)[last] = data.draw(odd)
    try:
        record = from_line(json.dumps(document).encode(), "here")
    except BrokenInput:
        return
    assert from_line(to_line(record), "again") == record
    for played in record.rounds:
        for rules in PRESETS.values():
            assert len(score(played.to_report(), rules).testers) == len(played.suites)
        changes(record.to_problem_report(played), PRESETS["fixed"].book)
