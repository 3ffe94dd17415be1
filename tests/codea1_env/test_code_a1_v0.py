"""The environment as PettingZoo's users see it."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.test.render_test import render_test

from codea1_env import MistakeBook, bank_v0, code_a1_v0
from codea1_env.book.store import Leaving
from codea1_env.errors import UserError
from codea1_env.facts.verdicts import Verdict
from codea1_env.observations import MAX_REPLY_CHARS
from codea1_env.problems import GoldenCase, ProblemSet
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.ruleset import PRESETS, preset
from codea1_env.runs.records import RoundRecord
from tests.support.books import entry, filled
from tests.support.toys import LOOKS_RIGHT, RIGHT, TEXT_SPACES

SUITE = "```python\nassert add(1, 2) == 3\nassert add(-1, -2) == -3\n```"


def played(env: Any, *replies: str, seed: int = 0) -> list[tuple[str, float, bool, bool, dict[str, Any]]]:
    """Play one episode from a list of replies; return what `last()` gave at each turn."""
    waiting = list(replies)
    env.reset(seed=seed)
    trace = []
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        trace.append((agent, reward, terminated, truncated, info))
        env.step(None if terminated or truncated else waiting.pop(0))
    assert waiting == []
    return trace


@TEXT_SPACES
@pytest.mark.parametrize("options", [{}, {"max_cycles": 3}, {"skip_invalid": False}, {"rules": "release"}])
def test_api(toys, options):
    api_test(code_a1_v0.env(problems=toys, **options), num_cycles=30)


@pytest.mark.parametrize("factory", [code_a1_v0.parallel_env, code_a1_v0.blind_parallel_env])
def test_parallel_api_and_seeds(toys, factory):
    parallel_api_test(factory(problems=toys, max_cycles=3), num_cycles=30)
    parallel_seed_test(partial(factory, problems=toys), num_cycles=20)


def test_seeds(toys):
    seed_test(partial(code_a1_v0.env, problems=toys, max_cycles=3), num_cycles=20)


def test_max_cycles(toys):
    # Random text is not a program; with `skip_invalid` (the default) the tester would never act (docs/decisions/004).
    env, blind = partial(code_a1_v0.env, skip_invalid=False), code_a1_v0.blind_parallel_env
    max_cycles_test(SimpleNamespace(env=partial(env, problems=toys), parallel_env=partial(blind, problems=toys)))


def test_render_modes(toys):
    with redirect_stdout(io.StringIO()):
        render_test(partial(code_a1_v0.env, problems=toys), custom_tests={"ansi": lambda text: isinstance(text, str)})


@pytest.mark.slow
def test_the_registry_knows_the_game_after_the_import_that_the_documents_show():
    code = """
import codea1_env, pettingzoo
print(pettingzoo.make("aec", "codea1/code_a1-v0", problems="starter").unwrapped)
print(*pettingzoo.make("parallel", "codea1/code_a1-v0").possible_agents)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "code_a1_v0\ncoder_0 tester_0\n", done.stderr


@pytest.mark.parametrize(
    ("make", "option", "first"), [(code_a1_v0.parallel_env, "problems", "pass"), (bank_v0.parallel_env, "bank", 0)]
)
def test_the_parallel_view_says_from_the_reset_on_whose_turn_it_is(toys, make, option, first):
    env = make(**{option: toys})
    _, infos = env.reset(seed=0)
    assert {info["active_agent"] for info in infos.values()} == {"coder_0"}
    *_, infos = env.step({"coder_0": first, "tester_0": None})
    if env.agents:
        assert {info["active_agent"] for info in infos.values()} == {"tester_0"}


@pytest.mark.parametrize("make", [code_a1_v0.env, code_a1_v0.parallel_env, code_a1_v0.blind_parallel_env])
def test_without_infos_every_info_is_empty(toys, make):
    env = make(problems=toys, infos=False, max_cycles=2)
    found = env.reset(seed=0)
    seen = [env.infos if found is None else found[1]]
    while env.agents:
        if found is None:
            env.step(None if any(env.last()[2:4]) else "pass")
            seen.append(dict(env.infos))
        else:
            seen.append(env.step(dict.fromkeys(env.agents, "pass"))[-1])
    assert len(seen) > 2
    assert {str(info) for infos in seen for info in infos.values()} == {"{}"}


