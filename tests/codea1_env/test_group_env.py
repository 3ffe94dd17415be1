"""A group as PettingZoo's users see it: many coders, many testers for each."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from codea1_env import MistakeBook, Tree, code_a1_v0
from codea1_env.errors import SandboxError, UserError
from codea1_env.observations import MAX_REPLY_CHARS, UnicodeText
from codea1_env.problems import ProblemSet
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.ruleset import PRESETS, preset
from tests.support.books import entry, filled
from tests.support.toys import BROKEN, FALSE, GONE, LOOKS_RIGHT, NAIVE, RIGHT, RULES, SHARP, TEXT_SPACES, WRONG, fenced


def coders(*replies: object) -> dict[str, Any]:
    return {f"coder_{n}": reply for n, reply in enumerate(replies)}


def by_tester(env: Any, *replies: object) -> dict[str, Any]:
    return dict(zip(env.turns, replies, strict=True))


def played(env: Any, programs: tuple[object, ...], suites: tuple[object, ...]) -> tuple[Any, Any]:
    """Play an episode; return what its two steps returned, or twice the only one."""
    env.reset(seed=0)
    first = env.step(coders(*programs))
    return first, env.step(by_tester(env, *suites)) if env.agents else first


class Samples(UnicodeText):
    """Of all texts a few."""

    texts: tuple[str, ...] = ()

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return self.texts[int(self.np_random.integers(len(self.texts)))]


class Programs(Samples):
    texts = (RIGHT, LOOKS_RIGHT, WRONG, BROKEN)


class Suites(Samples):
    texts = (NAIVE, SHARP, "no test")


class Playing(code_a1_v0.group_env):
    """The same with action spaces that sample what loads: random text never does."""

    def action_space(self, agent: str) -> Any:
        if (agent, "action") not in self._spaces:
            kind = Programs if agent.startswith("coder") else Suites
            self._spaces[agent, "action"] = kind(MAX_REPLY_CHARS)
        return super().action_space(agent)


class Loading(Playing):
    """The same, and every program loads: PettingZoo's sequential suite takes no nan for equal to itself."""

    def action_space(self, agent: str) -> Any:
        space = super().action_space(agent)
        space.texts = tuple(text for text in space.texts if text != BROKEN)
        return space


OPTIONS = [
    {},
    {"suites_per": "problem"},
    {"n_suites": 0},
    {"skip_invalid": False},
    {"rules": "release"},
    {"max_cycles": 3},
]
KINDS = [code_a1_v0.group_env, Playing]
SMALL = {"n_candidates": 3, "n_suites": 2}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_parallel_api_and_seeds(add, kind, options):
    make = partial(kind, problems=add, **{**SMALL, **options})
    parallel_api_test(make(), num_cycles=30)
    parallel_seed_test(make, num_cycles=20)


@TEXT_SPACES
@pytest.mark.parametrize(
    ("kind", "options"),
    [*product(KINDS, [each for each in OPTIONS if not each.get("suites_per")]), (Loading, OPTIONS[1])],
)
def test_api_of_the_sequential_form(add, kind, options):
    api_test(parallel_to_aec(kind(problems=add, **{**SMALL, **options})), num_cycles=30)


def episodes(env: Any, n: int) -> list[Any]:
    """Return everything that n episodes of sampled actions return."""
    for position, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(position)
    trace: list[Any] = []
    for episode in range(n):
        trace.append(env.reset(seed=7 if episode == 0 else None))
        while env.agents:
            actions = {agent: env.action_space(agent).sample() for agent in env.agents}
            trace.append((actions, env.step(actions)))
    return trace


@pytest.mark.parametrize("suites_per", ["candidate", "problem"])
def test_equal_seeds_give_equal_episodes_to_the_last_step(toys, suites_per):
    # PettingZoo's own test stops after one step.
    make = partial(Playing, problems=toys, suites_per=suites_per, rules="release", **SMALL)
    one, other = episodes(make(), 4), episodes(make(), 4)
    assert len(one) == 4 * 3
    assert any(0 < reward < 1 for _, step in one[2::3] for reward in step[1].values())
    assert data_equivalence(one, other)
    changed = episodes(make(tester_view="black_box"), 4)
    assert data_equivalence(one, changed) is (suites_per == "problem")


