"""Who plays which agent, and where runners and learners compute: what is refused, and what Ray makes of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.train.sizing.run_size import Process, place
from codea1_env.errors import UserError
from tests.support.command_line import run_python
from tests.support.grpo import ON_RAY, built, distance, tiny_config, weights_of

pytest.importorskip("ray", reason="Ray is not installed")
from codea1_agents.train.grpo import GRPOConfig, ModelSettings
from codea1_agents.train.grpo.config import ByRole, modules_by_role

pytestmark = ON_RAY


@pytest.fixture
def colocated(phrase_folders: dict[str, str], increments: str) -> GRPOConfig:
    made: GRPOConfig = tiny_config(phrase_folders, increments).learners(
        placement="colocated", num_learners=1, num_cpus_per_learner=0.5
    )
    return made.env_runners(num_env_runners=1, num_cpus_per_env_runner=0.5)


def with_shares(config: GRPOConfig, runner: float, learner: float) -> GRPOConfig:
    made: GRPOConfig = config.copy(copy_frozen=False).env_runners(num_gpus_per_env_runner=runner)
    return made.learners(num_gpus_per_learner=learner)


def test_only_what_can_share_is_accepted(colocated: GRPOConfig) -> None:
    colocated.validate()
    with_shares(colocated, 0.6, 0.4).validate()
    for runner, learner in ((0.5, 0.5), (0.6, 0.5), (1, 0), (0, 0.4), (1, 1)):
        with pytest.raises(UserError, match="a runner needs more than half of a GPU"):
            with_shares(colocated, runner, learner).validate()
    with pytest.raises(UserError, match="as many remote runners as remote learners"):
        colocated.copy(copy_frozen=False).env_runners(num_env_runners=2).validate()
    with pytest.raises(UserError, match="overlap must be 0"):
        colocated.copy(copy_frozen=False).training(overlap=1).validate()
    with pytest.raises(UserError, match="placement should be 'separate' or 'colocated', got 'colocate'"):
        colocated.copy(copy_frozen=False).learners(placement="colocate").validate()
    plain = colocated.learners(placement="separate", num_learners=0).env_runners(num_env_runners=0)
    with pytest.raises(UserError, match="overlap: it needs remote runners"):
        plain.training(overlap=1).validate()


def test_an_engine_of_several_gpus_needs_them(phrase_folders: dict[str, str], increments: str) -> None:
    model = ModelSettings(phrase_folders["coder"], rollout_engine="vllm", engine_options={"tensor_parallel_size": 2})
    config = tiny_config({**phrase_folders, "coder": model}, increments)
    with pytest.raises(UserError, match="coder: tensor_parallel_size=2 needs as many GPUs per runner"):
        config.validate()
    config.env_runners(num_env_runners=1, num_gpus_per_env_runner=2).validate()


PAIRS = """
import json
import ray

@ray.remote
class Held:
    def gpus(self):
        return [int(number) for number in ray.get_gpu_ids()]

def started(n, share):
    made = [Held.options(num_gpus=share, num_cpus=1).remote() for _ in range(n)]
    return made, ray.get([each.gpus.remote() for each in made])