def test_a_group_without_infos_says_only_who_acts(toys):
    env = code_a1_v0.group_env(problems=toys, n_candidates=2, n_suites=1, infos=False)
    _, infos = env.reset(seed=0)
    seen = [infos]
    while env.agents:
        *_, infos = env.step(dict.fromkeys([a for a, info in infos.items() if info["active"]], "pass"))
        seen.append(infos)
    assert {tuple(info) for infos in seen for info in infos.values()} == {("active",)}


def test_a_round_pays_both_agents_once_after_the_tester_has_acted(add):
    trace = played(code_a1_v0.env(problems=add, max_cycles=2), LOOKS_RIGHT, SUITE, RIGHT, SUITE)
    # One of the two cases is the statement's own example.
    first, second = 0.5 * 1 / 8 + 0.5 * 1 / 8, 0.5 * 1 / 8 + 0.5 * (0 - 0 + 1) / 2
    assert [(agent, reward, over) for agent, reward, over, _, _ in trace] == [
        ("coder_0", 0.0, False),
        ("tester_0", 0.0, False),
        ("coder_0", 0.5, False),
        ("tester_0", first, False),
        ("coder_0", 1.0, True),
        ("tester_0", second, True),
    ]


def test_infos_tell_the_parts_and_they_add_up(add):
    trace = played(code_a1_v0.env(problems=add), LOOKS_RIGHT, SUITE)
    (_, coder_reward, _, _, coder), (_, tester_reward, _, _, tester) = trace[-2:]
    assert sum(coder["reward_parts"].values()) == pytest.approx(coder_reward)
    assert sum(tester["reward_parts"].values()) == pytest.approx(tester_reward)
    assert (coder["verdict"], coder["pass_rate"]) == ("passed", 0.5)
    assert (tester["new_tests"], tester["validity"], tester["difficulty"], tester["book_size"]) == (2, 2 / 8, 1 / 8, 1)
    assert tester["masked"] is False
    assert json.loads(json.dumps([coder, tester])) == [coder, tester]


def test_a_programs_own_tests_are_counted_in_infos_and_in_records(add):
    env = code_a1_v0.env(problems=add)
    trace = played(env, LOOKS_RIGHT[:-3] + "assert add(1, 1) == 3\nprint(add(2, 2))\n```", SUITE)
    assert [infos["own_tests"] for *_, infos in trace[-2:]] == [2, 2]
    record = RoundRecord.of(env.unwrapped.last_round)
    assert record.to_report().candidate.n_own_tests == record.candidate.n_own_tests == 2


def test_the_default_parallel_view_shows_the_tester_the_program(add):
    env = code_a1_v0.parallel_env(problems=add)
    observations, infos = env.reset(seed=0)
    observations, rewards, _, _, infos = env.step({"coder_0": RIGHT, "tester_0": ""})
    assert "return a + b" in observations["tester_0"]["program"]
    assert infos["tester_0"]["active_agent"] == "tester_0"
    assert rewards == {"coder_0": 0.0, "tester_0": 0.0}
    _, rewards, terminations, _, _ = env.step({"coder_0": "", "tester_0": SUITE})
    assert rewards["coder_0"] == 1.0
    assert terminations == {"coder_0": True, "tester_0": True}


def test_the_blind_parallel_view_takes_both_at_once(add):
    env = code_a1_v0.blind_parallel_env(problems=add)
    observations, _ = env.reset(seed=0)
    assert observations["tester_0"]["program"] == ""
    _, rewards, terminations, _, infos = env.step({"coder_0": LOOKS_RIGHT, "tester_0": SUITE})
    assert rewards["coder_0"] == 0.5
    assert all(terminations.values())
    assert infos["coder_0"]["new_tests"] == 2
    with pytest.raises(UserError, match="black_box"):
        code_a1_v0.blind_parallel_env(problems=add, tester_view="white_box")