def test_coders_act_first_then_their_testers_and_all_are_paid_at_the_end(group):
    env = group()
    observations, infos = env.reset(seed=0)
    assert env.agents == ["coder_0", "coder_1", "tester_0_0", "tester_0_1", "tester_1_0", "tester_1_1"]
    assert [agent for agent in env.agents if infos[agent]["active"]] == ["coder_0", "coder_1"]
    assert {each["program"] for each in observations.values()} == {""}
    early = {**coders(LOOKS_RIGHT, RIGHT), "tester_0_0": SHARP}
    observations, rewards, terminations, truncations, infos = env.step(early)
    assert set(rewards.values()) == {0.0}
    assert not any([*terminations.values(), *truncations.values()])
    assert [agent for agent in env.agents if infos[agent]["active"]] == env.agents[2:]
    assert "abs(a + b)" in observations["tester_0_1"]["program"]
    assert "abs" not in observations["tester_1_0"]["program"]
    assert infos["tester_1_0"]["episode_id"].endswith("-1-0")
    assert infos["tester_1_0"]["tester_view"] == "white_box"
    _, rewards, terminations, truncations, infos = env.step(by_tester(env, NAIVE, SHARP, NAIVE, SHARP))
    assert rewards == dict(zip(env.possible_agents, [0.75, 1.0, 0.5, 0.75, 0.5, 0.5], strict=True))
    assert all(terminations.values())
    assert not any([*truncations.values(), *env.agents])


def test_infos_count_a_coders_suites_together_and_are_plain(group):
    _, (_, rewards, _, _, infos) = played(group(), (LOOKS_RIGHT, RIGHT), (NAIVE, SHARP, NAIVE, "no test"))
    assert json.loads(json.dumps(infos)) == infos
    for agent, info in infos.items():
        assert sum(info["reward_parts"].values()) == pytest.approx(rewards[agent])
        assert (info["problem_id"], info["verdict"], info["masked"]) == ("toy/add", "passed", False)
    names = ("new_tests", "validity", "difficulty", "pass_rate", "rejections")
    assert [infos["coder_0"][name] for name in names] == [4, 1.0, 0.25, 0.75, {}]
    assert [infos["coder_1"][name] for name in names] == [2, 0.5, 0.0, 1.0, {"no_code": 1}]
    assert [infos["tester_0_1"][name] for name in names] == [2, 1.0, 0.5, 0.5, {}]


def test_suites_for_the_problem_meet_all_candidates_and_are_written_blind(group):
    env = group(suites_per="problem")
    first, (_, rewards, terminations, _, infos) = played(env, (LOOKS_RIGHT, BROKEN), (NAIVE, SHARP))
    assert env.possible_agents == ["coder_0", "coder_1", "tester_0_0", "tester_0_1"]
    assert first[0]["tester_0_0"]["program"] == ""
    assert first[4]["tester_0_0"]["tester_view"] == "black_box"
    assert not any(first[2].values())
    assert rewards == {"coder_0": 0.75, "coder_1": 0.0, "tester_0_0": 0.5, "tester_0_1": 0.75}
    assert all(terminations.values())
    assert infos["coder_0"]["new_tests"] == 4
    assert (infos["tester_0_1"]["verdict"], infos["tester_0_1"]["new_tests"]) == (None, 2)
    assert infos["tester_0_1"]["reward_parts"] == {"mean_over_candidates": 0.75}
    assert infos["tester_0_1"]["pass_rate"] == 0.5


def test_testers_of_a_program_that_does_not_load_end_without_a_turn(group):
    first, second = played(group(), (BROKEN, RIGHT), (NAIVE, NAIVE))
    ended = {agent for agent, is_over in first[2].items() if is_over}
    assert ended == {"tester_0_0", "tester_0_1"}
    assert first[4]["tester_0_0"] == {"active": False, "verdict": "syntax_error", "masked": False}
    assert list(second[1]) == ["coder_0", "coder_1", "tester_1_0", "tester_1_1"]
    assert second[1]["coder_0"] == 0.0
    assert second[4]["coder_0"]["verdict"] == "syntax_error"


