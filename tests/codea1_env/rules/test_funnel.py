from __future__ import annotations

from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import Verdict
from codea1_env.rules.funnel import _STAGE_OF, count_tests, funnel, funnel_sentence

PASSED, FAILED = Verdict.PASSED, Verdict.WRONG_ANSWER


def test_each_test_reaches_a_stage_or_is_lost_before_it_for_one_reason() -> None:
    cases = [(True, False, FAILED), (None, False, PASSED), (True, True, FAILED), (True, False, Verdict.NOT_RUN)]
    reasons = [RejectionReason.SYNTAX_ERROR, RejectionReason.VACUOUS, RejectionReason.DUPLICATE]
    found = funnel(count_tests(cases, [*reasons, RejectionReason.WRONG_PREDICTION, RejectionReason.DUPLICATE]))
    stages = ", ".join(f"{stage.name} {stage.n}" for stage in found)
    assert stages == "written 9, read 8, right 7, not vacuous 6, not a copy 3, killing 1"
    assert list(found[4].lost.items()) == [("duplicate", 2), ("stated_example", 1)]
    assert found[5].lost == {"no_verdict": 1, "passed": 1}


def test_a_corrected_case_counts_once_and_kills_nothing() -> None:
    counts = count_tests([(False, False, FAILED)], [RejectionReason.WRONG_PREDICTION])
    assert counts == {"wrong_prediction": 1}
    assert [stage.n for stage in funnel(counts)] == [1, 1, 0, 0, 0, 0]


def test_a_sentence_names_the_most_frequent_reasons() -> None:
    counts = {"killing": 2, "passed": 7, "vacuous": 1, "duplicate": 3, "flaky": 2}
    assert funnel_sentence(counts) == (
        "15 written, 15 read, 13 right, 12 not vacuous, 9 not a copy, 2 killing; lost: passed 7, duplicate 3, flaky 2"
    )
    assert funnel_sentence({}) == "0 written, 0 read, 0 right, 0 not vacuous, 0 not a copy, 0 killing"


def test_reasons_that_no_stage_names_keep_a_test_from_being_read() -> None:
    unread = {reason.value for reason in RejectionReason} - _STAGE_OF.keys()
    assert unread == {
        "empty_reply", "no_code", "too_long", "syntax_error", "not_an_assert", "no_comparison", "no_entry_point_call",
        "forbidden_name", "too_many",
    }  # fmt: skip
