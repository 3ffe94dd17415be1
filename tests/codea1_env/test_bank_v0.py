"""The bank game as libraries see it: conformance, and the same rewards and infos as the game with text."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pettingzoo
import pytest
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, seed_test

from codea1_env import bank_v0
from codea1_env.errors import UserError

VARIANTS = [{}, {"tester_view": "black_box"}, {"max_cycles": 3}, {"infos": False}]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_pettingzoo_accepts_it_without_a_warning(judged, options, capsys):
    def aec(**more):
        return bank_v0.env(bank=judged, **options, **more)

    def parallel():
        return bank_v0.parallel_env(bank=judged, **options)

    api_test(aec(), num_cycles=30)
    seed_test(aec, num_cycles=20)
    parallel_api_test(parallel(), num_cycles=30)
    parallel_seed_test(parallel, num_cycles=20)


def test_pettingzoo_accepts_the_simultaneous_view(judged, capsys):
    blind = partial(bank_v0.blind_parallel_env, bank=judged)
    parallel_api_test(blind(), num_cycles=30)
    parallel_seed_test(blind, num_cycles=20)
    max_cycles_test(SimpleNamespace(env=partial(bank_v0.env, bank=judged), parallel_env=blind))
    with pytest.raises(UserError, match="act at once"):
        bank_v0.blind_parallel_env(bank=judged, tester_view="white_box")


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="PettingZoo has registries from 1.27 on")
def test_it_is_registered_with_pettingzoo(judged):
    assert str(pettingzoo.make("aec", "codea1/bank-v0", bank=judged)) == "bank_v0"


def test_who_sees_what(judged):
    env = bank_v0.raw_env(judged)
    env.reset(seed=0, options={"problem_id": "toy/add"})
    assert env.observe("coder_0").tolist() == [1, 0, 0, 0, 0]
    env.step(1)
    assert env.observe("coder_0").tolist() == [1, 0, 0, 0, 0]
    assert env.observe("tester_0").tolist() == [1, 0, 0, 1, 0]
    blind = bank_v0.raw_env(judged, tester_view="black_box")
    blind.reset(seed=0, options={"problem_id": "toy/add"})
    blind.step(1)
    assert blind.observe("tester_0").tolist() == [1, 0, 0, 0, 0]


def test_rewards_come_together_and_are_the_banks(judged):
    payoffs = judged.payoffs()
    env = bank_v0.env(bank=judged)
    for m in range(3):
        for n in range(4):
            env.reset(seed=0, options={"problem_id": "toy/add"})
            env.step(m)
            assert env.rewards == {"coder_0": 0, "tester_0": 0}
            env.step(n)
            assert env.rewards == {"coder_0": payoffs.coder[0, m, n], "tester_0": payoffs.tester[0, m, n]}
            assert all(env.terminations.values())
    assert env.infos["tester_0"]["reward_parts"] == {}  # a program that does not load
    assert env.infos["tester_0"]["verdict"] == "syntax_error"
