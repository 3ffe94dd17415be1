from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from math import isnan, nan
from typing import Any

import pytest

from codea1_agents.play.games import PlayedEpisode, TimeSplit, episode_seeds
from codea1_agents.play.runner import play
from codea1_env.book.store import MistakeBook
from codea1_env.errors import SandboxError, UserError
from codea1_env.problems import ProblemSet
from codea1_env.runs.records import RewardsRecord, to_line
from codea1_env.sandbox import Job, JobReport, Sandbox
from tests.codea1_agents.play.conftest import Dice, episodes_of, lines
from tests.conftest import Broken
from tests.support.players import asserting, bad, good
from tests.support.runs import summarise


class Gone(Broken):
    """A sandbox that cannot be used at all."""

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        raise SandboxError("no worker")


def played(toys: ProblemSet, coder: Any, sandbox: Sandbox, **options: Any) -> list[PlayedEpisode]:
    return episodes_of(toys, coder, asserting, sandbox=sandbox, **options)


def test_the_seeds_of_an_episode_are_its_own_and_survive_a_double() -> None:
    seeds = [episode_seeds(7, number) for number in range(50)]
    assert seeds[3] == episode_seeds(7, 3) != episode_seeds(8, 3)
    all_seeds = [seed for each in seeds for seed in (each.environment, each.coder, each.tester)]
    assert len(set(all_seeds)) == 150
    assert all(int(float(seed)) == seed for seed in all_seeds)


def test_episode_k_plays_problem_k_and_the_summary_is_of_all(toys: ProblemSet, sandbox: Sandbox) -> None:
    games = played(toys, good, sandbox, episodes=3)
    assert [game.record.problem_id for game in games] == ["toy/add", "toy/last", "toy/add"]
    assert [game.record.episode for game in games] == [0, 1, 2]
    (game,) = played(toys, bad, sandbox, episodes=1, rounds=3)
    assert [each.round for each in game.rounds] == [each.round for each in game.record.rounds] == [0, 1, 2]
    assert RewardsRecord.model_validate(game.rounds[0].rewards) == game.record.rounds[0].rewards
    games: list[PlayedEpisode] = []
    summary = play(toys, bad, asserting, sandbox=sandbox, episodes=4, seed=5, on_episode=games.append)
    assert repr(summary) == repr(summarise([game.record for game in games], tests_per_suite=8, seed=5))
    assert summary.n_episodes == 4
    assert summary.kill_rate.mean == 1.0
    assert summary.pass_new.mean == 0.5


def test_two_halves_are_the_whole_run_and_another_seed_is_another(toys: ProblemSet, sandbox: Sandbox) -> None:
    whole = played(toys, Dice(), sandbox, episodes=8, rounds=2, seed=3)
    with MistakeBook() as book:
        first = played(toys, Dice(), sandbox, episodes=3, rounds=2, seed=3, book=book)
        second = played(toys, Dice(), sandbox, episodes=8, rounds=2, seed=3, book=book, start_at=3)
    assert lines(first) + lines(second) == lines(whole)
    assert any(each.report.candidates[0].replayed for game in second for each in game.rounds)
    first, second = (played(toys, Dice(), sandbox, episodes=6, seed=seed) for seed in (1, 2))
    assert lines(first) != lines(second)


def test_agents_have_their_own_seeds_and_are_closed_once_whatever_fails(toys: ProblemSet, sandbox: Sandbox) -> None:
    dice = Dice()
    played(toys, dice, sandbox, episodes=3, seed=9)
    assert dice.seeds == [episode_seeds(9, number).coder for number in range(3)]
    assert dice.closed == 1
    dice = Dice()
    with pytest.raises(UserError):
        play(toys, dice, lambda observation: 1 / 0, sandbox=sandbox, episodes=1)
    assert dice.closed == 1


def test_an_agent_that_raises_is_named_and_finished_episodes_stand(toys: ProblemSet, sandbox: Sandbox) -> None:
    def forgetful(observation: Any) -> str:
        if observation["entry_point"] == "last":
            raise KeyError("memory\nlost")
        return good(observation)

    games: list[PlayedEpisode] = []
    with pytest.raises(UserError) as caught:
        play(toys, forgetful, asserting, sandbox=sandbox, episodes=2, on_episode=games.append)
    told = str(caught.value)
    assert told.startswith("coder forgetful failed in episode 1 (problem toy/last): KeyError: 'memory")
    assert "test_runner.py:" in told
    assert "\n" not in told
    assert len(games) == 1


