from __future__ import annotations

from dataclasses import replace
from math import inf, isnan

import numpy as np
import pytest

from codea1_env.facts.verdicts import Verdict
from codea1_env.rules.ruleset import preset
from codea1_lab.tabular.learning import SYSTEMS, Schedule, System, _Training, train
from codea1_lab.tabular.table import FIRST, STUDIES, Regime, crossover, table
from codea1_lab.tabular.world import Aim, DrawnTest, Program, World, aim_of, drawn_program, drawn_test, suite_report

SHORT = Schedule(steps=12, n_problems=16)
PROGRAM = Program((0, 1, 2, 3), (True, False, False, False), (5, 0, 0, 0))


def test_programs_are_wrong_as_often_as_said_and_rare_bugs_are_found_by_their_triggers_only() -> None:
    rng = np.random.default_rng(0)
    p_right = np.array([0.9, 0.5, 0.1, 1.0])
    drawn = [drawn_program((0, 1, 2, 3), p_right, World(), rng) for _ in range(4000)]
    assert np.mean([each.has_bug for each in drawn], axis=0) == pytest.approx(1 - p_right, abs=0.03)
    assert {each.triggers[0] for each in drawn} == set(range(World().n_triggers))
    world = World(n_kinds=4, n_rare=2)
    assert [PROGRAM.passes(aim, world) for aim in (None, Aim(0, 4), Aim(1, 5), Aim(0, 5))] == [True, True, True, False]
    common = replace(PROGRAM, has_bug=(False, False, True, False))
    assert not any(common.passes(aim, world) for aim in (None, Aim(0, 4), Aim(2, 0)))
    assert replace(PROGRAM, has_bug=(False,) * 4).is_right()


def test_a_report_says_what_the_judge_would() -> None:
    world = World(n_kinds=4, n_rare=4)
    killing, wrong, blind = DrawnTest(Aim(0, 5), True), DrawnTest(Aim(1, 1), False), DrawnTest(None, True, 7)
    tests = [killing, killing, wrong, blind]
    kept = suite_report(tests, PROGRAM, world, drops_wrong=False)
    assert [case.verdict for case in kept.cases] == [Verdict.WRONG_ANSWER, Verdict.PASSED, Verdict.PASSED]
    assert [case.case.prediction_right for case in kept.cases] == [True, False, True]
    assert kept.suite.n_invalid == 2  # a duplicate and a wrong prediction
    assert [aim_of(case.case) for case in kept.cases] == [Aim(0, 5), Aim(1, 1), None]
    assert len(suite_report(tests, PROGRAM, world, drops_wrong=True).cases) == 2


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_seed_decides_everything(name: str) -> None:
    one, again, other = (train(SYSTEMS[name], World(), SHORT, "fixed", seed) for seed in (3, 3, 4))
    assert [step.accuracy for step in one] == [step.accuracy for step in again]
    assert one[-1].accuracy != other[-1].accuracy
    assert len(one) == SHORT.steps + 1
    assert one[-1].accuracy > one[0].accuracy


def test_who_does_not_learn_stays_and_without_reading_a_tester_aims_as_blindly_as_one_that_sees_nothing() -> None:
    frozen = train(SYSTEMS["frozen-tester"], World(), SHORT, "fixed", 0)
    assert {step.aims_if_read for step in frozen} == {0.5}
    golden = train(SYSTEMS["golden-16"], World(), SHORT, "fixed", 0)
    assert isnan(golden[-1].kills)
    assert golden[-1].aims_if_read == 0.5
    seeing = train(SYSTEMS["code-a1"], World(reading=0.0), SHORT, "fixed", 0)
    assert {step.aims_if_read for step in seeing} == {0.5}
    assert seeing[-1].aims_blindly != seeing[0].aims_blindly


def test_three_naive_golden_tests_teach_nothing_about_rare_bugs() -> None:
    world = World(n_kinds=4, n_rare=4)
    naive = train(System("naive", n_naive=3), world, SHORT, "fixed", 0)
    assert naive[-1].accuracy == naive[0].accuracy
    mixed = train(System("mixed", n_golden=8, n_naive=8), world, SHORT, "fixed", 0)
    assert mixed[-1].accuracy > mixed[0].accuracy


@pytest.mark.parametrize("system", STUDIES["deep-rare"].systems, ids=lambda system: system.name)
def test_the_systems_of_the_study_of_rare_mistakes_train(system: System) -> None:
    regime = STUDIES["deep-rare"].regimes[0]
    schedule = replace(regime.schedule, steps=2, n_problems=8)
    found = train(system, regime.world, schedule, regime.rules, 0)
    assert found[-1].accuracy != found[0].accuracy
    assert isnan(found[-1].kills) is not system.has_tester


def test_a_study_compares_with_the_first_system() -> None:
    for study in STUDIES.values():
        assert study.systems[0].name == FIRST
        assert len({system.name for system in study.systems}) == len(study.systems)


def test_one_model_in_both_roles_learns_each_with_its_share_of_the_tokens() -> None:
    def first_change(share: float | None) -> tuple[float, float]:
        system = replace(SYSTEMS["self-play-control"], coder_share=share)
        start, after = train(system, World(), replace(SHORT, steps=1), "fixed", 0)
        return after.accuracy - start.accuracy, after.aims_blindly - start.aims_blindly

    (coder, tester), (less_coder, less_tester) = first_change(None), first_change(0.25)
    assert less_coder / coder == pytest.approx(0.25, rel=0.1)
    assert less_tester / tester == pytest.approx(0.75, rel=0.1)


def test_golden_tests_and_inputs_of_equal_aims_repeat_unless_they_are_told_to_differ() -> None:
    world = World(n_triggers=1)
    golden = SYSTEMS["golden-4"]
    drawn, differing = (
        _Training(golden, world, replace(SHORT, golden_differ=differ), preset("fixed"), 0).problems
        for differ in (False, True)
    )
    assert {len(set(each.golden)) for each in differing} == {4}
    assert min(len(set(each.golden)) for each in drawn) < 4
    assert {len(each.golden) for each in (*drawn, *differing)} == {4}
    aim, rng = Aim(0, 0), np.random.default_rng(0)
    same, other = ([drawn_test(aim, World(aims_vary=vary), rng).expression for _ in range(2)] for vary in (False, True))
    assert len(set(same)) == 1
    assert len(set(other)) == 2
    assert aim_of(suite_report([DrawnTest(aim, True, 7)], PROGRAM, World(), drops_wrong=False).cases[0].case) == aim


@pytest.mark.parametrize(
    ("leads", "expected"), [((-2.0, 2.0), 10**0.5), ((1.0, 2.0), 1.0), ((-1.0, -1.0), inf), ((-1.0, 0.0), 10.0)]
)
def test_the_crossover_is_between_the_neighbours(leads: tuple[float, float], expected: float) -> None:
    assert crossover((1, 10), leads) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.long
def test_the_lead_over_blind_suites_grows_with_the_number_of_triggers() -> None:
    regimes = [Regime(World(n_triggers=triggers)) for triggers in (1, 30)]
    few, many = table(regimes, 3, systems=[SYSTEMS[name] for name in ("code-a1", "black-box", "golden-16")])
    assert few.leads["black-box"].mean < many.leads["black-box"].mean
    assert many.leads["black-box"].mean > many.leads["black-box"].half_width
    assert few.leads["golden-16"].mean < 0 < many.leads["golden-16"].mean
    assert few.accuracy.n == 3