def test_if_no_program_loads_the_first_step_is_the_last(group):
    env = group()
    (_, rewards, terminations, _, infos), _ = played(env, (BROKEN, "no code"), ())
    assert env.agents == []
    assert rewards == dict.fromkeys(env.possible_agents, 0.0)
    assert all(terminations.values())
    assert infos["coder_1"]["verdict"] == infos["tester_1_0"]["verdict"] == "no_code"
    (_, rewards, _, truncations, _), _ = played(env, (GONE, BROKEN), ())  # nor if the others are not there
    assert [agent for agent in rewards if truncations[agent]] == ["coder_0", "tester_0_0", "tester_0_1"]
    assert played(group(skip_invalid=False), (BROKEN, BROKEN), (NAIVE,) * 4)[1][1]["tester_1_1"] == 0.0


def test_without_testers_an_episode_is_one_step(group):
    env = group(n_suites=0, rules="golden")
    env.reset(seed=0)
    _, rewards, terminations, _, infos = env.step(coders(RIGHT, WRONG))
    assert env.possible_agents == ["coder_0", "coder_1"]
    assert rewards == {"coder_0": 1.0, "coder_1": 0.0}
    assert all(terminations.values())
    assert infos["coder_1"]["verdict"] == "passed"


def game_of_two(add: ProblemSet, rules: str, program: Any, suite: Any, book: MistakeBook) -> Any:
    """Return the game of two after its end."""
    pair = code_a1_v0.raw_env(problems=add, rules=rules, book=book)
    pair.reset(seed=0)
    for reply in (program, suite):
        if pair.terminations["coder_0"] or pair.truncations["coder_0"]:
            break
        pair.give_up("gone") if reply is GONE else pair.step(reply)
    return pair


@pytest.mark.parametrize("rules", ["fixed", "paper", "release", "golden"])
@pytest.mark.parametrize(("program", "suite"), [(LOOKS_RIGHT, SHARP), (RIGHT, "no test"), (BROKEN, SHARP)])
def test_the_group_of_one_is_the_game_of_two(add, rules, program, suite):
    pair = game_of_two(add, rules, program, suite, MistakeBook())
    env = code_a1_v0.group_env(problems=add, rules=rules, n_candidates=1, n_suites=1)
    env.reset(seed=0)
    paid, infos = {}, {}
    while env.agents:
        _, rewards, _, _, told = env.step({"coder_0": program, "tester_0_0": suite})
        paid, infos = paid | rewards, infos | told
    for agent, name in (("coder_0", "coder_0"), ("tester_0", "tester_0_0")):
        assert paid[name] == pair.rewards[agent]
        expected = {key: value for key, value in pair.infos[agent].items() if key in infos[name]}
        episode_id = expected.pop("episode_id", "")
        assert infos[name].get("episode_id", "-0-0").removesuffix("-0-0") == episode_id
        assert infos[name].items() >= expected.items()


PROGRAMS = (RIGHT, LOOKS_RIGHT, WRONG, BROKEN, "no code", fenced("def other(): pass"), GONE)
SUITES = (NAIVE, SHARP, FALSE, "no test", fenced("assert add(1, 2) == 3"), GONE)


