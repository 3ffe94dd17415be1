from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codea1_agents.adapters import verl as adapter
from codea1_env import Referee, load_problems
from codea1_env.errors import UserError
from tests.support.language_models import phrase_tokenizer

SOURCE = "starter"
PROBLEM = load_problems(SOURCE)[0]
REPLIES = [f"```python\n{PROBLEM.solution}\n```", "nothing"]


def read(path: Path) -> list[dict[str, Any]]:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    return list(parquet.read_table(path).to_pylist())


def scored(rows: list[dict[str, Any]], replies: list[str], rules: str) -> list[dict[str, Any]]:
    return adapter.compute_score(
        [row["data_source"] for row in rows],
        replies,
        [row["reward_model"]["ground_truth"] for row in rows],
        [row["extra_info"] for row in rows],
        problems=SOURCE,
        rules=rules,
    )


def test_rows_go_through_parquet_to_scores_of_one_batch(tmp_path):
    assert adapter.write_parquet(tmp_path / "coder.parquet", "coder", [PROBLEM]) == 1
    rows = read(tmp_path / "coder.parquet") * 2
    assert rows[0]["prompt"][-1]["role"] == "user"
    assert PROBLEM.solution not in str(rows)
    found = scored(rows, REPLIES, "golden")
    assert [each["score"] for each in found] == [1.0, 0.0]
    assert [each["masked"] for each in found] == [0, 0]


def test_both_roles_may_be_in_one_batch(tmp_path):
    adapter.write_parquet(tmp_path / "tester.parquet", "tester", [PROBLEM])
    adapter.write_parquet(tmp_path / "coder.parquet", "coder", [PROBLEM], against={PROBLEM.id: [PROBLEM.examples[0]]})
    rows = [read(tmp_path / "tester.parquet")[0], read(tmp_path / "coder.parquet")[0]]
    found = scored(rows, ["nothing", REPLIES[0]], "fixed")
    assert [each["score"] for each in found] == [0.0, 1.0]


def test_rows_of_another_data_set_are_refused():
    with pytest.raises(UserError, match="extra_info, which write_parquet makes, needs 'role', got 'split'"):
        adapter.compute_score([""], ["x"], [PROBLEM.id], [{"split": "train"}], problems=SOURCE, rules="golden")


RELEASE_ROW = {
    "data_source": "kodcode_light",
    "clean_description": "Return the double of a number.",
    "GT_code": "def double(x):\n    return 2 * x\n",
    "GT_test": ["from solution import double\n\ndef test_two():\n    assert double(2) == 4\n"],
    "extra_info": {"question_id": "kod/1", "function_name": "double"},
}


def test_the_releases_rows_go_through(tmp_path):
    source = tmp_path / "release.jsonl"
    source.write_text(json.dumps(RELEASE_ROW))
    adapter.write_parquet(tmp_path / "coder.parquet", "coder", source)
    (row,) = read(tmp_path / "coder.parquet")
    replies, ids, infos = [RELEASE_ROW["GT_code"]], [row["reward_model"]["ground_truth"]], [row["extra_info"]]
    (found,) = adapter.compute_score([""], replies, ids, infos, problems=str(source), rules="golden")
    assert found["score"] == 1.0


@pytest.fixture
def proto() -> Any:
    """Two rows as verl's agent loop hands them to a reward manager, and their tokenizer."""
    pytest.importorskip("verl", reason="verl is not installed (its own environment: make adapters-test)")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from verl import DataProto

    tokenizer = phrase_tokenizer(REPLIES)
    replies = torch.tensor([[3, 2, 2], [4, 1, 2]])  # a word, the end, padding
    prompts = torch.zeros(2, 4, dtype=torch.long)
    mask = torch.cat([torch.ones(2, 4, dtype=torch.long), torch.tensor([[1, 0, 0], [1, 1, 0]])], dim=1)
    batch = DataProto.from_single_dict(
        {
            "prompts": prompts,
            "responses": replies,
            "attention_mask": mask,
            "data_source": np.array(["codea1-env"] * 2, dtype=object),
            "reward_model": np.array([{"ground_truth": PROBLEM.id}] * 2, dtype=object),
            "extra_info": np.array([{"role": "coder", "given": ""}] * 2, dtype=object),
        }
    )
    return batch, tokenizer


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of verl and what it imports
def test_the_reward_manager_of_verl_judges_the_rows_of_its_loop(proto):
    batch, tokenizer = proto
    omegaconf = pytest.importorskip("omegaconf")
    from verl.trainer.ppo.reward import load_reward_manager

    module = {"path": "pkg://codea1_agents.adapters.verl"}
    config = omegaconf.OmegaConf.create(
        {
            "reward": {
                "reward_manager": {"source": "importlib", "name": "RewardManager", "module": module},
                "reward_kwargs": {"codea1": {"problems": SOURCE, "rules": "golden"}},
            }
        }
    )

    async def judged() -> list[dict[str, Any]]:
        manager = load_reward_manager(config, tokenizer, reward_router_address=None)
        return await asyncio.gather(*(manager.run_single(batch[n : n + 1]) for n in range(2)))

    found = asyncio.run(judged())
    assert [each["reward_score"] for each in found] == [1.0, 0.0]
    assert [each["reward_extra_info"]["masked"] for each in found] == [0, 0]


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of verl and what it imports
def test_the_batch_manager_of_verl_takes_the_function(proto):
    batch, tokenizer = proto
    from verl.workers.reward_manager import BatchRewardManager

    manager = BatchRewardManager(tokenizer, 0, adapter.compute_score, problems=SOURCE, rules="golden")
    found = manager(batch, return_dict=True)
    assert found["reward_tensor"].tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert found["reward_extra_info"]["masked"] == [0, 0]


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of verl and what it imports
def test_masked_rows_are_dropped_from_a_batch(proto):
    batch, _ = proto
    with pytest.raises(UserError, match="lacks the column 'masked'"):
        adapter.without_masked(batch)
    batch.non_tensor_batch["masked"] = np.array([1, 0])
    kept = adapter.without_masked(batch)
    assert kept.batch["responses"].tolist() == [[4, 1, 2]]


def test_a_masked_reply_scores_zero_and_says_so(broken_sandbox, monkeypatch):
    monkeypatch.setattr(adapter, "named_referee", lambda *_: Referee([PROBLEM], "golden", sandbox=broken_sandbox))
    info = {"role": "coder", "given": ""}
    (found,) = adapter.compute_score([""], [REPLIES[0]], [PROBLEM.id], [info], problems="", rules="")
    assert (found["score"], found["masked"]) == (0.0, 1)
    assert found["masked_because"]
