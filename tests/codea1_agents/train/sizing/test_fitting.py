"""What a run needs, whether it fits, and what to change if not. Nothing here is loaded."""

from __future__ import annotations

import re

import pytest

from codea1_agents.train.settings.loading import load_training, preset_names
from codea1_agents.train.sizing import fitting
from codea1_agents.train.sizing.devices import Devices, Gpu, parse_devices
from codea1_agents.train.sizing.fitting import advice, require_fit
from codea1_agents.train.sizing.run_size import CONTEXT, Process, RunSize, size_of
from codea1_env.errors import UserError

ON = ("1 x 24GB", "8 x 80GB", "8 x 96GB")
FITS = {
    "one-gpu": ON,
    "one-gpu-lora": ON,
    "laptop": ON,
    "node-lora": ON[1:],
    "paper-1.5b": ON[1:],
    "paper-3b": ON[1:],
    "paper-7b": ON[1:],
}
"""Where each preset with models of the hub fits."""


def size(preset: str, on: str, *changes: str) -> RunSize:
    return size_of(load_training(preset, changes), parse_devices(on))


def test_every_preset_with_models_of_the_hub_is_listed() -> None:
    of_hub = {name for name in preset_names() if "Qwen/" in load_training(name).model_dump_json()}
    assert of_hub == set(FITS)


@pytest.mark.parametrize(("preset", "on"), [("one-gpu", ON[0]), ("one-gpu-lora", ON[0]), ("node-lora", ON[1])])
def test_presets_for_some_gpus_leave_some_memory_free(preset: str, on: str) -> None:
    found = size(preset, on)
    needed = max(found.placement.gpu_bytes(number) for number in range(found.devices.n_gpus))
    assert needed < 0.99 * found.devices.gpu.memory_gb * 1e9


@pytest.mark.parametrize("preset", FITS)
@pytest.mark.parametrize("on", ON)
def test_the_advice_is_one_sentence_and_true(preset: str, on: str) -> None:
    config, devices = load_training(preset), parse_devices(on)
    found = size_of(config, devices)
    assert (not found.faults) == (on in FITS[preset])
    sentence = advice(config, found)
    assert "\n" not in sentence
    changes = re.findall(r"[a-z]+\.[\w.]+=[\w.-]+", sentence.partition("it fits with ")[2])
    if on in FITS[preset]:
        assert re.fullmatch(rf"this run fits {devices} and a host of \d+ GB", sentence)
    elif changes:
        assert not size_of(load_training(preset, changes), devices).faults
    else:
        (name,) = re.findall(r"the preset (\S+) fits", sentence)
        assert not size(name, on).faults


def test_whole_models_on_each_learner_fit_no_gpu_however_many_there_are() -> None:
    for preset in ("paper-3b", "paper-7b"):
        whole = load_training(preset, ["cluster.sharding=none"])
        assert "it fits with cluster.sharding=full" in advice(whole, size_of(whole, parse_devices("8 x 80GB")))
        assert "the GPU of a learner needs" in "; ".join(size_of(whole, parse_devices("64 x 80GB")).faults)


def test_fewer_gpus_are_spread_anew_but_no_two_learners_share_one() -> None:
    config = load_training("node-lora")
    sentence = advice(config, size_of(config, parse_devices("4 x 80GB")))
    assert "its processes request 8 GPUs" in sentence
    assert "it fits with cluster.env_runners=2" in sentence
    found = size("one-gpu-lora", "1 x 80GB", "cluster.learners=2", "cluster.gpus_per_learner=0.25")
    assert any("NCCL" in each for each in found.faults)


def test_parts_on_the_host_leave_the_gpu_to_what_is_computed() -> None:
    def learner(*changes: str) -> Process:
        return size("paper-7b", ON[1], *changes).placement.processes[-1]

    plain, offloaded = learner(), learner("cluster.offload_parameters=true")
    moved = {each.name: each.n_bytes for each in offloaded.parts if each.is_on_host and each.n_bytes}
    assert set(moved) == {"weights", "gradients", "AdamW", "references"}
    assert plain.device_bytes - offloaded.device_bytes == sum(moved.values()) == offloaded.host_bytes("later")
    assert not plain.host_bytes("later")
    colocated = "placement=colocated env_runners=8 learners=8 gpus_per_env_runner=0.6 gpus_per_learner=0.4"
    changes = [f"cluster.{each}" for each in (*colocated.split(), "offload_parameters=true")]
    assert learner(*changes).bytes_while("runner") == CONTEXT.n_bytes


