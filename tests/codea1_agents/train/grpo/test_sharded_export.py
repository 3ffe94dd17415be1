"""Weights of sharded learners are exported without a whole copy in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.language_models import phrase_folder

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("ray", reason="Ray is not installed")
from codea1_agents.train.grpo.causal_models import load_causal_model, untied  # noqa: E402
from codea1_agents.train.grpo.learner_group import whole_state  # noqa: E402
from codea1_agents.train.grpo.rl_module import export_state  # noqa: E402
from codea1_agents.train.grpo.settings import ModelSettings  # noqa: E402

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore:torch.distributed is disabled")]

EXPORT = """
import resource, sys
from pathlib import Path
from codea1_agents.train.grpo.settings import ModelSettings
from codea1_agents.train.grpo.rl_module import export_state
from codea1_agents.train.grpo.learner_group import whole_state

folder, shards, out, most = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
export_state(ModelSettings(folder), whole_state(shards, "coder", shards), out + "-first", file_size="4MB")  # imports
(used,) = [int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmData" in line]
resource.setrlimit(resource.RLIMIT_DATA, (used * 1024 + most, used * 1024 + most))
export_state(ModelSettings(folder), whole_state(shards, "coder", shards), out, file_size="4MB")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of some 50 MB."""
    shape = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 3, "max_position_embeddings": 128}
    return phrase_folder(tmp_path_factory.mktemp("models") / "large", [*"abcdefg"], tie_word_embeddings=True, **shape)


@pytest.fixture(scope="module")
def shards(folder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a learner wrote, with other weights than those of the folder."""
    import torch.distributed.checkpoint as dcp

    model, place = load_causal_model(folder), tmp_path_factory.mktemp("shards")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    dcp.save({"models": {"coder": untied(model)}}, checkpoint_id=place, no_dist=True)
    return place


@pytest.mark.long
def test_the_export_holds_one_file_in_memory_at_a_time(folder: str, shards: Path, tmp_path: Path) -> None:
    n_bytes = sum(4 * each.numel() for each in untied(load_causal_model(folder)).values())
    command = [sys.executable, "-c", EXPORT, folder, str(shards), str(tmp_path / "out"), str(n_bytes // 2)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "agents")])}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    found, expected = load_causal_model(str(tmp_path / "out")), load_causal_model(folder)
    assert len(list((tmp_path / "out").glob("model-*.safetensors"))) > 3
    for name, tensor in untied(expected).items():
        assert torch.equal(untied(found)[name], tensor + 1), name
    written = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert written == json.loads((Path(folder) / "generation_config.json").read_text())


def test_weights_of_another_model_are_refused(folder: str, shards: Path, tmp_path: Path) -> None:
    state = whole_state(shards, "coder")
    name = next(iter(state))
    with pytest.raises(ValueError, match=f"weights of another model: {name} and others differ"):
        export_state(ModelSettings(folder), {**state, name: state[name][:1]}, tmp_path / "out")
    with pytest.raises(KeyError, match="tester"):
        whole_state(shards, "tester")
