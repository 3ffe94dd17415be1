"""The formulas, against the release's table (method.md 1.6), the paper's figure 6, and properties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.train.grpo.advantages import group_advantages
from codea1_env.errors import UserError
from codea1_env.facts.submissions import Rejection, RejectionReason
from codea1_env.facts.verdicts import CandidateReport, CaseReport, ProblemReport, SuiteReport, ValidSuite, Verdict
from codea1_env.rules.rewards import (
    MASKED,
    CandidateRewards,
    alpha_with_book,
    n_written,
    names_of_suite_parts,
    score,
    score_group,
)
from codea1_env.rules.ruleset import PRESETS, CommonKills, CreditRules, Replays, RewardRules, Ruleset, preset
from tests.support.reports import FAILED, INVALID, OURS, PASSED, SLOW, UNRUN, met, met_all, suite_of
from tests.support.reports import candidate as report


def suite(verdicts: list[Verdict], *, n_wrong: int = 0, n_dropped: int = 0, nonprintable: float = 0.0) -> SuiteReport:
    """A judged suite whose last `n_wrong` cases had wrong predictions, and of which more tests were dropped."""
    return suite_of(*met_all(verdicts, n_wrong=n_wrong), n_dropped=n_dropped, nonprintable=nonprintable)


def rewards(judged: CandidateReport, rules: str | Ruleset) -> CandidateRewards:
    return score(judged, preset(rules) if isinstance(rules, str) else rules)


RELEASE_TABLE = [
    # n_valid, invalid, fails, replayed (passed, all), coder, tester: method.md 1.6
    (8, 0, 0, (0, 0), 1.0, 0.50),
    (8, 0, 8, (0, 0), 0.0, 1.00),
    (8, 8, 8, (0, 0), 0.0, 0.50),
    (0, 8, 0, (0, 0), 0.0, 0.00),
    (8, 0, 0, (8, 8), 1.0, 0.75),
    (8, 0, 8, (8, 8), 0.5, 1.00),
    (8, 0, 0, (0, 8), 0.5, 0.50),
    (8, 0, 8, (0, 8), 0.0, 0.75),
    (1, 0, 0, (8, 8), 1.0, 0.3125),
    (0, 8, 0, (8, 8), 1.0, 0.00),
    (4, 0, 4, (0, 0), 0.0, 0.50),
    (12, 0, 4, (0, 0), 2 / 3, 0.50),
]


@pytest.mark.parametrize(("n_valid", "invalid", "fails", "replayed", "coder", "tester"), RELEASE_TABLE)
def test_release_reproduces_the_official_table(n_valid, invalid, fails, replayed, coder, tester):
    # In the row of 12 the failing tests are the last four, beyond the eight that count for the tester.
    verdicts = [PASSED] * (n_valid - fails) + [FAILED] * fails
    n_wrong = min(invalid, n_valid)
    history = [PASSED] * replayed[0] + [FAILED] * (replayed[1] - replayed[0])
    judged = report(suite(verdicts, n_wrong=n_wrong, n_dropped=invalid - n_wrong), replayed=history)
    found = rewards(judged, "release")
    assert found.coder.value == pytest.approx(coder, abs=1e-12)
    assert found.testers[0].value == pytest.approx(tester, abs=1e-12)


def rejecting(judged: SuiteReport, *reasons: RejectionReason) -> SuiteReport:
    """The same suite, of a reply in which one test more was rejected, without being counted as invalid."""
    dropped = tuple(Rejection(reason, "assert f(9) == 0", 9) for reason in reasons)
    return replace(judged, suite=replace(judged.suite, rejections=dropped))


def example_and(*cases: CaseReport, replayed: Sequence[Verdict] = ()) -> CandidateReport:
    """A program that fails a case that the statement's examples answer."""
    return report(suite_of(met(FAILED, n=1, example=True), *cases), replayed=replayed)


