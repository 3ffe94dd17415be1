"""One role against a fixed other, as Gymnasium's users see it."""

from __future__ import annotations

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from codea1_env.errors import UnknownName, UserError
from codea1_env.gymnasium_views import CoderEnv, TesterEnv
from tests.support.players import GOOD
from tests.support.toys import LOOKS_RIGHT, RIGHT

SUITE = "assert add(1, 2) == 3\nassert add(-1, -2) == -3"


@pytest.mark.parametrize("view", ["codea1/Coder-v0", "codea1/Tester-v0"])
def test_gymnasium_check_env_passes_without_a_warning(view):
    check_env(gymnasium.make(view, problems="starter", render_mode="ansi").unwrapped)


def test_a_tester_sees_the_opponents_program(toys):
    env = TesterEnv(lambda observation, info: LOOKS_RIGHT, problems=toys)
    observation, _ = env.reset(seed=0, options={"problem_id": "toy/add"})
    assert "abs(a + b)" in observation["program"]
    _, reward, terminated, _, _ = env.step(SUITE)
    assert reward == pytest.approx(0.5 * 1 / 8 + 0.5 * 1 / 8)
    assert terminated


def test_a_repair_game_returns_one_reward_per_round_of_an_invalid_program_too(toys):
    env = CoderEnv(lambda observation: SUITE, problems=toys, max_cycles=3)
    env.reset(seed=0, options={"problem_id": "toy/add"})
    assert env.step(LOOKS_RIGHT)[1:3] == (0.5, False)
    observation, reward, terminated, _, _ = env.step("def add(")
    assert (reward, terminated) == (0.0, False)
    assert "invalid" in observation["feedback"]
    assert env.step(RIGHT)[1:3] == (1.0, True)
    with pytest.raises(UserError, match=r"the episode has ended; call reset\(\) to begin another"):
        env.step(RIGHT)


def test_a_tester_view_always_has_the_testers_turn(toys):
    env = TesterEnv(lambda observation: "not python (", problems=toys)
    _, info = env.reset(seed=0)
    assert info["role"] == "tester"
    assert env.step(SUITE)[1:3] == (0.0, True)
    with pytest.raises(UserError, match="skip_invalid"):
        TesterEnv(problems=toys, skip_invalid=True)


VECTOR = {"num_envs": 2, "opponent": "examples", "problems": "starter"}


@pytest.mark.parametrize(
    "mode", [{}, {"vectorization_mode": "async", "vector_kwargs": {"shared_memory": False}}], ids=["sync", "async"]
)
def test_vector_environments_carry_text(mode):
    envs = gymnasium.make_vec("codea1/Coder-v0", **mode, **VECTOR)
    try:
        observations, _ = envs.reset(seed=3)
        first = observations["problem"]
        assert all("def " in text for text in first)
        observations, rewards, terminations, _, _ = envs.step(("pass", "pass"))
        assert terminations.all()
        assert rewards.tolist() == [0.0, 0.0]
        observations, *_ = envs.step(("pass", "pass"))
        assert all("def " in text for text in observations["problem"])
        assert observations["problem"] != first
    finally:
        envs.close()


def test_asynchronous_vectors_of_text_are_refused_with_shared_memory():
    with pytest.raises(UserError, match="shared_memory=False"):
        gymnasium.make_vec("codea1/Coder-v0", vectorization_mode="async", **VECTOR)


def test_a_view_without_infos_keeps_them_for_its_opponent(toys):
    seen = []

    def tester(observation, info):
        seen.append(info)
        return SUITE

    env = CoderEnv(tester, problems=toys, infos=False)
    assert env.reset(seed=0)[1] == {}
    program = GOOD[env.reset(seed=0)[0]["entry_point"]]
    assert env.step(program)[4] == {}
    assert seen[0]["problem_id"]


def test_wrong_opponents_are_named():
    with pytest.raises(UserError, match="agent 'mutant' is a coder, not a tester"):
        CoderEnv("mutant", problems="starter")
    with pytest.raises(UnknownName, match="did you mean 'fuzz'"):
        CoderEnv("fuz", problems="starter")
    with pytest.raises(UserError, match="unknown option 'strong'"):
        TesterEnv("mutant,strong=1", problems="starter")
