"""Which module plays which agent of a group."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo import GRPOConfig
from codea1_agents.train.grpo.mapping import ByRole, modules_by_role
from codea1_env.errors import UserError


def test_by_default_each_role_has_the_module_of_its_name() -> None:
    config = GRPOConfig().llm_agents(coder="a", tester="b")
    assert config.policy_mapping_fn("coder_3", None) == "coder"
    assert config.policy_mapping_fn("tester_2_1", None) == "tester"
    assert config.settings().module_by_role == {"coder": "coder", "tester": "tester"}


def test_a_shared_model_plays_both_and_an_agent_is_no_module() -> None:
    assert GRPOConfig().llm_agents(shared="a").policy_mapping_fn("tester_0_0", None) == "shared"
    against = GRPOConfig().llm_agents(coder="a").agents(tester="fuzz")
    assert against.settings().module_by_role == {"coder": "coder"}


def one_for_all(agent_id: str, episode: Any, **_: Any) -> str:
    return "coder"


def test_a_mapping_of_the_users_stays_whatever_is_set_before_or_after() -> None:
    for config in (
        GRPOConfig().multi_agent(policy_mapping_fn=one_for_all).llm_agents(coder="a"),
        GRPOConfig().llm_agents(coder="a").multi_agent(policy_mapping_fn=one_for_all),
    ):
        config.validate()
        assert config.policy_mapping_fn is one_for_all
        assert config.settings().module_by_role == {"coder": "coder", "tester": "coder"}


@pytest.mark.parametrize(("n_suites", "odd"), [(4, "coder_5"), (4, "tester_5_3"), (4, "tester_0_1")])
def test_a_mapping_that_splits_a_group_is_refused_with_the_reason(n_suites: int, odd: str) -> None:
    def split(agent_id: str, _: Any) -> str:
        return "other" if agent_id == odd else agent_id.partition("_")[0]

    with pytest.raises(
        UserError, match=rf"policy_mapping_fn: .* and {odd} is 'other'; an advantage compares the replies"
    ):
        modules_by_role(split, ("coder", "tester", "other"), 6, n_suites)


def test_a_module_that_there_is_not_is_refused() -> None:
    config = GRPOConfig().llm_agents(coder="a", tester="b").multi_agent(policy_mapping_fn=lambda *_, **__: "default")
    with pytest.raises(UserError, match="'default'"):
        config.validate()


def test_mappings_by_role_compare() -> None:
    assert ByRole({"coder": "one"}) == ByRole({"coder": "one"}) != ByRole()


@pytest.mark.ray
@pytest.mark.filterwarnings("default")  # Ray's own
@pytest.mark.usefixtures("cluster")
def test_a_mapping_of_the_users_trains_one_model_in_both_roles(phrase_folders: dict[str, str], increments: str) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    algorithm = (
        GRPOConfig()
        .problems(increments)
        .llm_agents(coder=phrase_folders["coder"])
        .multi_agent(policy_mapping_fn=one_for_all)
        .training(n_candidates=6, n_suites=4, problems_per_step=3, max_tokens={"coder": 2, "tester": 2})
        .build_algo()
    )
    try:
        algorithm.train()
        n_trained = {
            "coder": sum(int(tree.coder.is_trained.sum()) for tree in algorithm.last_trees),
            "tester": sum(int(tree.tester.is_trained[tree.kept].sum()) for tree in algorithm.last_trees),
        }
        assert min(n_trained.values()) > 0
        assert algorithm.last_step.n_trained == {"coder": sum(n_trained.values())}
    finally:
        algorithm.stop()
