"""Runs in which models, problems or the sandbox do their worst: nothing is scored that is not the players' doing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support.grpo import ON_RAY, built, distance, weights_of
from tests.support.language_models import PHRASES, PROGRAMS, phrase_folder
from tests.support.processes import command_of, descendants

pytest.importorskip("ray", reason="Ray is not installed")
from codea1_agents.train.grpo import GRPOConfig
from codea1_env.errors import SandboxError, UserError
from codea1_env.sandbox import Job, JobReport, load_sandbox
from tests.support.sandboxes import Wrapper

pytestmark = ON_RAY

CODE, SUITES = PHRASES[: len(PROGRAMS)], PHRASES[len(PROGRAMS) : -1]


def speaking(config: GRPOConfig, folder: Path, coder: Sequence[str], tester: Sequence[str]) -> GRPOConfig:
    """Models that can say nothing else."""
    return config.llm_agents(
        coder=phrase_folder(folder / "coder", coder, 0), tester=phrase_folder(folder / "tester", tester, 1)
    )


def test_empty_replies_are_the_players_doing_and_teach_nothing(config: GRPOConfig, tmp_path: Path) -> None:
    """No step is made at all: not even one of the divergence alone, nor of the weight decay."""
    config.training(kl_coeff=1.0, weight_decay=0.5)
    with built(speaking(config, tmp_path, [], [])) as algorithm:
        before = weights_of(algorithm)
        result = algorithm.train()
        for tree in algorithm.last_trees:
            assert {answer.text for answer in tree.candidates} == {""}
            assert len(set(tree.coder_rewards.tolist())) == 1  # not masked: nan is equal to nothing
            assert not tree.coder.is_trained.any()
        assert result["env_runners"]["valid_candidates"] == 0
        assert result["responses_trained"] == 0
        assert distance(before, weights_of(algorithm)) == 0.0
        assert algorithm.learner_group._learner._weights_seq_no == 0  # nor does the learning rate move on


def test_all_candidates_invalid_means_no_tester_is_asked(config: GRPOConfig, tmp_path: Path) -> None:
    with built(speaking(config, tmp_path, ["no program", CODE[4]], SUITES)) as algorithm:
        result = algorithm.train()
        assert all(not any(tree.suites) for tree in algorithm.last_trees)
        assert result["env_runners"]["valid_candidates"] == 0
        assert not result["learners"]["tester"]
        assert result["num_env_steps_sampled_lifetime"] == 4 * 6


def test_cut_replies_are_read_as_far_as_they_go_and_counted(config: GRPOConfig) -> None:
    config.training(max_tokens={"coder": 1, "tester": 1})
    with built(config) as algorithm:
        figures = algorithm.train()["env_runners"]
        assert figures["coder_cut_share"] > 0.8
        assert figures["coder_tokens"] == 1
        assert figures["valid_candidates"] > 0  # a whole program in one token


def test_d21_each_role_is_read_with_its_own_tokenizer(config: GRPOConfig, tmp_path: Path) -> None:
    """The vocabularies differ in size, and the same number means a program to one and a suite to the other."""
    with built(speaking(config, tmp_path, CODE, SUITES[:3])) as algorithm:
        for _ in range(2):
            algorithm.train()
        ids: dict[str, set[int]] = {"coder": set(), "tester": set()}
        for tree in algorithm.env_runner.roll_out([each.task for each in algorithm.last_trees]).trees:
            for role, answers in (("coder", tree.candidates), ("tester", [a for group in tree.suites for a in group])):
                phrases = CODE if role == "coder" else SUITES[:3]
                for answer in answers:
                    ids[role].update(answer.response.tokens)
                    expected = [phrases[token - 3] for token in answer.response.tokens if token >= 3]
                    assert answer.text == " ".join(expected)
        assert ids["coder"] & ids["tester"] - {0, 1, 2}


def test_a_problem_longer_than_the_context_is_skipped_with_its_reason(
    config: GRPOConfig, model_folder: str, increments: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short, long, _ = Path(increments).read_text().splitlines()
    (tmp_path / "some.jsonl").write_text(f"{short}\n{long.replace('Return', 'long ' * 2000)}\n")
    config.problems(str(tmp_path / "some.jsonl"))
    config.llm_agents(coder=model_folder).agents(tester="examples")
    config.training(problems_per_step=2, n_candidates=2, n_suites=2, max_tokens={"coder": 3, "tester": 3})
    with built(config) as algorithm:
        result = algorithm.train()
        of_short, of_long = sorted(algorithm.last_trees, key=lambda tree: tree.task.problem_id)
        assert np.isnan(of_long.coder_rewards).all()
        assert not np.isnan(of_short.coder_rewards).any()
        assert result["problems_skipped"] == 1
        assert "toy/1" in caplog.text
        assert "do not fit a context of 4096" in caplog.text or "the longest allowed is 4096" in caplog.text
        assert algorithm.train()["training_iteration"] == 2  # and the run goes on


def test_a_tester_that_cannot_be_asked_costs_the_coder_nothing(config: GRPOConfig) -> None:
    config.training(max_prompt_tokens={"coder": 4096, "tester": 0})
    with built(config) as algorithm:
        result = algorithm.train()
        was_asked = [bool(group) for tree in algorithm.last_trees for group in tree.suites]
        assert any(was_asked)
        assert [np.isnan(reward) for tree in algorithm.last_trees for reward in tree.coder_rewards] == was_asked
        assert not result["learners"]["tester"]
        assert result["problems_skipped"] > 0


def test_no_problems_are_refused_before_anything_starts(config: GRPOConfig, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(UserError, match=r"none\.jsonl"):
        config.problems(str(tmp_path / "none.jsonl")).build_algo()


class Gone(Wrapper):
    """A sandbox that may not be there."""

    is_there = True

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        if not self.is_there:
            raise SandboxError("the machine behind it is gone")
        return super().run(jobs)


GONE = Gone(load_sandbox("local"))


def test_what_a_dead_sandbox_leaves_open_is_masked_and_never_zero(config: GRPOConfig) -> None:
    config.environment(sandbox=f"{__name__}:GONE")
    with built(config) as algorithm:
        before = weights_of(algorithm)
        GONE.is_there = False
        result = algorithm.train()
        for tree in algorithm.last_trees:
            assert np.isnan(tree.coder_rewards).all()
            assert np.isnan(tree.tester_rewards).all()
            assert not tree.coder.is_trained.any()
        assert result["responses_trained"] == 0
        assert result["env_runners"]["masked_share"] == 1
        assert distance(before, weights_of(algorithm)) == 0.0
        GONE.is_there = True
        assert algorithm.train()["responses_trained"] > 0


def test_a_sandbox_killed_under_way_changes_no_reward(config: GRPOConfig) -> None:
    """Its own retries make good for it; where they could not, the groups would be masked."""
    with built(config) as algorithm:
        algorithm.train()
        expected = [tree.coder_rewards for tree in algorithm.last_trees]
    with built(config) as algorithm:
        doomed = {pid for pid in descendants() if "codea1_env/sandbox" in command_of(pid)}
        assert doomed
        killer = threading.Timer(0.05, lambda: [os.kill(pid, signal.SIGKILL) for pid in doomed])
        killer.start()
        algorithm.train()
        killer.join()
        for tree, rewards in zip(algorithm.last_trees, expected, strict=True):
            known = ~np.isnan(tree.coder_rewards)
            assert tree.coder_rewards[known] == pytest.approx(rewards[known])