ONE_EMPTY = report(suite([PASSED] * 8), suite([], n_dropped=8))
ALL_WRONG = report(suite([FAILED] * 8, n_wrong=8))
BY_HAND = [
    # rules, report, the coder's reward, the tester's reward (None: not asked for)
    ("release", report(suite([], nonprintable=0.25), verdict=INVALID), 0.0, -0.25),  # the table's thirteenth row
    # Eq. 2 averages over suites that have tests, and so does `fixed`: the coder does not pay for a tester's garbage.
    ("release", ONE_EMPTY, 0.5, None),
    ("paper", ONE_EMPTY, 1.0, None),
    ("fixed", ONE_EMPTY, 1.0, None),
    # D24; the corrected cases still count against the program
    ("release", ALL_WRONG, 0.0, 0.5),
    ("fixed", ALL_WRONG, 0.0, 0.0),
    ("fixed", report(suite([FAILED] * 2, n_wrong=2), replayed=[PASSED] * 4), 0.5, 0.0),  # no right case, no bonus
    ("fixed", example_and(replayed=[PASSED]), 0.5, 0.0),  # nor without a case that can earn something
    # Cases that were not run count against the coder, but not for the tester.
    ("fixed", report(suite([FAILED, UNRUN, UNRUN, PASSED])), 0.25, 0.5 * 4 / 8 + 0.5 * 1 / 8),
    ("fixed", report(suite([])), 0.5, 0.0),  # no evidence
    # What failed for our limits counts for no share.
    ("paper", report(rejecting(suite([FAILED] * 4), RejectionReason.UNKNOWABLE)), 0.0, 1.0),
    ("golden", report(suite([FAILED]), golden=0.75), 0.75, 0.0),
    ("golden", report(suite([FAILED])), math.nan, None),
    ("golden", report(suite([]), verdict=Verdict.NO_CODE), 0.0, None),
    ("zero_sum", report(suite([]), verdict=Verdict.NO_CODE), -1.0, 1.0),
    ("zero_sum", report(suite([])), 1.0, -1.0),
    # No coder is paid for using up its time.
    ("zero_sum", report(suite([PASSED] * 8)), 1.0, -1.0),
    ("zero_sum", report(suite([SLOW] * 8)), -1.0, 1.0),
    ("zero_sum", report(suite([SLOW] * 5 + [UNRUN] * 3)), -1.0, 1.0),  # its own doing
    ("zero_sum", report(suite([PASSED] * 2 + [FAILED] + [UNRUN] * 5)), -0.5, 0.5),
    ("zero_sum", report(suite([PASSED] * 4 + [UNRUN] * 4)), 0.5, -0.5),  # slow, maybe right: neither side is paid
    ("zero_sum", report(suite([UNRUN] * 8)), 0.0, 0.0),
    ("zero_sum", report(suite([FAILED, UNRUN, UNRUN], n_wrong=1)), 1 - 2 * 2 / 8, 2 * 2 / 8 - 1),  # right ones count
]


@pytest.mark.parametrize(("name", "judged", "coder", "tester"), BY_HAND)
def test_rewards_by_hand(name, judged, coder, tester):
    found = rewards(judged, name)
    assert found.coder.value == pytest.approx(coder, nan_ok=True)
    assert tester is None or found.testers[0].value == pytest.approx(tester)


@pytest.mark.parametrize(
    ("verdicts", "n_wrong", "replayed", "adversarial", "tester"),
    [
        # Figure 6 with K = 3, row 2 as Eq. 3 gives it (method.md A12).
        ([PASSED, PASSED, PASSED], 1, [PASSED, FAILED], 0.25, 0.458333),
        ([FAILED, PASSED, PASSED], 0, [PASSED, FAILED], 0.416667, 0.708333),
        ([FAILED, FAILED, PASSED], 0, [PASSED, FAILED], 0.583333, 0.791667),
        ([FAILED, FAILED, PASSED], 0, [], 0.666667, 0.833333),  # without history, one minus the pass rate
    ],
)
def test_paper_agrees_with_figure_6(verdicts, n_wrong, replayed, adversarial, tester):
    rules = replace(preset("paper"), tests_per_suite=3)
    found = rewards(report(suite(verdicts, n_wrong=n_wrong), replayed=replayed), rules)
    parts = {part.name: part.value for part in found.testers[0].parts}
    assert parts["adversarial"] == pytest.approx(adversarial, abs=1e-6)
    assert found.testers[0].value == pytest.approx(tester, abs=1e-6)


UNCOUNTED = [RejectionReason.OPAQUE_VALUE, RejectionReason.TOO_MANY_CALLS, RejectionReason.UNKNOWABLE]


