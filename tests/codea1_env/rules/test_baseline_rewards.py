"""The rewards of other papers, against cases worked out by hand from their formulas (method.md 4), and their ranges."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codea1_env.facts.verdicts import CandidateReport, ProblemReport, Verdict
from codea1_env.rules.rewards import CandidateRewards, score, score_group
from codea1_env.rules.ruleset import AtgenRules, LearnabilityRules, UtrlRules, preset
from tests.support.reports import FAILED, INVALID, PASSED, SLOW, UNRUN, candidate, met, met_all, suite_of


def crossed(name: str, *candidates: CandidateReport) -> tuple[CandidateRewards, ...]:
    return score_group(ProblemReport("p", candidates, shares_suites=True), preset(name))


def alone(name: str, only: CandidateReport) -> CandidateRewards:
    return score(only, preset(name))


LIED = met(FAILED, n=3, predicted="7", right=False, actual="7")
BY_HAND = [
    # scheme, report, the coder's reward, the tester's reward (None: not asked for)
    # A kill, the share of twelve valid tests, and format.
    ("utrl", candidate(suite_of(*met_all([FAILED, PASSED, PASSED]), n_dropped=1)), 0.7, 0.85 + 0.05 * 3 / 12 + 0.1),
    ("utrl", candidate(suite_of(*met_all([PASSED] * 14), n_dropped=2)), 1.0, 0.05 * 14 / 16 + 0.1),  # the share of more
    # A kill by a wrong prediction is not paid, nor charged to the coder.
    ("utrl", candidate(suite_of(met(FAILED, right=False), met(PASSED, n=1))), 1.0, 0.05 / 12 + 0.1),
    # Format is paid for a program that does not load, but not for none.
    ("utrl", candidate(suite_of(), verdict=INVALID), 0.1, None),
    ("utrl", candidate(suite_of(), verdict=Verdict.NO_CODE), 0.0, None),
    ("utrl", candidate(suite_of()), None, 0.0),
    ("atgen", candidate(suite_of(met(FAILED))), None, 1.0),
    ("atgen", candidate(suite_of(met(PASSED))), None, 0.5),
    ("atgen", candidate(suite_of(met(FAILED, right=False))), None, 0.0),  # an attack counts with a right output only
    ("atgen", candidate(suite_of(n_dropped=1)), 0.5, 0.0),  # no evidence about the coder
    ("atgen", candidate(suite_of()), None, -0.5),
    ("atgen", candidate(suite_of(met(FAILED, n=1), met(PASSED, n=2), n_dropped=2)), None, (1 + 0.5 + 0 + 0) / 4),
    ("atgen", candidate(suite_of(met(FAILED, n=1), met(PASSED, n=2), LIED)), 0.5, None),  # the rate on right cases
    ("atgen", candidate(suite_of(), verdict=INVALID), 0.0, None),
    # The mean over written tests.
    ("cure", candidate(suite_of(*met_all([FAILED, PASSED]), LIED, n_dropped=1), golden=0.0), 0.0, (1 + 0 - 1 + 0) / 4),
    ("cure", candidate(suite_of(), golden=0.0), 0.0, 0.0),
    # Wrong tests are charged, and replies without any.
    ("learnability", candidate(suite_of(*met_all([FAILED, PASSED]), n_dropped=2)), None, (2 * 0.5 - 2 * 0.5) / 4),
    ("learnability", candidate(suite_of(n_dropped=3)), None, -0.5),
    ("learnability", candidate(suite_of()), None, -1.0),
    ("learnability", candidate(suite_of(), verdict=INVALID), -1.0, None),
]


@pytest.mark.parametrize(("name", "judged", "coder", "tester"), BY_HAND)
def test_rewards_by_hand(name, judged, coder, tester):
    found = alone(name, judged)
    assert coder is None or found.coder.value == pytest.approx(coder)
    assert tester is None or found.testers[0].value == pytest.approx(tester)


def test_utrls_discrimination_is_the_mean_over_candidates_of_what_each_says():
    judged = [candidate(suite_of(met(verdict))) for verdict in (FAILED, FAILED, FAILED, PASSED)]
    values = [each.testers[0].value for each in crossed("utrl", *judged)]
    assert sum(values) / 4 == pytest.approx(0.85 * 3 / 4 + 0.05 / 12 + 0.1)


def test_cure_pays_a_right_test_the_share_of_wrong_programs_that_it_fails():
    met_and_golden = ((PASSED, 1.0), (FAILED, 0.5), (SLOW, 0.0), (PASSED, 0.9))
    judged = [candidate(suite_of(met(verdict)), golden=golden) for verdict, golden in met_and_golden]
    found = crossed("cure", *judged)
    assert [each.testers[0].value for each in found] == [pytest.approx(2 / 3)] * 4
    assert [each.coder.value for each in found] == [1.0, 0.5, 0.0, 0.9]


def test_cure_charges_a_wrong_test_for_the_wrong_programs_that_pass_it_as_it_was_written():
    wrong = {"predicted": "[1, 2]", "right": False}
    judged = [
        candidate(suite_of(met(PASSED, **wrong)), golden=1.0),
        candidate(suite_of(met(FAILED, actual="[1, 2]", **wrong)), golden=0.5),
        candidate(suite_of(met(FAILED, actual="[1, 3]", **wrong)), golden=0.5),
        candidate(suite_of(met(Verdict.RUNTIME_ERROR, actual="ValueError: [1, 2]", **wrong)), golden=0.5),
    ]
    assert crossed("cure", *judged)[0].testers[0].value == pytest.approx(-1 / 3)


def test_cure_without_a_wrong_program_pays_nothing_and_without_golden_tests_is_masked():
    right = candidate(suite_of(met(PASSED)), golden=1.0)
    assert crossed("cure", right, right)[0].testers[0].value == 0.0
    unknown = alone("cure", candidate(suite_of(met(FAILED))))
    assert unknown.coder.masked
    assert unknown.testers[0].masked


def test_a_program_that_does_not_load_says_nothing_about_a_suite():
    judged = [
        candidate(suite_of(met(UNRUN)), golden=0.0, verdict=INVALID),
        candidate(suite_of(met(FAILED)), golden=0.0),
    ]
    for name, value in (("cure", 1.0), ("learnability", 0.0)):
        found = crossed(name, *judged)
        assert (found[0].testers[0].value, found[1].testers[0].value) == (0.0, value)


@pytest.mark.parametrize(("n_solved", "tester"), [(0, 0.0), (1, 0.75), (2, 0.5), (3, 0.25), (4, 0.0)])
def test_learnability_is_one_minus_the_solve_rate_but_nothing_at_its_ends(n_solved, tester):
    judged = [candidate(suite_of(met(PASSED if number < n_solved else FAILED))) for number in range(4)]
    found = crossed("learnability", *judged)
    assert [each.testers[0].value for each in found] == [pytest.approx(tester)] * 4
    assert [each.coder.value for each in found] == [1.0] * n_solved + [-0.5] * (4 - n_solved)


CONSTANTS = [
    (name, part, each.name)
    for name, part in (("utrl", UtrlRules), ("atgen", AtgenRules), ("learnability", LearnabilityRules))
    for each in fields(part)
]


@pytest.mark.parametrize(("name", "part", "constant"), CONSTANTS)
def test_every_constant_of_a_rival_can_be_set_and_moves_a_reward(name, part, constant):
    judged = [
        candidate(suite_of(met(FAILED, n=1), met(PASSED, n=2), n_dropped=1)),
        candidate(suite_of(met(PASSED, n=1), met(PASSED, n=2), n_dropped=1)),
        candidate(suite_of()),
    ]
    rules = preset(name)
    other = replace(rules, reward=replace(rules.reward, **{name: part(**{constant: 7.0})}))
    assert [score(each, other) for each in judged] != [score(each, rules) for each in judged]


RIVALS = {"utrl": (0.0, 1.0), "atgen": (-0.5, 1.0), "cure": (-1.0, 1.0), "learnability": (-1.0, 1.0)}


@st.composite
def groups(draw: st.DrawFn) -> tuple[CandidateReport, ...]:
    """Up to four candidates that have met the same suites."""
    shapes = draw(st.lists(st.tuples(st.lists(st.booleans(), max_size=5), st.integers(0, 3)), min_size=1, max_size=3))
    found = []
    for _ in range(draw(st.integers(1, 4))):
        is_valid = draw(st.booleans() | st.just(True))
        suites = []
        for rights, n_dropped in shapes:
            cases = []
            for n, right in enumerate(rights):
                verdict = draw(st.sampled_from([PASSED, FAILED, SLOW, UNRUN])) if is_valid else UNRUN
                cases.append(met(verdict, n=n, predicted="3", right=right, actual=draw(st.sampled_from(["3", "4"]))))
            suites.append(suite_of(*cases, n_dropped=n_dropped))
        golden = draw(st.sampled_from([0.0, 0.5, 1.0])) if is_valid else 0.0
        found.append(candidate(*suites, golden=golden, verdict=PASSED if is_valid else INVALID))
    return tuple(found)


@pytest.mark.parametrize("name", RIVALS)
@given(group=groups(), k=st.integers(1, 12))
def test_rewards_stay_in_their_range_and_are_the_sums_of_their_parts(name, group, k):
    rules = replace(preset(name), tests_per_suite=k)
    low, high = RIVALS[name]
    for shares in (False, True):
        for found in score_group(ProblemReport("p", group, shares), rules):
            assert all(low - 1e-9 <= each.value <= high + 1e-9 for each in found.testers)
            assert -1.0 <= found.coder.value <= 1.0 + 1e-9
            for each in (found.coder, *found.testers):
                assert each.value == pytest.approx(sum(part.weight * part.value for part in each.parts))


@pytest.mark.parametrize("name", ["cure", "learnability"])
@given(group=groups())
def test_schemes_that_compare_give_a_shared_suite_one_value(name, group):
    found = score_group(ProblemReport("p", group, shares_suites=True), preset(name))
    valid = [each.testers for each, judged in zip(found, group, strict=True) if judged.loads]
    assert all(testers == valid[0] for testers in valid)


@pytest.mark.parametrize("name", ["utrl", "atgen", "cure"])
@given(group=groups())
def test_one_more_kill_by_a_right_case_never_costs_the_tester(name, group):
    def values(judged: tuple[CandidateReport, ...]) -> list[float]:
        return [each.testers[0].value for each in crossed(name, *judged)]

    first = group[0]
    assume(first.loads)
    struck = tuple(
        replace(case, verdict=FAILED) if case.case.prediction_right else case for case in first.suites[0].cases
    )
    beaten = replace(first, suites=(replace(first.suites[0], cases=struck), *first.suites[1:]))
    for before, after in zip(values(group), values((beaten, *group[1:])), strict=True):
        assert after >= before - 1e-9