def test_an_invalid_candidate_ends_the_episode_without_the_testers_turn(add):
    trace = played(code_a1_v0.env(problems=add), "no code here")
    turns = [("coder_0", 0.0, False), ("coder_0", 0.0, True), ("tester_0", 0.0, True)]
    assert [(agent, reward, over) for agent, reward, over, _, _ in trace] == turns
    assert trace[-1][-1]["verdict"] in {"no_code", "syntax_error"}
    asked = played(code_a1_v0.env(problems=add, skip_invalid=False), "no code here", SUITE)
    assert [agent for agent, *_ in asked] == ["coder_0", "tester_0", "coder_0", "tester_0"]
    assert asked[-1][1] == 0.0


def test_a_coder_may_repair_after_feedback(add):
    env = code_a1_v0.env(problems=add, max_cycles=2)
    env.reset(seed=0)
    env.step(LOOKS_RIGHT)
    env.step(SUITE)
    seen = env.observe("coder_0")
    assert seen["round"] == 1
    assert "abs(a + b)" in seen["program"]
    assert "1 of 2 tests failed" in seen["feedback"]
    assert "add(-1, -2) should be -3; it gave 3" in seen["feedback"]
    assert "2 valid tests, 1 of them failed" in env.observe("tester_0")["feedback"]
    env.step(RIGHT)
    env.step(SUITE)
    assert env.terminations == {"coder_0": True, "tester_0": True}
    last = env.unwrapped.last_round
    assert last.round == 1
    assert [case.verdict for case in last.report.candidates[0].replayed] == [Verdict.PASSED]


def test_the_book_replays_across_episodes_and_can_be_left_out(add):
    env = code_a1_v0.env(problems=add)
    played(env, LOOKS_RIGHT, SUITE)
    played(env, LOOKS_RIGHT, "nothing")
    assert len(env.unwrapped.last_round.report.candidates[0].replayed) == 1
    env.reset(options={"replay": False})
    env.step(LOOKS_RIGHT)
    env.step(SUITE)
    assert env.unwrapped.last_round.report.candidates[0].replayed == ()
    assert env.unwrapped.book.size() == 1


def test_a_book_on_disk_serves_the_next_environment(add, tmp_path):
    env = code_a1_v0.env(problems=add, book=tmp_path / "book.sqlite")
    played(env, LOOKS_RIGHT, SUITE)
    env.close()
    env.close()
    with MistakeBook(tmp_path / "book.sqlite") as book:
        assert book.size("toy/add") == 1


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"golden", "zero_sum"}))
def test_a_solution_that_was_corrected_is_not_held_to_its_old_values(add, name):
    wrong = ProblemSet("wrong", (replace(add[0], solution="def add(a, b):\n    return a + b + (a == 5)"),))
    with MistakeBook() as book:
        old = code_a1_v0.env(problems=wrong, rules=name, book=book)
        played(old, RIGHT, "```python\nassert add(5, 0) == 6\nassert add(5, 1) == 7\n```")
        n_wrong = book.size()
        ((_, coder, *_), _) = played(code_a1_v0.env(problems=add, rules=name, book=book), RIGHT, SUITE)[-2:]
        assert coder == played(code_a1_v0.env(problems=add, rules=name), RIGHT, SUITE)[-2][1]  # as without a book
        assert book.size() == 0
        assert [each.how for each in book.departures()] == [Leaving.DENIED] * n_wrong


def test_entries_whose_values_hold_addresses_cost_nobody_anything_and_leave(add):
    """They were made before such values were refused, nine of them, so that they held all places."""
    problem = ProblemSet("echo", (replace(add[0], solution="def add(a, b):\n    return a", examples=()),))
    echo = "```python\ndef add(a, b):\n    return a\n```"
    values = [f"<list_iterator object at 0x7f00000{n}>" for n in range(9)]
    made = (replace(entry("add(str(iter([])), 0)", value), direct=False) for value in values)
    with filled(*made, problem_id="toy/add") as book:
        for _ in range(3):
            played(code_a1_v0.env(problems=problem, book=book), echo, "```python\nassert add(1, 2) == 1\n```")
        env = code_a1_v0.env(problems=problem, book=book)
        trace = played(env, echo, "```python\nassert add(1, 2) == 1\n```")
        assert trace[-2][:2] == ("coder_0", 1.0)
        assert book.size() == 0