@pytest.mark.parametrize(
    ("judged", "paid"),
    [
        (suite([FAILED] * 5), True),
        (suite([FAILED] * 4, n_dropped=1), True),  # four that count, and one that the solution does not run
        (suite([FAILED]), False),
        (suite([FAILED] * 4), False),
        (suite([FAILED] * 5, n_dropped=1), False),
        (rejecting(suite([FAILED] * 5), RejectionReason.TOO_MANY), False),
        (rejecting(suite([FAILED] * 5), RejectionReason.NOT_AN_ASSERT), True),
        *((rejecting(suite([FAILED] * 4), reason), True) for reason in UNCOUNTED),
        *((rejecting(suite([FAILED] * 5), reason), False) for reason in UNCOUNTED),
        # Corrected first, and then not to be known: one test.
        (rejecting(suite([FAILED] * 4, n_dropped=1), RejectionReason.WRONG_PREDICTION, UNCOUNTED[-1]), True),
        (suite([]), False),
    ],
)
@pytest.mark.parametrize("replayed", [[], [PASSED, FAILED]])
def test_paper_pays_a_suite_of_exactly_k_written_tests_only(judged, paid, replayed):
    tester = rewards(report(judged, replayed=replayed), "paper").testers[0]
    assert (tester.value > 0) is paid
    assert [part.name for part in tester.parts] == ["validity", "adversarial"]


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"release", "golden", "cure", "zero_sum"}))
def test_no_evidence_can_be_masked_for_the_coder_alone(name):
    rules = preset(name)
    rules = replace(rules, reward=replace(rules.reward, no_evidence="masked"))
    untested = report(suite([], n_dropped=1))
    found = rewards(untested, rules)
    assert found.coder.masked
    assert found.testers == rewards(untested, name).testers
    tested = report(suite([PASSED], n_dropped=1))
    assert rewards(tested, rules) == rewards(tested, name)


@pytest.mark.parametrize(("pays", "tester"), [(True, 0.5 * 2 / 8 + 0.5 * 2 / 8), (False, 0.5 * 1 / 8 + 0.5 * 1 / 8)])
def test_what_the_statement_answers_counts_for_the_coder_and_earns_the_tester_nothing_in_fixed(pays, tester):
    judged = example_and(met(FAILED, n=2))
    rules = replace(preset("fixed"), reward=replace(preset("fixed").reward, pays_examples=pays))
    assert rewards(judged, rules).testers[0].value == tester
    assert rewards(judged, rules).coder.value == 0.0


def test_only_fixed_and_what_derives_from_it_pay_nothing_for_examples():
    assert [name for name, rules in PRESETS.items() if not rules.reward.pays_examples] == ["fixed", "first_kill"]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_our_own_failure_is_masked_and_never_zero(name):
    for judged in (
        report(suite([PASSED, OURS])),
        report(suite([PASSED]), replayed=[OURS]),
        report(suite([]), verdict=OURS),
        report(SuiteReport(ValidSuite((), (), 0, 0.0, internal_error=True), ())),
    ):
        found = rewards(judged, name)
        assert math.isnan(found.coder.value)
        assert all(tester.masked for tester in found.testers)


VERDICTS = st.lists(st.sampled_from([PASSED, FAILED, SLOW, UNRUN]), max_size=8)


@st.composite
def suites(draw: st.DrawFn) -> SuiteReport:
    verdicts = draw(VERDICTS)
    n_wrong = draw(st.integers(0, len(verdicts)))
    n_dropped = draw(st.integers(0, 8 - len(verdicts)))
    return suite(verdicts, n_wrong=n_wrong, n_dropped=n_dropped, nonprintable=draw(st.floats(0, 1)))


@st.composite
def reports(draw: st.DrawFn) -> CandidateReport:
    verdict = draw(st.sampled_from([PASSED, PASSED, PASSED, INVALID]))
    return report(
        *draw(st.lists(suites(), min_size=1, max_size=3)),
        replayed=draw(st.just([]) | VERDICTS),
        verdict=verdict,
        golden=draw(st.floats(0, 1)),
    )


RANGES = {"zero_sum": (-1.0, 1.0), "learnability": (-1.0, 1.0)}


@pytest.mark.parametrize("name", sorted(PRESETS))
@given(judged=reports(), alpha=st.floats(0, 1), k=st.integers(1, 8))
def test_every_reward_is_the_sum_of_its_parts_and_bounded_however_long_the_suite(name, judged, alpha, k):
    rules = replace(preset(name), tests_per_suite=k)
    found = score(judged, replace(rules, reward=replace(rules.reward, alpha=alpha)))
    low, high = RANGES.get(name, (0.0, 1.0))
    for reward in (found.coder, *found.testers):
        assert reward.value == pytest.approx(sum(part.weight * part.value for part in reward.parts), abs=1e-9)
    assert low - 1e-9 <= found.coder.value <= high + 1e-9
    assert all(-1 - 1e-9 <= tester.value <= 1 + 1e-9 for tester in found.testers)
    assert len(found.testers) == len(judged.suites)


