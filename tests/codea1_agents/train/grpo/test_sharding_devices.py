"""Which device holds what of sharded models, and what learners exchange: by PyTorch's tensors without memory.

The processes have no GPU. Tensors say which device they are on and hold nothing, and so the process group exchanges
nothing. It records what it would: NCCL, that of RLlib's learners on GPUs, exchanges tensors of GPUs only.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.command_line import run_python

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

pytestmark = pytest.mark.models

SECOND_OF_FOUR = """
import contextlib, json, sys
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from codea1_agents.train.grpo import causal_models
from codea1_agents.train.grpo.causal_models import Abilities, ResponsePass, TokenFigures

class Nothing:
    def __init__(self, *_, **__): pass
    def __getattr__(self, name): return Nothing

torch.cuda.Stream = torch.cuda.Event = torch.cuda.current_stream = Nothing
torch.cuda.stream = lambda _: contextlib.nullcontext()
torch.cuda.current_device = lambda: 0
torch.cuda.get_device_capability = lambda *_: (8, 0)

class Layer(nn.Linear):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.register_buffer("scale", torch.ones(6), persistent=False)
    def forward(self, states):
        return super().forward(states * self.scale)

class Model(nn.Sequential):
    _no_split_modules = ["Layer"]

def empty():
    with torch.device("meta"):
        return [Model(Layer(6, 6), Layer(6, 6), nn.Linear(6, 5))]

exchanged = set()

class Exchanged(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "c10d" in func.namespace:
            found = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
            exchanged.update((func.name().split("::")[1], each.device.type) for each in found)
        return func(*args, **(kwargs or {}))

class WithoutGPU(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.copy_:
            return args[0]  # there is nothing to copy, and PyTorch would call the driver
        if func is torch.Tensor.to and "cuda" in args[1:]:
            args = (args[0], "cuda:0")  # PyTorch would look for the present GPU
        return func(*args, **(kwargs or {}))

ResponsePass.forward = lambda self, batch: TokenFigures(self.model(batch["states"]), batch["states"])
torch.distributed.broadcast_object_list = lambda objects, src: objects[0].append(Abilities(*[False] * 4))
torch.distributed.init_process_group("fake", rank=1, world_size=4, store=FakeStore())
mesh = torch.distributed.init_device_mesh("cuda", (4,))
policies = causal_models.policies_of(is_offloaded=sys.argv[1] == "host")

def devices(tensors):
    return sorted({each.device.type for each in tensors})

with WithoutGPU(), FakeTensorMode(allow_non_fake_inputs=True), Exchanged():
    (made,) = causal_models.sharded(empty, empty, mesh, prepare=[lambda _: None], policies=policies)
    parameters, found = list(made.parameters()), {}
    found["parts"], found["buffers"] = devices(parameters), devices(made.buffers())
    with torch.no_grad():
        found["responses"] = devices(made({"states": torch.empty(2, 6, device="cuda")}))
    found["whole"] = devices(causal_models.whole_tensor(each.detach()) for each in parameters)
    for each in parameters:
        each.grad = torch.empty_like(each)
    with contextlib.suppress(RuntimeError):  # the norm has no value here
        causal_models.clip_gradients(parameters, 1.0)
    optimizer = torch.optim.AdamW(parameters)
    if found["parts"] == ["cpu"]:
        optimizer.step()
        states = optimizer.state.values()
        found["AdamW"] = devices(each[name] for each in states for name in ("exp_avg", "exp_avg_sq"))
print(json.dumps([found, sorted(exchanged)]))
"""


@pytest.mark.parametrize("place", ["host", "device"])
def test_learners_exchange_tensors_of_gpus_only(place: str, tmp_path: Path) -> None:
    path = f"{ROOT}:{ROOT / 'agents'}"
    said = run_python("-c", SECOND_OF_FOUR, place, folder=tmp_path, PYTHONPATH=path)
    found, exchanged = json.loads(said.splitlines()[-1])
    parts = ["cpu"] if place == "host" else ["cuda"]
    assert found["parts"] == found.get("AdamW", parts) == parts
    assert found["buffers"] == found["responses"] == found["whole"] == ["cuda"]
    assert {device for _, device in exchanged} == {"cuda"}
    names = {name for name, _ in exchanged}
    assert {"scatter_", "broadcast_", "all_gather_into_tensor", "allreduce_"} <= names
