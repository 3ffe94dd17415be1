"""Each alarm rings for what it is made for, and not for a run that goes well."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.train.loop.alarms import ALARMS, AT_ONCE, WINDOW, alarms_of

HEALTHY = {
    "suite_validity": 0.6,
    "kill_rate": 0.5,
    "distinct_suites": 0.9,
    "distinct_programs": 0.8,
    "coder_spread_share": 0.6,
    "tester_spread_share": 0.5,
    "coder_cut_share": 0.02,
    "tester_cut_share": 0.02,
    "coder_kl": 0.01,
    "tester_kl": 0.02,
    "coder_entropy": 0.3,
    "coder_sampler_gap": 0.003,
    "masked_share": 0.0,
    "equal_answers_share": 0.001,
    "undecided_rate": 0.0,
    "rerun_share": 0.1,
    "vacuous_share": 0.02,
}


def run(*changes: dict[str, float], each: int = WINDOW) -> list[dict[str, float]]:
    return [{**HEALTHY, **change} for change in changes for _ in range(each)]


def test_a_run_that_goes_well_raises_none_nor_does_one_odd_step() -> None:
    for later in ({"suite_validity": 0.8, "kill_rate": 0.6}, {"suite_validity": 0.3}, {"kill_rate": 0.9}):
        assert alarms_of(run({}, later)) == {}
    odd = {**HEALTHY, "distinct_suites": 0.1, "coder_cut_share": 0.9, "coder_spread_share": 0.0}
    assert alarms_of([*run({}, {})[:-1], odd]) == {}


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("hacked_difficulty", {"suite_validity": 0.4, "kill_rate": 0.7}),
        ("no_validity", {"suite_validity": 0.01}),
        ("entropy", {"coder_entropy": 0.01}),
        ("sampler_gap", {"coder_sampler_gap": 0.2}),
        ("equal_suites", {"distinct_suites": 0.125}),
        ("equal_programs", {"distinct_programs": 0.125}),
        ("no_spread_coder", {"coder_spread_share": 0.0}),
        ("no_spread_tester", {"tester_spread_share": 0.0}),
        ("cut_coder", {"coder_cut_share": 0.9}),
        ("cut_tester", {"tester_cut_share": 0.9}),
        ("divergence", {"coder_kl": 3.0}),
        ("divergence", {"tester_kl": 0.3}),
        ("masked", {"masked_share": 0.5}),
        ("equal_answers", {"equal_answers_share": 0.2}),
        ("doubted", {"undecided_rate": 0.1}),
        ("rerun", {"rerun_share": 0.9}),
        ("vacuous", {"vacuous_share": 0.4}),
    ],
)
def test_each_alarm_rings_for_its_own_collapse_only(name: str, changed: Any) -> None:
    found = alarms_of(run({}, changed))
    assert list(found) == [name]
    assert "nan" not in found[name]
    assert ": " in found[name], "what to do"


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("no_validity", {"suite_validity": 0.0}),
        ("no_spread_coder", {"coder_spread_share": 0.0}),
        ("cut_tester", {"tester_cut_share": 1.0}),
    ],
)
def test_an_extreme_raises_its_alarm_after_a_few_steps(name: str, changed: Any) -> None:
    assert list(alarms_of(run(changed, each=AT_ONCE))) == [name]
    assert alarms_of(run(changed, each=AT_ONCE - 1)) == {}


@given(st.lists(st.dictionaries(st.sampled_from(sorted(HEALTHY)), st.floats(0, 100)), max_size=20))
def test_whatever_is_missing_no_alarm_breaks(history: list[dict[str, float]]) -> None:
    found = alarms_of(history)
    assert found.keys() <= ALARMS.keys()
    assert all("nan" not in sentence for sentence in found.values())