@given(judged=reports())
def test_zero_sum_sums_to_zero(judged):
    found = score(judged, preset("zero_sum"))
    assert found.coder.value + sum(t.value for t in found.testers) / len(found.testers) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", ["paper", "release", "fixed", "zero_sum"])
@given(n=st.integers(1, 8), replayed=st.just([]) | VERDICTS)
def test_another_kill_never_costs_the_tester_nor_pays_the_coder(name, n, replayed):
    def with_kills(n_killed: int) -> CandidateRewards:
        rules = replace(preset(name), tests_per_suite=n) if name == "paper" else preset(name)
        return rewards(report(suite([FAILED] * n_killed + [PASSED] * (n - n_killed)), replayed=replayed), rules)

    ladder = [with_kills(k) for k in range(n + 1)]
    for fewer, more in pairwise(ladder):
        assert more.testers[0].value >= fewer.testers[0].value
        assert more.coder.value <= fewer.coder.value


@given(n=st.integers(0, 7))
def test_one_more_valid_test_never_costs_the_tester_in_fixed(n):
    short, longer = (rewards(report(suite([PASSED] * k)), "fixed").testers[0].value for k in (n, n + 1))
    assert longer > short


@pytest.mark.parametrize("name", ["fixed", "zero_sum"])
def test_a_suite_of_more_than_k_cases_is_paid_for_its_first_k(name):
    rules = replace(preset(name), tests_per_suite=2)
    many = report(suite([FAILED] * 8))
    two = report(suite([FAILED] * 2))
    assert rewards(many, rules) == rewards(two, rules)
    assert rewards(many, rules).testers[0].value == 1.0
    late = report(suite([PASSED, PASSED, FAILED, FAILED]))
    assert rewards(late, rules) == rewards(report(suite([PASSED, PASSED])), rules)


K = 4
OF_EQ_3 = ("fixed", "paper", "release")
ALPHAS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
REPLAYED = st.lists(st.sampled_from([PASSED, FAILED, UNRUN]), min_size=1, max_size=8)


def with_replays(name: str, alpha: float, replays: str) -> Ruleset:
    rules = preset(name)
    reward = replace(rules.reward, alpha=alpha, replays=Replays(replays))
    return replace(rules, tests_per_suite=K, reward=reward)


@st.composite
def attempts(draw: st.DrawFn, *, is_plain: bool = False) -> SuiteReport:
    """A suite of up to K tests, right, corrected or dropped. A plain one has K, one of them right, and no penalty."""
    n_right = int(is_plain)
    n_cases = draw(st.integers(n_right, K))
    n_wrong = draw(st.integers(0, n_cases - n_right))
    verdicts = draw(st.lists(st.sampled_from([PASSED, FAILED]), min_size=n_cases, max_size=n_cases))
    n_dropped = K - n_cases if is_plain else draw(st.integers(0, K - n_cases))
    share = 0.0 if is_plain else draw(st.floats(0, 1))
    return suite(verdicts, n_wrong=n_wrong, n_dropped=n_dropped, nonprintable=share)


@pytest.mark.parametrize("name", OF_EQ_3)
@given(group=st.lists(attempts(is_plain=True), min_size=2, max_size=5), replayed=REPLAYED, alpha=ALPHAS)
def test_replays_are_another_weight_of_validity_where_each_suite_has_a_right_case(name, group, replayed, alpha):
    judged = report(*group, replayed=replayed)
    paid, as_alpha = (
        group_advantages(np.array([tester.value for tester in rewards(judged, with_replays(name, alpha, way)).testers]))
        for way in Replays
    )
    assert paid.values == pytest.approx(as_alpha.values, abs=1e-3)  # the epsilon beside the spread is not scaled
    assert (paid.is_trained == as_alpha.is_trained).all()


