"""A run whose learners hold parts of the models gives the same as one that learns in the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.grpo import ON_RAY

pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from codea1_agents.train.loop import export_model, load_training, resume, train  # noqa: E402
from codea1_agents.train.loop.folder import last_checkpoint  # noqa: E402
from codea1_env.errors import BrokenInput, UserError  # noqa: E402
from tests.codea1_agents.train.loop.conftest import weights_in  # noqa: E402

pytestmark = ON_RAY


def test_a_sharded_run_is_continued_and_exported(settings: dict[str, Any], tmp_path: Path) -> None:
    settings["run"]["steps"] = 3
    whole = train(load_training(settings), out=tmp_path / "whole")
    settings["run"]["steps"] = 2
    settings["cluster"] |= {"learners": 2, "cpus_per_learner": 0.5, "sharding": "full"}
    first = train(load_training(settings), out=tmp_path / "sharded")
    done = resume(first.folder, ["run.steps=3"])
    for line, expected in zip(done.lines, whole.lines, strict=True):
        assert line["figures"] == pytest.approx(expected["figures"], rel=1e-3, abs=1e-4)
    for role in ("coder", "tester"):
        exported = export_model(done.folder, role, tmp_path / role)
        for found in (done.models[role], exported):
            own, other = weights_in(found), weights_in(whole.models[role])
            assert own.keys() == other.keys()
            assert max(float((own[name] - other[name]).abs().max()) for name in own) < 1e-5
    with pytest.raises(UserError, match=r"cannot be continued with these learners: set cluster\.sharding=full"):
        resume(done.folder, ["run.steps=4", "cluster.sharding=none"])
    checkpoint = last_checkpoint(done.folder)
    assert checkpoint is not None
    for part in (checkpoint / "learner_group" / "shards").glob("*.distcp"):
        part.write_bytes(part.read_bytes()[:2000])
    with pytest.raises(
        BrokenInput, match=r"shards/.*\.distcp: .* cannot be restored; without its folder the run continues"
    ):
        resume(done.folder, ["run.steps=4", "cluster.sharding=full"])
    assert not (done.folder / "restarts.jsonl").exists()
