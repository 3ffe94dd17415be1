"""A configuration that most tests of GRPO train with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.grpo import Place, tiny_config


@pytest.fixture
def config(phrase_folders: dict[str, str], increments: str) -> Any:
    return tiny_config(phrase_folders, increments)


@pytest.fixture
def learnt(monkeypatch: pytest.MonkeyPatch) -> dict[Place, float]:
    """Advantages in the batches that learners of this process get."""
    from codea1_agents.train.grpo import learner
    from codea1_agents.train.grpo.batch import Column

    found: dict[Place, float] = {}
    whole = learner.padded_batch

    def recording(responses: Any) -> Any:
        batch = whole(responses)
        advantages = batch[Column.ADVANTAGES][:, 0].tolist()
        found.update({(r.problem_id, r.agent): a for r, a in zip(responses, advantages, strict=True)})
        return batch

    monkeypatch.setattr(learner, "padded_batch", recording)
    return found