def with_cases() -> MistakeBook:
    """A book with a case that the solution confirms and one that it denies."""
    return filled(entry("add(-3, -4)", -7), entry("add(9, 9)", 1), problem_id="toy/add")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rules=st.sampled_from(sorted(PRESETS)),
    pairs=st.lists(st.tuples(st.sampled_from(PROGRAMS), st.sampled_from(SUITES)), min_size=1, max_size=3),
    is_shared=st.booleans(),
)
@example(rules="zero_sum", pairs=[(BROKEN, NAIVE)], is_shared=False)
@example(rules="fixed", pairs=[(WRONG, GONE)], is_shared=False)
def test_a_group_pays_what_the_game_of_two_pays_for_the_same_replies(add, rules, pairs, is_shared):
    is_shared = is_shared and preset(rules).reward.scheme not in ("cure", "learnability")  # they compare candidates
    pairs = [(program, pairs[0][1]) for program, _ in pairs] if is_shared else pairs
    own = [with_cases() for _ in pairs]
    games = [game_of_two(add, rules, *each, book) for each, book in zip(pairs, own, strict=True)]
    expected = np.array([[game.rewards["coder_0"], game.rewards["tester_0"]] for game in games])
    shape = {"n_candidates": len(pairs), "n_suites": 1, "suites_per": "problem" if is_shared else "candidate"}
    book = with_cases()
    env = code_a1_v0.group_env(problems=add, rules=rules, book=book, **shape)
    env.reset(seed=0)
    _, paid, *_ = env.step(coders(*(program for program, _ in pairs)))
    suites = {f"tester_{n}_0": suite for n, (_, suite) in enumerate(pairs) if n == 0 or not is_shared}
    paid |= env.step(suites)[1] if env.agents else {}
    np.testing.assert_array_equal([paid[f"coder_{n}"] for n in range(len(pairs))], expected[:, 0])
    if is_shared:
        loads = [each.loads for each in env.last_tree.report.candidates]  # also without an entry point in the release
        expected = expected[loads] if any(loads) else np.full((1, 2), math.nan)
        np.testing.assert_allclose([paid["tester_0_0"]], expected[:, 1].mean(keepdims=True))
    else:
        np.testing.assert_array_equal([paid[f"tester_{n}_0"] for n in range(len(pairs))], expected[:, 1])
    if len(pairs) == 1:
        assert [(e.entry.key, e.entry.frequency) for e in book.entries()] == [
            (e.entry.key, e.entry.frequency) for e in own[0].entries()
        ]
        assert book.round_of("toy/add") == own[0].round_of("toy/add")


def test_a_candidate_that_its_absent_tester_masks_leaves_the_book_as_it_is(group):
    with MistakeBook() as book:
        played(group(book=book), (WRONG, LOOKS_RIGHT), (NAIVE, GONE, SHARP, NAIVE))
        assert [each.entry.expression for each in book.entries()] == ["add(-1, -2)"]  # of SHARP, not of NAIVE


def test_an_agent_that_cannot_be_asked_is_masked_and_so_is_who_depends_on_it(group):
    first, second = played(group(), (GONE, RIGHT), (NAIVE, GONE))
    assert {agent for agent, is_cut in first[3].items() if is_cut} == {"tester_0_0", "tester_0_1"}
    assert math.isnan(first[1]["tester_0_0"])
    assert first[4]["tester_0_0"]["masked"] is True
    masked = {"coder_0", "coder_1", "tester_1_1"}
    assert {agent for agent, reward in second[1].items() if math.isnan(reward)} == masked
    assert {agent for agent, is_cut in second[3].items() if is_cut} == masked
    assert {agent for agent, is_over in second[2].items() if is_over} == {"tester_1_0"}
    assert {agent for agent, info in second[4].items() if info["masked"]} == masked
    assert second[4]["coder_1"]["reward_parts"] == {}


def test_what_the_sandbox_fails_at_is_masked_and_teaches_the_book_nothing(group, broken_sandbox):
    with MistakeBook() as book:
        first, second = played(group(book=book, sandbox=broken_sandbox), (RIGHT, BROKEN), ())
        assert all(math.isnan(first[1][f"tester_{n}_0"]) for n in range(2))
        assert set(second[3].values()) == {True}
        assert (book.round_of("toy/add"), second[4]["coder_0"]["book_size"]) == (0, None)


def test_a_sandbox_that_cannot_be_used_at_all_is_raised_or_masked(group, watched):
    env, watched.error = group(sandbox=watched), "no processes left"
    env.reset(seed=0)
    with pytest.raises(SandboxError, match="no processes"):
        env.step(coders(RIGHT, RIGHT))
    watched.error = ""
    env.step(coders(RIGHT, RIGHT))
    assert len(env.turns) == 4
    watched.error = "no processes left"
    _, second = played(group(sandbox=watched, masks_sandbox_errors=True), (RIGHT, BROKEN), ())
    assert second[4]["coder_0"]["masked"] is True
    env = group(sandbox=watched, masks_sandbox_errors=True, suites_per="problem")
    _, second = played(env, (RIGHT, BROKEN), (NAIVE, NAIVE))
    assert set(second[3].values()) == {True}
    assert env.last_tree.report is None