ray.init("local", num_cpus=8, num_gpus=4, include_dashboard=False, log_to_driver=False)
runners, of_runners = started(4, 0.6)
_, of_learners = started(4, 0.4)
ray.kill(runners[1])
_, again = started(1, 0.6)
print(json.dumps([of_runners, of_learners, again]))
"""


@pytest.mark.slow
def test_ray_puts_one_runner_and_one_learner_on_each_gpu(tmp_path: Path) -> None:
    """Processes as RLlib starts them, runners first, and one that is lost; the arithmetic of the dry run agrees."""
    of_runners, of_learners, again = json.loads(run_python("-c", PAIRS, folder=tmp_path).splitlines()[-1])
    assert sorted(of_runners) == sorted(of_learners) == [[0], [1], [2], [3]]
    assert again == [of_runners[1]]

    processes = [Process("runner", n, 0.6, False, ()) for n in range(4)]
    found = place([*processes, *(Process("learner", n, 0.4, False, ()) for n in range(4))], 4)
    assert [sorted(each.kind for each in held) for held in found.by_gpu] == [["learner", "runner"]] * 4


def test_engines_sleep_while_the_learner_works(colocated: GRPOConfig) -> None:
    """And nothing else changes: the updates are those of a run in one process."""
    with built(colocated.copy(copy_frozen=False)) as algorithm:
        algorithm.env_runner_group.foreach_env_runner(_record, local_env_runner=False)
        for _ in range(2):
            algorithm.train()
        algorithm.sync_runners()
        (calls,) = algorithm.env_runner_group.foreach_env_runner(lambda runner: runner.calls, local_env_runner=False)
        weights = weights_of(algorithm)
    assert calls == ["load", "sample", "sleep", "wake", "load", "sample", "sleep", "wake", "load"]
    plain = colocated.learners(placement="separate", num_learners=0)
    with built(plain.env_runners(num_env_runners=0)) as alone:
        for _ in range(2):
            alone.train()
        assert distance(weights_of(alone), weights) < 1e-6


def _record(runner: Any) -> None:
    """Write down what happens to the coder's engine, without repetitions."""
    engine, runner.calls = runner.engines["coder"], []

    def recorded(name: str, method: Any) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            runner.calls += [name] if runner.calls[-1:] != [name] else []
            return method(*args, **named)

        return call

    for name, method in (("load", "load_weights"), ("sample", "sample"), ("sleep", "sleep"), ("wake", "wake")):
        setattr(engine, method, recorded(name, getattr(engine, method)))


def test_by_default_each_role_has_the_module_of_its_name_and_a_shared_model_plays_both() -> None:
    config = GRPOConfig().llm_agents(coder="a", tester="b")
    assert config.policy_mapping_fn("coder_3", None) == "coder"
    assert config.policy_mapping_fn("tester_2_1", None) == "tester"
    assert config.settings().module_by_role == {"coder": "coder", "tester": "tester"}
    assert GRPOConfig().llm_agents(shared="a").policy_mapping_fn("tester_0_0", None) == "shared"
    against = GRPOConfig().llm_agents(coder="a").agents(tester="fuzz")
    assert against.settings().module_by_role == {"coder": "coder"}
    assert ByRole({"coder": "one"}) == ByRole({"coder": "one"}) != ByRole()


def one_for_all(agent_id: str, episode: Any, **_: Any) -> str:
    return "coder"


def test_a_mapping_of_the_users_stays_whatever_is_set_before_or_after() -> None:
    for config in (
        GRPOConfig().problems("starter").multi_agent(policy_mapping_fn=one_for_all).llm_agents(coder="a"),
        GRPOConfig().problems("starter").llm_agents(coder="a").multi_agent(policy_mapping_fn=one_for_all),
    ):
        config.validate()
        assert config.policy_mapping_fn is one_for_all
        assert config.settings().module_by_role == {"coder": "coder", "tester": "coder"}


@pytest.mark.parametrize(("n_suites", "odd"), [(4, "coder_5"), (4, "tester_5_3"), (4, "tester_0_1")])
def test_a_mapping_that_splits_a_group_or_to_no_module_is_refused_with_the_reason(n_suites: int, odd: str) -> None:
    def split(agent_id: str, _: Any) -> str:
        return "other" if agent_id == odd else agent_id.partition("_")[0]

    said = rf"policy_mapping_fn: .* and {odd} is 'other'; an advantage compares the replies"
    with pytest.raises(UserError, match=said):
        modules_by_role(split, ("coder", "tester", "other"), 6, n_suites)
    config = GRPOConfig().problems("starter").llm_agents(coder="a", tester="b")
    with pytest.raises(UserError, match="'default'"):
        config.multi_agent(policy_mapping_fn=lambda *_, **__: "default").validate()


def test_a_mapping_of_the_users_trains_one_model_in_both_roles(phrase_folders: dict[str, str], increments: str) -> None:
    config = tiny_config({"coder": phrase_folders["coder"]}, increments).training(problems_per_step=3)
    with built(config.multi_agent(policy_mapping_fn=one_for_all)) as algorithm:
        algorithm.train()
        of_coder = sum(int(tree.coder.is_trained.sum()) for tree in algorithm.last_trees)
        of_tester = sum(int(tree.tester.is_trained[tree.kept].sum()) for tree in algorithm.last_trees)
        assert min(of_coder, of_tester) > 0
        assert algorithm.last_step.n_trained == {"coder": of_coder + of_tester}