@pytest.mark.parametrize("name", OF_EQ_3)
@given(group=st.lists(attempts(), min_size=1, max_size=3), replayed=REPLAYED, alpha=ALPHAS)
def test_elsewhere_replays_add_what_the_rules_say(name, group, replayed, alpha):
    judged = report(*group, replayed=replayed)
    paid, as_alpha = (rewards(judged, with_replays(name, alpha, way)) for way in Replays)
    fails = {PASSED: 0, FAILED: 1, UNRUN: 0 if name == "fixed" else 1}
    bonus = (1 - alpha) / 2 * (1 - sum(fails[verdict] for verdict in replayed) / len(replayed))
    scale = (1 + alpha) / 2
    for found, other, one in zip(paid.testers, as_alpha.testers, group, strict=True):
        counts = any(case.case.prediction_right or name != "fixed" for case in one.cases)
        if name == "paper":
            counts = counts and n_written(one) == K
        penalty = preset(name).reward.nonprintable_penalty * one.suite.nonprintable_share
        expected = scale * other.value + bonus * counts - (1 - scale) * penalty
        assert found.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("alpha", "most"), [(0.5, 0.41), (0.25, 0.68), (0.1, 0.92)])
def test_empty_suites_are_where_replays_move_advantages(alpha, most):
    """The figures of docs/rules.md: groups of four suites of four tests, all replays passed."""
    kinds = [(right, failed) for right in range(K + 1) for failed in range(right + 1)]
    groups = np.array(list(combinations_with_replacement(kinds, 4)))
    suites = [suite([FAILED] * failed + [PASSED] * (right - failed)) for right, failed in kinds]
    found = {}
    for way in Replays:
        paid = [
            rewards(report(each, replayed=[PASSED]), with_replays("fixed", alpha, way)).testers[0] for each in suites
        ]
        value = {kind: reward.value for kind, reward in zip(kinds, paid, strict=True)}
        found[way] = group_advantages(np.array([[value[tuple(each)] for each in group] for group in groups.tolist()]))
    moved = np.abs(found[Replays.PAID].values - found[Replays.AS_ALPHA].values).max(axis=1)
    assert moved.max() == pytest.approx(most, abs=0.005)
    has_empty = (groups[..., 0] == 0).any(axis=1)
    assert moved[~has_empty].max() < 1e-3


@pytest.mark.parametrize("name", OF_EQ_3)
@given(judged=reports(), alpha=ALPHAS)
def test_as_alpha_pays_no_replays(name, judged, alpha):
    found = rewards(judged, with_replays(name, alpha, "as_alpha"))
    weight = alpha_with_book(alpha) if judged.replayed else alpha
    assert found == rewards(replace(judged, replayed=()), with_replays(name, weight, "paid"))


def test_as_alpha_masks_what_a_failed_replay_hides():
    assert rewards(report(suite([PASSED]), replayed=[OURS]), with_replays("fixed", 0.5, "as_alpha")).coder.masked


def test_as_alpha_is_refused_where_testers_are_not_paid_by_replays():
    with pytest.raises(UserError, match=r"as_alpha requires one of the schemes paper, release, fixed \(got cure"):
        RewardRules(scheme="cure", replays=Replays.AS_ALPHA)
    with pytest.raises(UserError, match="common_kills book counts replays"):
        RewardRules(replays=Replays.AS_ALPHA, credit=CreditRules(common_kills=CommonKills.BOOK))


@pytest.mark.parametrize("name", sorted(PRESETS))
@given(judged=st.lists(reports(), max_size=3))
def test_candidates_with_suites_of_their_own_are_scored_alone(name, judged):
    found = score_group(ProblemReport("p", tuple(judged)), preset(name))
    assert found == tuple(score(each, preset(name)) for each in judged)


def test_what_one_candidate_hides_says_nothing_about_the_others():
    judged = (report(suite([FAILED]), golden=0.5), report(suite([OURS]), golden=0.5))
    for name in PRESETS:
        first, second = score_group(ProblemReport("p", judged, shares_suites=True), preset(name))
        assert first == score(judged[0], preset(name))
        assert second.coder.masked
        assert all(tester.masked for tester in second.testers)


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"learnability"}))  # it pays an empty suite as unreadable
def test_the_parts_of_a_suite_have_the_names_that_an_empty_suite_has(name: str) -> None:
    found = rewards(report(suite([FAILED, PASSED]), golden=1.0), name).testers[0]
    assert {part.name for part in found.parts} == names_of_suite_parts(preset(name))
    for part in found.parts:
        assert found.part(part.name) == part.value
    assert (found.part("nothing"), math.isnan(MASKED.part("validity"))) == (0.0, True)
