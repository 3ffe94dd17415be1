from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codea1_env.bank import BankRecipe, load_bank
from codea1_env.errors import UserError
from codea1_lab.games.bank_game import BankGame
from codea1_lab.games.pictures import draw_curves, draw_payoffs
from codea1_lab.games.questions import (
    SuiteParts,
    equilibrium_figures,
    failure_shares,
    parts_of_suites,
    rounds_with_book,
    validity_thresholds,
)

pytest.importorskip("scipy", reason="scipy is not installed")


@pytest.fixture(scope="session")
def starter_bank(tmp_path_factory):
    recipe = BankRecipe(n_wrong=3, n_attacked=2, testers=("examples", "boundary"))
    return load_bank("starter", recipe=recipe, limit=2, cache=tmp_path_factory.mktemp("banks"))


@pytest.mark.slow
def test_parts_of_the_reward_add_up_and_against_the_solution_validity_is_all_there_is(starter_bank):
    coder = np.full((2, 4), 0.25)
    for alpha in (0.0, 0.3, 1.0):
        rules = replace(starter_bank.rules, reward=replace(starter_bank.rules.reward, alpha=alpha))
        paid = np.einsum("pm,pmn->pn", coder, starter_bank.with_rules(rules).payoffs().tester)
        parts = parts_of_suites(starter_bank, coder)
        mixed = [alpha * part.validity + (1 - alpha) * part.adversarial for part in parts]
        np.testing.assert_allclose(mixed, paid, atol=1e-12)
    only_right = np.tile([1.0, 0, 0, 0], (2, 1))
    assert set(validity_thresholds(starter_bank, only_right).values()) == {0.0}
    figures = equilibrium_figures(starter_bank, failure_shares(starter_bank))
    assert figures.coder_value.mean == 1.0
    assert figures.failed.mean == 0.0


def test_the_threshold_is_where_the_harder_suite_stops_paying():
    parts = SuiteParts(validity=np.array([1.0, 0.5, 0.9]), adversarial=np.array([0.1, 0.4, 0.12]))
    least = parts.threshold()
    assert least == pytest.approx(0.3 / (0.3 + 0.5))
    for alpha, is_best in ((least - 0.01, False), (least + 0.01, True)):
        worth = alpha * parts.validity + (1 - alpha) * parts.adversarial
        assert bool(worth.argmax() == 0) is is_best
    assert SuiteParts(np.array([1.0, 1.0]), np.array([0.0, 0.5])).threshold() == 1.0
    assert SuiteParts(np.array([1.0, 0.5]), np.array([0.2, 0.2])).threshold() == 0.0


def test_the_book_remembers_what_is_played(starter_bank):
    without = rounds_with_book(starter_bank, n_rounds=3, with_book=False)
    assert [step.n_replayed for step in without] == [0.0, 0.0, 0.0]
    first, *later = rounds_with_book(starter_bank, n_rounds=3)
    assert first.n_replayed == 0.0
    assert (first.coder_value, first.tester_value) == (without[0].coder_value, without[0].tester_value)
    if first.failed:
        assert later[0].n_replayed > 0


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_pictures_are_drawn(starter_bank, tmp_path, ending):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    game = BankGame.of(starter_bank.payoffs())
    programs = [entry.label for entry in starter_bank.bank.problems[0].programs]
    suites = [entry.label for entry in starter_bank.bank.problems[0].suites]
    drawn = [tmp_path / f"{name}{ending}" for name in ("payoffs", "curves")]
    draw_payoffs(game.games[0], game.solve()[0], drawn[0], programs=programs, suites=suites, title="a problem")
    curves = {"a line": ([0, 1, 2], [0.5, 0.2, 0.1])}
    draw_curves(curves, drawn[1], x="step", y="NashConv")
    assert all(path.stat().st_size > 3000 for path in drawn)
    if ending == ".svg":
        before = drawn[1].read_bytes()
        draw_curves(curves, drawn[1], x="step", y="NashConv")
        assert drawn[1].read_bytes() == before
    with pytest.raises(UserError, match="must end in"):
        draw_curves({}, tmp_path / "curves.pdf", x="", y="")