@pytest.mark.parametrize(
    "reply", ["", " ", "\0", "\ud800", "🙂" * 10, "```python\n" + "(" * 50_000, "x" * 10_000_000, "```" * 1000]
)
def test_any_text_is_a_legal_action(add, reply):
    env = code_a1_v0.env(problems=add, skip_invalid=False)
    trace = played(env, reply, reply)
    assert trace[-1][2]
    assert trace[-1][4].get("truncated_chars", 0) == max(0, len(reply) - MAX_REPLY_CHARS)
    assert env.observation_space("coder_0").contains(env.observe("coder_0"))


def test_reset_options(toys, caplog):
    env = code_a1_v0.env(problems=toys)
    env.reset(seed=0, options={"problem_id": "toy/last"})
    assert env.infos["coder_0"]["problem_id"] == "toy/last"
    env.reset(options={"problem": toys[0]})
    assert env.infos["coder_0"]["problem_id"] == "toy/add"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(options={"colour": 1})
    assert "unknown option 'colour' is ignored" in caplog.text


def test_golden_rules_refuse_problems_without_golden_tests_up_front(toys):
    bare = replace(toys[0], id="toy/bare", golden=())
    with pytest.raises(UserError, match=r"1 of 2 problems .*: toy/bare"):
        code_a1_v0.env(problems=[toys[1], bare], rules="golden")
    code_a1_v0.env(problems=[bare], rules="fixed")
    env = code_a1_v0.env(problems=toys, rules="golden")
    with pytest.raises(UserError, match="toy/bare"):
        env.reset(options={"problem": bare})


def test_our_own_failure_truncates_with_nan_and_says_so(add, broken_sandbox):
    unknown = replace(add[0], golden=(GoldenCase("add(1, 2)", "no_such_name"),))
    for env, replies in (
        (code_a1_v0.env(problems=add, sandbox=broken_sandbox), [RIGHT]),
        (code_a1_v0.env(problems=[unknown], rules="golden"), [RIGHT, SUITE]),
    ):
        for agent, reward, terminated, truncated, info in played(env, *replies)[-2:]:
            assert (math.isnan(reward), terminated, truncated, info["masked"]) == (True, False, True, True), agent


def test_shares_in_infos_stay_within_1_where_more_cases_are_kept_than_were_asked_for(add):
    many = "```python\n" + "\n".join(f"assert add(-{i}, -1) == -{i + 1}" for i in range(1, 8)) + "\n```"
    rules = replace(preset("release"), tests_per_suite=2)
    info = played(code_a1_v0.env(problems=add, rules=rules), LOOKS_RIGHT, many)[-1][4]
    assert info["new_tests"] > 2
    assert (info["validity"], info["difficulty"]) == (1.0, 1.0)


def test_new_entries_of_the_book_say_who_played(add):
    with MistakeBook() as book:
        who = Provenance(run="r", coder="me", tester="you")
        played(code_a1_v0.env(problems=add, book=book, provenance=who), LOOKS_RIGHT, SUITE)
        (stored,) = book.entries()
        found = stored.entry.provenance
        assert (found.run, found.coder, found.tester, found.round) == ("r", "me", "you", 0)
        assert found.episode_id


def test_every_problem_is_played_once_before_any_twice():
    env = code_a1_v0.env(problems="starter")
    n = len(env.unwrapped.problems)
    ids = []
    for k in range(2 * n):
        env.reset(seed=7 if k == 0 else None)
        ids.append(env.infos["coder_0"]["problem_id"])
    assert len(set(ids[:n])) == len(set(ids[n:])) == n
    assert ids[:n] != ids[n:]


def test_groups_are_named_by_problem_and_by_program(toys):
    def group_ids(coder_reply: str, seed: int) -> tuple[str, str]:
        env = code_a1_v0.env(problems=toys)
        env.reset(seed=seed, options={"problem_id": "toy/add"})
        coder = env.infos["coder_0"]["group_id"]
        env.step(coder_reply)
        return coder, env.infos["tester_0"]["group_id"]

    assert group_ids(RIGHT, 1) == group_ids("Sure!\n" + RIGHT, 2)
    assert group_ids(RIGHT, 1)[0] == group_ids(LOOKS_RIGHT, 1)[0]
    assert group_ids(RIGHT, 1)[1] != group_ids(LOOKS_RIGHT, 1)[1]


