"""Which tokens are paid for what, told from judged suites by computations that share no code with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from codea1_agents.models.chat_format import ChatFormat
from codea1_agents.models.sampling import Response, Rows, SamplingRules
from codea1_agents.prompts import load_prompts
from codea1_agents.train.grpo.batch import Column, padded_batch, planned, shards
from codea1_agents.train.grpo.credit import (
    CreditedTest,
    PaidTest,
    by_tests,
    credit_of_groups,
    group_credit,
    require_credit,
    token_advantages,
)
from codea1_agents.train.grpo.hyperparameters import AdvantageSettings, Shape
from codea1_agents.train.grpo.rollout import ModelPlayer
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_env import Referee
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.facts.submissions import Span, Written
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import SuitesPer, Tree
from codea1_env.rules.ruleset import CreditRules, Validation, preset
from codea1_env.sandbox import Sandbox
from tests.support.advantages import z
from tests.support.language_models import CHAT_TEMPLATE, bpe_tokenizer
from tests.support.replies import bare
from tests.support.toys import ADD, BROKEN, LOOKS_RIGHT, RIGHT, WRONG, fenced
from tests.support.trees import Scripted, rolled

TEST, BLOCK = (AdvantageSettings(credit=each) for each in ("test", "block"))
NOWHERE = Written(Span(0, 0), (Span(0, 0),), (Span(0, 0),))
RULES = replace(preset("fixed"), tests_per_suite=4)


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    with Referee(ProblemSet("toys", [ADD]), RULES) as found:
        yield found


def credit(
    referee: Referee,
    suites: Sequence[str | AgentUnavailable],
    settings: AdvantageSettings = BLOCK,
    programs: Sequence[str] = (LOOKS_RIGHT,),
    per: SuitesPer = SuitesPer.CANDIDATE,
) -> tuple[list[list[tuple[float, float]]], float]:
    """The credits of input and answer of each test of each suite for the first group, and their spread."""
    rounds = referee.open([Tree(ADD, len(programs), len(suites), per)])
    rounds.submit_programs(programs)
    rounds.submit_suites([reply if isinstance(reply, AgentUnavailable) else fenced(reply) for reply in suites])
    (judged,) = rounds.results()
    (group, *_) = credit_of_groups(judged, judged.tester_rewards, referee.rules, settings)
    return [[(each.input, each.answer) for each in suite] for suite in group.suites], group.spread


KILLS, MISSES = "assert add(-1, -2) == -3", "assert add(2, 1) == 3"
LIES, MISSES_AND_LIES = "assert add(-3, -4) == 7", "assert add(5, 1) == 7"
FOUR = [f"{KILLS}\n{MISSES}", f"{LIES}\n{MISSES_AND_LIES}"]
NO_KILL = [
    "assert add(2, 1) == 3 or True",  # vacuous
    "assert add('x', 1) == 3",  # the solution raises
    "assert add(1, 2) == 3",  # an example of the statement
    "assert add(2, ",  # does not parse
    "assert 3 == 3",  # calls nothing
    f"{MISSES}  # again",  # a duplicate
]


def test_inputs_are_paid_for_kills_of_filled_tests_and_answers_for_being_right(referee: Referee) -> None:
    found, spread = credit(referee, FOUR)
    inputs, answers = z([1, 0, 1, 0]), z([1, 1, 0, 0])
    assert [*chain(*found)] == [pytest.approx(pair, abs=1e-5) for pair in zip(inputs, answers, strict=True)]
    assert spread == pytest.approx(0.5)  # two variances of 1/4


def test_a_whole_test_is_paid_like_a_suite_of_one_test(referee: Referee) -> None:
    found, _ = credit(referee, FOUR, TEST)
    assert [*chain(*found)] == [pytest.approx((each, each), abs=1e-5) for each in z([1.0, 0.5, 0.0, 0.0])]


@pytest.mark.parametrize("attempt", NO_KILL)
@pytest.mark.parametrize("settings", [TEST, BLOCK], ids=["test", "block"])
def test_a_failed_attempt_has_no_kill_and_no_answer(referee, attempt, settings):
    found, _ = credit(referee, [f"{KILLS}\n{MISSES}", f"{MISSES}\n{attempt}"], settings)
    (kill, miss), second = found
    failed = min(second)
    if settings is BLOCK:
        assert (kill[0], miss[0], failed[0]) == pytest.approx(tuple(z([1, 0, 0, 0])[i] for i in (0, 1, 2)), abs=1e-5)
        assert failed[1] == 0 == kill[1]  # all compared answers are right
    else:
        assert failed == pytest.approx((z([1, 0.5, 0.5, 0])[3],) * 2, abs=1e-5)


def test_a_property_is_paid_for_its_kill_if_it_holds_and_a_tolerance_likewise(referee: Referee) -> None:
    true, false = "assert add(-2, -1) < 0", "assert add(-2, -1) > 0"
    close, far = (f"import pytest\nassert add(-2, -1) == pytest.approx({each})" for each in (-3, 4))
    for right, wrong in ((true, false), (close, far)):
        found, spread = credit(referee, [right, wrong])
        assert [suite[0] for suite in found] == [pytest.approx((each, 0.0), abs=1e-5) for each in z([1, 0])]
        assert spread == pytest.approx(0.25)
    assert credit(referee, [f"{true}\n{MISSES}", f"{false}\n{MISSES}"])[0][0][1][1] == 0.0  # all answers are right


def test_garbage_beyond_k_attempts_counts_once_and_is_paid_like_the_rest(referee: Referee) -> None:
    few, _ = credit(referee, [KILLS, f"{MISSES}\n" + "assert (\n" * 4])
    many, _ = credit(referee, [KILLS, f"{MISSES}\n" + "assert 1\n" * 300])
    assert few[0][0] == pytest.approx(many[0][0], abs=1e-5)
    assert len(many[1]) == 1 + RULES.tests_per_suite
    without_tests, _ = credit(referee, [KILLS, MISSES, "x = 1"])
    assert [suite[0][0] for suite in without_tests] == pytest.approx(z([1, 0, 0]), abs=1e-5)


def test_what_is_unknown_is_compared_with_nothing(referee: Referee) -> None:
    suites = [f"{KILLS}\n{MISSES}", AgentUnavailable("away"), f"assert add(object(), 1) == 3\n{LIES}"]
    found, _ = credit(referee, suites)
    assert found[1] == []
    assert credit(referee, [suites[0], suites[2]])[0] == [found[0], found[2]]
    assert credit(referee, [], programs=[BROKEN]) == ([], 0.0)


def test_a_suite_for_all_candidates_kills_a_share_of_those_that_load(referee: Referee) -> None:
    programs = [LOOKS_RIGHT, WRONG, BROKEN]
    found, _ = credit(referee, [f"{KILLS}\n{MISSES}\nassert add(4, 0) == 4"], programs=programs, per=SuitesPer.PROBLEM)
    assert [each[0] for each in found[0]] == pytest.approx(z([1, 0.5, 0]), abs=1e-5)


KNOWN = st.tuples(st.sampled_from([0.0, 1.0, math.nan]), st.sampled_from([0.0, 1.0, math.nan]))


@given(st.lists(KNOWN, min_size=1, max_size=12), st.data())
def test_a_lie_never_raises_the_credit_of_an_input_and_a_miss_never_costs_an_answer(outcomes, data):
    def credits_(tests: list[tuple[float, float]]) -> list[CreditedTest]:
        return list(group_credit([[PaidTest(NOWHERE, *each, 0.0) for each in tests]], "block").suites[0])

    before = credits_(outcomes)
    which = data.draw(st.integers(0, len(outcomes) - 1))
    kill, right = outcomes[which]
    lying = credits_([*outcomes[:which], (kill, 0.0), *outcomes[which + 1 :]])
    assert [each.input for each in lying] == [each.input for each in before]
    missing = credits_([*outcomes[:which], (0.0, right), *outcomes[which + 1 :]])
    assert [each.answer for each in missing] == [each.answer for each in before]
    for (kill, right), each in zip(outcomes, before, strict=True):
        assert each.answer >= 0 or right == 0
        assert each.input >= 0 or kill == 0


def test_no_pay_of_whole_tests_rewards_aiming_and_honesty() -> None:
    """If aiming pays at each share of kills above that of safe tests, however wrong, then rightness earns nothing."""
    for pays in product(np.linspace(-1, 1, 9), repeat=3):
        r = {(0, 0): 0.0, (1, 0): pays[0], (0, 1): pays[1], (1, 1): pays[2]}

        def expected(kills: float, right: float, r: dict[tuple[int, int], float] = r) -> float:
            chance = {1: (kills, right), 0: (1 - kills, 1 - right)}
            return sum(r[k, v] * chance[k][0] * chance[v][1] for k in (0, 1) for v in (0, 1))

        shares = [(h, h + 1e-9) for h in np.linspace(0, 1, 5)[:-1]]
        if all(expected(aimed, 0.0) >= expected(safe, 1.0) - 1e-8 for safe, aimed in shares):
            assert all(expected(h, 1.0) <= expected(h, 0.0) + 1e-8 for h in np.linspace(0, 0.75, 4))


# Tokens

PAINTED = [
    ("assert f(1) == 2", "iiiiiiiiiiiiiiaa"),
    ("assert 2 == f(1)  # no", "iiiiiiaaiiiiiiii......"),
    ("assert (f(1)) == (2), 'why'", "iiiiiiiiiiiiiiiiaaaiiiiiiii"),
    ("Hi.\nassert f(1) == 2\nassert f(2) > 1\n", "....iiiiiiiiiiiiiiaa.iiiiiiiiiiiiiii."),
    ("x = [1, 2]\nassert f(x) == 3", "...iiiiiii.iiiiiiiiiiiiiiaa"),
    ("x = 1\nassert f(x) == x", "......iiiiiiiiiiiiiiaa"),
    ("assert f('é') == 'ü'", "iiiiiiiiiiiiiiiiaaaa"),
]


@pytest.mark.parametrize(("text", "expected"), PAINTED)
def test_each_character_belongs_to_the_block_in_which_it_stands(text: str, expected: str) -> None:
    tests = [CreditedTest(case.written, 1.0, -1.0) for case in bare(text).cases if case.written]
    found = token_advantages(text, range(len(text) + 1), tests, "nothing")
    assert "".join({1.0: "i", -1.0: "a", 0.0: "."}[each] for each in found) == expected + "."


def test_what_tests_share_has_their_mean_and_other_text_what_the_setting_says() -> None:
    text = "for x in [1, 2]:\n    assert f(x) == 3\n"
    pays = ((1.0, 0.5), (0.0, -1.0))
    tests = [CreditedTest(case.written, *pay) for case, pay in zip(bare(text).cases, pays, strict=True)]
    positions = [text.index(each) for each in ("1", "2", "assert", "3")]
    assert token_advantages(text, positions, tests, "nothing").tolist() == [1.0, 0.0, 0.5, -0.25]
    assert token_advantages(text, [0, len(text), 10**6], tests, "mean").tolist() == [0.125] * 3
    assert token_advantages(text, [0], [], "mean").tolist() == [0.0]


def test_means_stand_for_suites_and_masked_ones_do_not_train() -> None:
    paid = [PaidTest(NOWHERE, kill, 1.0, 0.0) for kill in (1.0, 0.0)]
    groups = [group_credit([paid, [], paid[:1]], "block"), group_credit([paid[:1]] * 3, "block")]
    is_known = np.array([[True, False, True], [True, True, True]])
    found = by_tests(groups, is_known)
    assert found.is_trained.tolist() == [[True, False, True], [False] * 3]
    assert found.values[1].tolist() == [0.0] * 3
    assert found.values[0, 2] > 0 > found.values[0, 0] or found.values[0, 0] == pytest.approx(0, abs=0.5)


REFUSED = [
    ({"advantages": "decoupled"}, {}, "needs advantages='sum', got 'decoupled'"),
    ({}, {"validation": Validation.CALL_ONLY}, "needs validation='fill'"),
    ({}, {"reward": replace(RULES.reward, credit=CreditRules(most_kills=1))}, "reward.credit as by default"),
    ({}, {"reward": replace(RULES.reward, alpha=0.1)}, "reward.alpha (0.1) means nothing"),
    ({"credit": "reply", "other_text": "mean"}, {}, "other_text"),
]


@pytest.mark.parametrize(("settings", "rules", "sentence"), REFUSED)
def test_what_would_mean_nothing_is_refused(settings: dict[str, str], rules: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        require_credit(replace(RULES, **rules), replace(BLOCK, **settings))
    assert sentence in str(caught.value)


def test_rules_that_pay_no_single_tests_are_refused() -> None:
    for name in ("paper", "release", "cure", "golden", "zero_sum", "first_kill"):
        for settings in (TEST, BLOCK):
            with pytest.raises(UserError, match=f"rules {name} have others"):
                require_credit(preset(name), settings)
    require_credit(replace(RULES, reward=replace(RULES.reward, alpha=0.1)), TEST)


class Dictated:
    """An engine that samples given texts, in turn."""

    context_length = None

    def __init__(self, tokenizer: Any, texts: Sequence[str]) -> None:
        self._ids = [tuple(tokenizer(f"{text}<|im_end|>")["input_ids"]) for text in texts]

    def sample(self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules, *_: Any) -> list[Response]:
        ids = [self._ids[number % len(self._ids)] for number in range(len(prompts))]
        return [Response(each, (-1.0,) * len(each), is_cut=False) for each in ids]


@pytest.mark.parametrize("per", SuitesPer)
def test_learners_get_the_credit_of_the_text_that_each_token_stands_for(sandbox, toys, per):
    tokenizer = bpe_tokenizer(CHAT_TEMPLATE)
    texts = [fenced(FOUR[0]), fenced(f"# Lügen 🙂\n{FOUR[1]}")]
    engine = Dictated(tokenizer, texts)
    tester = ModelPlayer(engine, ChatFormat(tokenizer, "t"), (), load_prompts("default"), SamplingRules())
    players = {"coder": Scripted(LOOKS_RIGHT), "tester": tester}
    shape = Shape(n_candidates=1, n_suites=2, suites_per=per)
    (tree,) = rolled(sandbox, toys, players, shape, RULES, advantages=BLOCK)
    settings = TrainingSettings(module_by_role={"tester": "tester"})
    inputs, answers = z([1, 0, 1, 0]), z([1, 1, 0, 0])
    credits_ = {KILLS: (0, 0), MISSES: (1, 1), LIES: (2, 2), MISSES_AND_LIES: (3, 3)}
    found = list(tree.trim(tree.trained_responses(settings)).trained_responses(settings))
    assert [each.agent for each in found] == ["tester_0_0", "tester_0_1"]
    for each, text in zip(found, texts, strict=True):
        expected = [0.0] * (len(text) + 1)
        for test, (kill, right) in credits_.items():
            first = text.find(test)
            if first >= 0:
                end = first + len(test)
                answer = first + test.index("==") + 2
                expected[first:end] = [inputs[kill]] * (answer - first) + [answers[right]] * (end - answer)
        offsets = tokenizer(f"{text}<|im_end|>", return_offsets_mapping=True)["offset_mapping"]
        assert list(each.advantages()) == pytest.approx([expected[min(start, len(text))] for start, _ in offsets])
        (row,) = padded_batch([each])[Column.ADVANTAGES].tolist()
        assert row == list(each.advantages())
    learners = shards(planned(found, 1, (0,)), 3)
    assert sorted(map(len, learners)) == [1, 1, 2]
    assert [sum(map(abs, each.advantages())) for shard in learners for each in shard if not each.token_weight] == [0, 0]


def test_the_groups_that_train_are_those_whose_tests_differ_most(sandbox: Sandbox, toys: ProblemSet) -> None:
    players = {"coder": Scripted(RIGHT, LOOKS_RIGHT), "tester": Scripted(fenced(f"{KILLS}\n{MISSES}"), fenced(KILLS))}
    shape = Shape(n_candidates=2, n_suites=2, n_kept=2)
    (tree,) = rolled(sandbox, toys, players, shape, RULES, advantages=BLOCK)
    assert tree.kept.tolist() == [False, True]
    assert tree.tester.is_trained.tolist() == [[False, False], [True, True]]
