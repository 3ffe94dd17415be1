"""Banks: what is in them, that payoffs are the game's own, and that nothing is judged twice."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from codea1_env import code_a1_v0
from codea1_env.bank import Bank, BankCache, BankEntry, ProblemBank, judge_bank, load_bank, load_bank_file
from codea1_env.bank.building import BankRecipe, bank_of_run, build_bank
from codea1_env.errors import BrokenInput, SandboxError, UnknownName, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.problems import ProblemSet
from codea1_env.problems.problem import WrongProgram
from codea1_env.rules.mistake_book import BookKey
from codea1_env.rules.ruleset import preset
from tests.support.command_line import codea1


def test_a_bank_is_a_box_whose_gaps_are_empty_replies(bank):
    assert (bank.n_programs, bank.n_suites) == (3, 4)
    assert [entry.label for entry in bank.problems[1].programs] == ["right", "nothing 1", "nothing 2"]
    assert bank.problems[1].suites[-1].reply == ""


def test_replays_are_paid_as_in_the_game(judged, toys):
    env = code_a1_v0.raw_env(problems=toys, rules="fixed", skip_invalid=False)
    add = judged.problems[0]
    for m, n in ((1, 1), (1, 0)):  # the first round fills the book, the next one replays it
        env.reset(seed=None if env.agents or env.last_round else 0, options={"problem_id": "toy/add"})
        env.step(add.bank.programs[m].reply)
        env.step(add.bank.suites[n].reply)
        keys = [BookKey.of(each.case) for each in env.last_round.report.candidates[0].replayed]
        coder, tester = add.payoffs(judged.rules, keys)
        assert (coder[m, n], tester[m, n]) == (env.rewards["coder_0"], env.rewards["tester_0"])
    assert len(keys) == 2


def test_other_alphas_need_no_execution(judged):
    rules = replace(judged.rules, reward=replace(judged.rules.reward, alpha=1.0))
    of_validity = judged.with_rules(rules).payoffs().tester
    assert of_validity[0, 0].tolist() == [0.125, 0.25, 0.125, 0.0]  # the first suite holds an example
    with pytest.raises(UserError, match="judge the bank again"):
        judged.with_rules(preset("release"))


def test_select_keeps_payoffs(judged):
    only = judged.select(["toy/last"])
    np.testing.assert_array_equal(only.payoffs().coder[0], judged.payoffs().coder[1])
    with pytest.raises(UnknownName):
        judged.select(["toy/first"])


@pytest.fixture
def unused(watched):
    """A sandbox that nobody may ask."""
    watched.error = "something was executed"
    return watched


def test_nothing_is_judged_twice(bank, judged, sandbox, unused, tmp_path):
    cache = BankCache(tmp_path)
    judge_bank(bank, preset("fixed"), sandbox, cache=cache)
    again = judge_bank(bank, preset("fixed"), unused, cache=cache)
    np.testing.assert_array_equal(judged.payoffs().tester, again.payoffs().tester)
    assert [problem.report for problem in judged.problems] == [problem.report for problem in again.problems]
    other = Bank("other", (bank.problems[1],))
    assert judge_bank(other, preset("fixed"), unused, cache=cache).problems  # labels and company do not count
    with pytest.raises(SandboxError, match="executed"):
        judge_bank(bank, preset("release"), unused, cache=cache)


def of_another_judge(file):
    content = json.loads(gzip.decompress(file))
    assert content.pop("judge_version") == JUDGE_VERSION
    return gzip.compress(json.dumps(content).encode())


@pytest.mark.parametrize("change", [lambda file: file[:40], of_another_judge], ids=["damaged", "of another judge"])
def test_what_the_cache_cannot_vouch_for_is_judged_again(bank, sandbox, unused, tmp_path, change):
    cache = BankCache(tmp_path)
    judge_bank(bank, preset("fixed"), sandbox, cache=cache)
    for path in tmp_path.glob("*/*"):
        path.write_bytes(change(path.read_bytes()))
    with pytest.raises(SandboxError, match="executed"):
        judge_bank(bank, preset("fixed"), unused, cache=cache)


def test_an_unknown_payoff_is_never_made_up(bank, broken_sandbox):
    with pytest.raises(SandboxError, match="3 times"):
        judge_bank(bank, preset("fixed"), broken_sandbox)


def test_a_saved_bank_is_read_back(bank, tmp_path):
    path = tmp_path / "toys.bank.jsonl"
    bank.save(path)
    assert load_bank_file(path).problems == bank.problems
    path.write_text('{"problem": 3}\n')
    with pytest.raises(BrokenInput, match="line 1: expected an object with exactly the fields"):
        load_bank_file(path)


RECIPE = BankRecipe(n_wrong=2, n_attacked=1, testers=("examples", "invalid,kind=wrong_prediction"))


def test_a_bank_is_built_from_problems_and_agents(sandbox, tmp_path):
    bank = load_bank("starter", recipe=RECIPE, limit=1, sandbox=sandbox, cache=tmp_path).bank
    (problem,) = bank
    assert [entry.label for entry in problem.programs] == ["solution", "wrong 1", "wrong 2"]
    labels = [entry.label for entry in problem.suites]
    assert labels == ["examples", "invalid", "boundary vs wrong 1", "half right vs wrong 1"]
    assert load_bank("starter", recipe=RECIPE, limit=1, sandbox=sandbox, cache=tmp_path).bank == bank


def test_mutants_stand_in_where_no_wrong_program_is_known(toys, sandbox):
    bank = build_bank(toys, preset("fixed"), sandbox, recipe=replace(RECIPE, testers=("examples",), solution=False))
    programs = bank.problems[1].programs
    assert [entry.label.partition(" ")[0] for entry in programs] == ["mutant", "mutant"]
    assert len({entry.reply for entry in programs}) == 2


def test_programs_are_read_with_the_bound_of_the_rules(toys, sandbox, tmp_path):
    short = WrongProgram("def add(a, b):\n    return a - b\n", "subtracts", 1)
    long = WrongProgram(short.program + "#" * 200, "subtracts, and is longer", 1)
    problem = replace(toys[0], wrong_programs=(long, short))
    recipe = replace(RECIPE, testers=("examples",), coders=(), n_wrong=2)
    rules = preset("fixed")

    def programs(rules):
        bank = build_bank(ProblemSet("toys", (problem,)), rules, sandbox, recipe=recipe, cache=BankCache(tmp_path))
        return [entry.reply for entry in bank.problems[0].programs]

    assert programs(rules) == [problem.solution, long.program, short.program]
    assert programs(replace(rules, max_program_bytes=100)) == [problem.solution, short.program]


def test_a_recipe_without_programs_is_refused(toys):
    with pytest.raises(UserError, match="it needs a program"):
        BankRecipe(solution=False, n_wrong=0)
    with pytest.raises(UserError, match="no suites"):
        ProblemBank(toys[0], (BankEntry("a", "b"),), ())


def test_a_run_is_a_bank(sandbox, tmp_path):
    out = str(tmp_path / "run")
    asked = ["play", "-p", "starter", "--limit", "2", "-n", "6", "--coder", "mutant", "--tester", "examples"]
    assert codea1(*asked, "--out", out).exit_code == 0
    bank = bank_of_run(tmp_path / "run", solution=True)
    assert bank.problems[0].programs[0].label == "solution"
    assert 1 <= bank.n_suites <= 3
    assert load_bank(tmp_path / "run", sandbox=sandbox, cache=tmp_path / "cache").payoffs().coder.min() >= 0