@pytest.mark.parametrize("factory", [partial(code_a1_v0.env, tester_view="black_box"), code_a1_v0.blind_parallel_env])
def test_what_a_tester_may_not_see_does_not_show_in_its_group(add, factory):
    def group(reply):
        env = factory(problems=add)
        env.reset(seed=0)
        if hasattr(env, "agent_selection"):
            env.step(reply)
            return env.infos["tester_0"]["group_id"]
        return env.step({"coder_0": reply, "tester_0": SUITE})[4]["tester_0"]["group_id"]

    assert group(RIGHT) == group(LOOKS_RIGHT) == "toy/add/tester"


TRANSCRIPT = """
import json
from codea1_env import code_a1_v0, AgentContext, load_agent
env = code_a1_v0.env(problems="starter", max_cycles=2)
env.reset(seed=5)
context = AgentContext(env.unwrapped.problems, env.unwrapped.referee.sandbox)
agents = {"coder_0": load_agent("mutant,strength=0.8", context), "tester_0": load_agent("fuzz", context)}
lines = []
for episode in range(6):
    if episode:
        env.reset()
    for number, agent in enumerate(agents.values()):
        agent.reset(episode * 2 + number)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        action = None if terminated or truncated else agents[agent].act(observation, info)
        lines.append([agent, observation["program"], observation["feedback"], reward, info, action])
        env.step(action)
print(json.dumps(lines))
"""


@pytest.mark.slow
def test_same_seed_same_transcript_in_two_processes():
    command = [sys.executable, "-c", TRANSCRIPT]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    )
    assert first.stdout == second.stdout
    assert len(json.loads(first.stdout)) > 12


def test_render_pictures_the_round(add, capsys):
    env = code_a1_v0.env(problems=add, render_mode="human")
    played(env, LOOKS_RIGHT, SUITE)
    assert "toy/add" in capsys.readouterr().out
    quiet = code_a1_v0.env(problems=add, render_mode="ansi")
    played(quiet, LOOKS_RIGHT, SUITE)
    assert "add(-1, -2)" in quiet.render()


@pytest.mark.parametrize("absent", ["coder_0", "tester_0"])
def test_giving_up_on_an_agent_masks_and_truncates_the_episode_and_leaves_the_book_alone(add, absent):
    with MistakeBook() as book:
        env = code_a1_v0.env(problems=add, book=book, max_cycles=3)
        played(env, LOOKS_RIGHT, SUITE, LOOKS_RIGHT, SUITE, LOOKS_RIGHT, SUITE)
        before = list(book.entries())
        env.reset(seed=1)
        if absent == "tester_0":
            env.step(LOOKS_RIGHT)
        env.unwrapped.give_up("the server is gone")
        judged = env.unwrapped.last_round
        trace = []
        for agent in env.agent_iter():
            _, reward, terminated, truncated, info = env.last()
            trace.append((agent, math.isnan(reward), terminated, truncated, info["masked"]))
            env.step(None)
        assert trace == [("coder_0", True, False, True, True), ("tester_0", True, False, True, True)]
        assert judged.report.candidates[0].verdict is Verdict.INTERNAL_ERROR
        assert judged.report.candidates[0].detail == "the server is gone"
        assert list(book.entries()) == before
        assert before


@pytest.mark.parametrize(
    ("factory", "view"),
    [
        (code_a1_v0.env, "white_box"),
        (partial(code_a1_v0.env, tester_view="black_box"), "black_box"),
        (code_a1_v0.blind_parallel_env, "blind"),
    ],
)
def test_the_testers_infos_say_whether_it_sees_the_program_and_the_coders_do_not(add, factory, view):
    env = factory(problems=add)
    _, infos = env.reset(seed=0) or (None, env.infos)
    assert infos["tester_0"]["tester_view"] == view
    assert "tester_view" not in infos["coder_0"]
    if view != "blind":
        shown = "def add(a, b):\n    return a + b" if view == "white_box" else ""
        assert env.observe("tester_0")["program"] == ""
        env.step(RIGHT)
        assert env.observe("tester_0")["program"].strip() == shown
