"""How often a run starts again, and what its folder says about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codea1_agents.train.failures import LearnersFailed
from codea1_agents.train.loop import TrainingConfig
from codea1_agents.train.loop.folder import TrainingFolder, read_metrics, read_restarts
from codea1_agents.train.loop.loop import Restarts

DIED = "the learner of rank 1 died"
LOST = RuntimeError(DIED)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[TrainingFolder]:
    with TrainingFolder.create(tmp_path / "run", TrainingConfig(), {}) as folder:
        yield folder


def take_steps(folder: TrainingFolder, first: int, last: int, *, saved: bool) -> None:
    for step in range(first, last + 1):
        folder.append({"step": step})
    if saved:
        folder.save(last, lambda place: (place / "state").write_text("x"), lambda: b"", keep=0)


def test_a_run_starts_again_from_its_checkpoint_or_from_its_first_step(folder: TrainingFolder) -> None:
    notes: list[str] = []
    restarts = Restarts(3, folder, notes.append)
    restarts.prepare(LOST)
    take_steps(folder, 1, 2, saved=True)
    take_steps(folder, 3, 4, saved=False)
    restarts.prepare(LOST)
    assert notes == [
        f"step 1: {DIED}; starting again from the first step (restart 1 of 3)",
        f"step 5: {DIED}; starting again from the checkpoint of step 2 (restart 1 of 3)",
    ]
    assert [line["step"] for line in read_metrics(folder.path)] == [1, 2]
    assert read_restarts(folder.path)[1] == {"step": 5, "fault": str(LOST), "from": 2}


def test_it_starts_again_as_often_as_allowed_without_a_new_checkpoint(folder: TrainingFolder) -> None:
    with pytest.raises(LearnersFailed, match=f"^step 1: {DIED}; there is no checkpoint yet; continue"):
        Restarts(0, folder, lambda _: None).prepare(LOST)
    assert read_restarts(folder.path) == []
    restarts = Restarts(2, folder, lambda _: None)
    for last in (1, 2):
        take_steps(folder, last, last, saved=True)
        restarts.prepare(LOST)
        restarts.prepare(LOST)
    said = f"^step 3: {DIED}; restart 2 of 2 brought no new checkpoint; the checkpoint of step 2"
    with pytest.raises(LearnersFailed, match=said):
        restarts.prepare(LOST)
    assert len(read_restarts(folder.path)) == 4