@pytest.mark.parametrize("reply", [None, b"assert add(1, 2) == 3", 3, ["a"]])
def test_a_reply_that_is_no_text_is_refused_by_its_type(toys: ProblemSet, sandbox: Sandbox, reply: object) -> None:
    with pytest.raises(
        UserError, match=rf"tester .* returned {type(reply).__name__}.* in episode 0 \(problem toy/add\)"
    ):
        play(toys, good, lambda observation: reply, sandbox=sandbox, episodes=1)


def test_what_is_not_asked_or_fails_is_never_a_reward_of_0(
    toys: ProblemSet, sandbox: Sandbox, broken_sandbox: Sandbox
) -> None:
    def never(observation: Any) -> str:
        raise AssertionError

    summary = play(toys, lambda observation: "def (", never, sandbox=sandbox, episodes=2)
    assert summary.n_unasked_rounds == 2
    assert summary.tester_reward.n == 0
    assert summary.candidate_validity.mean == 0.0
    games: list[PlayedEpisode] = []
    summary = play(toys, good, asserting, sandbox=broken_sandbox, episodes=2, on_episode=games.append)
    assert (summary.n_rounds, summary.n_masked_rounds) == (2, 2)
    assert isnan(summary.coder_reward.mean)
    assert summary.coder_reward.n == summary.candidate_validity.n == 0
    assert all(game.record.masked for game in games)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_sandbox_that_cannot_be_used_is_not_blamed_on_an_agent(toys: ProblemSet, concurrency: int) -> None:
    with pytest.raises(SandboxError, match="no worker"):
        play(toys, good, asserting, sandbox=Gone(), episodes=2, concurrency=concurrency)


def test_time_is_split_into_agents_judging_and_the_rest_and_is_not_recorded(toys: ProblemSet, sandbox: Sandbox) -> None:
    def slow(observation: Any) -> str:
        time.sleep(0.2)
        return good(observation)

    (game,) = played(toys, slow, sandbox, episodes=1)
    assert 0.2 <= game.time.agents_s < game.time.total_s
    assert 0 < game.time.judging_s < game.time.total_s - game.time.agents_s
    assert game.time.rest_s > 0
    (quick,) = played(toys, good, sandbox, episodes=1)
    assert to_line(game.record) == to_line(quick.record)
    assert TimeSplit(1.0, 2.0, 4.0) + TimeSplit(1.0, 1.0, 3.0) == TimeSplit(2.0, 3.0, 7.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"episodes": each}, "episodes must be a whole number of at least 1, got ") for each in (0, "3", 2.0)),
        *(({"seed": each}, "seed must be a whole number of at least 0, got ") for each in (-1, "0")),
        ({"rules": 5}, "rules must be of type Ruleset, got int"),
        ({"rounds": 0}, "max_cycles must be a whole number from 1"),
        ({"tester_view": "grey"}, "tester_view must be one of"),
        ({"rules": "papr"}, "did you mean 'paper'"),
        *(({"concurrency": each}, "concurrency must be a whole number from 1 to 4096") for each in (0, 4097, 1.5)),
        *(
            ({"reply_timeout_s": each}, "reply_timeout_s must be a number above 0 or None")
            for each in (0, -1.0, nan, "1")
        ),
    ],
)
def test_options_out_of_range_are_refused_in_one_sentence(
    toys: ProblemSet, sandbox: Sandbox, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        play(toys, good, asserting, sandbox=sandbox, **options)


def test_the_black_box_tester_does_not_see_the_program(toys: ProblemSet, sandbox: Sandbox) -> None:
    seen: list[str] = []

    def curious(observation: Any) -> str:
        seen.append(observation["program"])
        return asserting(observation)

    for view in ("white_box", "black_box"):
        play(toys, good, curious, sandbox=sandbox, episodes=1, tester_view=view)
    assert "return a + b" in seen[0]
    assert seen[1] == ""


@pytest.mark.parametrize("concurrency", [1, 2])
def test_what_a_caller_raises_ends_the_run_and_the_agents(toys: ProblemSet, sandbox: Sandbox, concurrency: int) -> None:
    Dice.made.clear()

    def full(game: PlayedEpisode) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        play(toys, Dice, asserting, sandbox=sandbox, episodes=5, on_episode=full, concurrency=concurrency)
    assert {each.closed for each in Dice.made} == {1}


def test_a_notebook_whose_event_loop_is_running_can_play(toys: ProblemSet, sandbox: Sandbox) -> None:
    async def cell() -> int:
        return play(toys, good, asserting, sandbox=sandbox, episodes=2).n_episodes

    assert asyncio.run(cell()) == 2