def test_the_book_learns_from_an_episode_and_is_replayed_in_the_next(group):
    with MistakeBook() as book:
        env = group(book=book, provenance=Provenance(run="r"))
        _, second = played(env, (LOOKS_RIGHT, RIGHT), (SHARP,) * 4)
        assert (book.size(), second[4]["coder_0"]["book_size"]) == (1, 1)
        (stored,) = book.entries()
        assert (stored.entry.provenance.run, stored.entry.provenance.episode_id) == ("r", env.tree.name)
        _, second = played(env, (LOOKS_RIGHT, RIGHT), (NAIVE,) * 4)
        assert [second[4][agent]["replayed_tests"] for agent in ("coder_0", "coder_1", "tester_0_0")] == [1, 1, 1]
        assert (second[1]["coder_0"], second[1]["coder_1"]) == (0.5, 1.0)
        env.reset(options={"replay": False})
        assert env.tree.replayed == ()
        env.close()
        assert book.size() == 1  # it is the caller's, so it stays open


def test_a_tree_is_played_as_it_is_and_its_book_is_its_makers(group, toys):
    with MistakeBook() as book:
        env = group(book=book)
        played(env, (LOOKS_RIGHT, RIGHT), (SHARP,) * 4)
        tree = Tree(toys.by_id("toy/add"), 2, 2, replayed=env.tree.replayed, name="mine", seed=(1, 2))
        _, infos = env.reset(options={"tree": tree})
        assert infos["coder_1"]["episode_id"] == "mine-1-0"
        assert env.turns["coder_1"].seed == (1, 2, 0, 1, 0)
        env.step(coders(LOOKS_RIGHT, LOOKS_RIGHT))
        env.step(by_tester(env, *[NAIVE] * 4))
        assert book.round_of("toy/add") == 1
        assert env.last_tree.tree is tree
        assert env.last_tree.book_report is not None


def test_actions_that_are_wrong_are_named_and_long_ones_cut(group):
    env = group()
    env.reset(seed=0)
    with pytest.raises(UserError, match="coder_1's action must be text"):
        env.step(coders(RIGHT, 3))
    env.step(coders(RIGHT, "x" * (MAX_REPLY_CHARS + 5)))
    _, _, _, _, infos = env.step(by_tester(env, NAIVE, NAIVE))
    assert infos["coder_1"]["truncated_chars"] == 5
    assert "truncated_chars" not in infos["coder_0"]


def test_an_environment_travels_before_its_first_reset(tmp_path):
    env = code_a1_v0.group_env("starter", n_candidates=2, n_suites=1, book=tmp_path / "book.sqlite")
    with pickle.loads(pickle.dumps(env)).book as arrived:
        assert arrived.path == env.book.path
    assert pickle.loads(pickle.dumps(env.round_options)) == env.round_options
    env.reset(seed=0)
    with pytest.raises(UserError, match="a round stays in its process"):
        pickle.dumps(env)
    env.close()


def test_a_program_that_is_too_long_is_none(group):
    env = group(rules=replace(RULES, max_program_bytes=60))
    env.reset(seed=0)
    _, _, _, _, infos = env.step(coders(RIGHT, RIGHT.replace("```python", "```python\n# " + "\u00e9" * 30)))
    assert list(env.turns) == ["tester_0_0", "tester_0_1"]
    assert infos["tester_1_0"]["verdict"] == "no_code"
    env.step(by_tester(env, NAIVE, NAIVE))
    report = env.last_tree.report.candidates[1]
    assert "94 bytes" in report.detail
    assert report.candidate.rejection.reason == "too_long"
    assert env.last_tree.coder_rewards[1] == 0.0