def test_frozen_roles_and_agents_learn_nothing() -> None:
    both, one = size("one-gpu", "24GB"), size("one-gpu", "24GB", "agents.tester.agent=fuzz")
    assert [each.role for each in one.work] == ["coder"]
    assert one.placement.gpu_bytes(0) < both.placement.gpu_bytes(0)
    frozen = size("one-gpu", "24GB", "agents.tester.frozen=true")
    assert [bool(each.trained) for each in frozen.work] == [True, False]


def test_tokens_bound_micro_batches() -> None:
    def largest(*changes: str) -> int:
        return max(each.batch.tokens for each in size("paper-1.5b", "8 x 96GB", *changes).modules.values())

    assert largest() == 4 * 12_288
    assert largest("training.micro_batch_tokens=20000") == 20_000
    assert largest("training.micro_batch_tokens=100") == 12_288  # a row is not split


def test_a_packed_micro_batch_is_one_row_with_a_mask_of_all_pairs() -> None:
    changes = ["training.packing=true", "training.micro_batch_tokens=6144"]
    plain, packed = (size("one-gpu", "24GB", *more) for more in (changes[1:], changes))
    assert packed.modules["tester"].batch.mask == 6144**2 > plain.modules["tester"].batch.mask
    assert [each.prompt_once for each in (*plain.work, *packed.work)] == [False, False, True, True]


def test_checkpoints_that_are_kept_and_one_that_is_written_are_on_the_disk() -> None:
    kept, all_of_them = (size("paper-7b", "8 x 80GB", f"checkpoints.keep={n}") for n in (2, 0))
    assert round(kept.checkpoint_bytes / 1e9) == 183
    assert (kept.n_checkpoints, all_of_them.n_checkpoints) == (3, 4)  # of 111 steps, one every 50
    adapters = size("node-lora", "8 x 80GB")
    assert adapters.checkpoint_bytes < kept.checkpoint_bytes / 50


def test_minutes_need_a_gpu_of_known_speed() -> None:
    assert size("node-lora", "8 x 80GB").seconds is None
    assert 0 < size("node-lora", "8 x H100").seconds.total < size("node-lora", "8 x A100").seconds.total


ON_CPU = ["cluster.gpus_per_env_runner=0", "cluster.gpus_per_learner=0"]
ONE_GPU = Devices(1, Gpu("", 24), 64)


@pytest.mark.parametrize(
    ("here", "preset", "changes", "said"),
    [
        (ONE_GPU, "paper-7b", [], "the preset one-gpu-lora fits; --force starts it anyway"),
        (Devices(0, None, 1000), "one-gpu", [], r"requests a GPU; it fits with cluster\.gpus_per_env_runner=0\.0 and"),
        (Devices(0, None, 1000), "one-gpu", ON_CPU[:1], r"it fits with cluster\.gpus_per_learner=0\.0; --force"),
        (Devices(0, None, 8), "one-gpu", ON_CPU, "of the machine's memory of 8"),
    ],
)
def test_a_run_that_cannot_fit_this_machine_is_refused(here, preset, changes, said, monkeypatch):
    monkeypatch.setattr(fitting, "devices_here", lambda: here)
    with pytest.raises(UserError, match=said) as error:
        require_fit(load_training(preset, changes))
    assert "\n" not in str(error.value)


def test_a_run_that_fits_or_of_which_not_enough_is_known_is_not_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    unknown = [f"agents.{role}.model=nobody/unknown" for role in ("coder", "tester")]
    elsewhere = ["cluster.address=auto"]  # another cluster's GPUs are not seen from here
    big = [(ONE_GPU, "paper-7b", elsewhere), (ONE_GPU, "paper-7b", unknown), (None, "paper-7b", [])]
    for here, preset, changes in [(ONE_GPU, "one-gpu", []), *big]:
        monkeypatch.setattr(fitting, "devices_here", lambda here=here: here)
        require_fit(load_training(preset, changes))
