"""Pieces, checksums and what a receiver verifies; the driver's part is tested in `test_runners.py`."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.grpo import learner_of, module_of, moved

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.failures import StaleWeights  # noqa: E402
from codea1_agents.train.grpo import weights  # noqa: E402
from codea1_agents.train.grpo.causal_models import untied  # noqa: E402
from codea1_agents.train.grpo.settings import LoraSettings  # noqa: E402
from codea1_agents.train.grpo.weights import (  # noqa: E402
    Piece,
    WeightReceiver,
    array_of,
    checksum,
    in_pieces,
    piece_of,
    plan_of,
    tensor_of,
    weighted_sum,
)

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own

MB = 2**20
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool]


@given(sizes=st.lists(st.integers(0, 40), max_size=30), most=st.integers(1, 60))
def test_pieces_hold_every_tensor_in_order_and_are_as_full_as_they_may_be(sizes: list[int], most: int) -> None:
    tensors = [(str(number), torch.zeros(size)) for number, size in enumerate(sizes)]
    pieces = list(in_pieces(tensors, 4 * most / MB))
    assert [name for piece in pieces for name in piece] == [name for name, _ in tensors]
    lengths = [[len(tensor) for tensor in piece.values()] for piece in pieces]
    assert all(sum(each) <= most or len(each) == 1 for each in lengths)
    assert all(sum(one) + other[0] > most for one, other in pairwise(lengths))


def test_sizes_are_those_of_the_type_that_is_sent_and_a_generator_is_read_only_as_far_as_needed() -> None:
    read = []

    def tensors() -> Iterator[tuple[str, Any]]:
        for name in "abcd":
            read.append(name)
            yield name, torch.zeros(100)

    assert [[*piece] for piece in in_pieces(tensors(), 400 / MB, torch.bfloat16)] == [["a", "b"], ["c", "d"]]
    read.clear()
    next(in_pieces(tensors(), 400 / MB))
    assert read == ["a", "b"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5)])
def test_an_array_is_the_tensor_again_with_the_same_checksum(dtype: Any, shape: tuple[int, ...]) -> None:
    tensor = (torch.randn(shape) * 100).to(dtype)
    again = tensor_of(pickle.loads(pickle.dumps(array_of(tensor))))
    assert (again.dtype, again.shape) == (dtype, tensor.shape)
    assert torch.equal(again, tensor)
    assert checksum(again) == checksum(tensor)
    matrix = torch.tensor([[1, 1, 0], [0, 0, 1]]).to(dtype)
    assert checksum(matrix.T) == checksum(matrix.T.contiguous()) != checksum(matrix)


@given(values=st.lists(st.integers(-(2**15), 2**15 - 1), min_size=1, max_size=40), part=st.integers(1, 50))
def test_a_weighted_sum_is_the_sum_of_all_elements_times_odd_weights(values: list[int], part: int) -> None:
    def weight(place: int) -> int:
        spread = (place * weights._SPREAD) % 2**64
        signed = spread - 2**64 if spread >= 2**63 else spread
        return (signed ^ (signed >> 31)) | 1

    expected = sum(value * weight(place) for place, value in enumerate(values, 1)) % 2**64
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "_SUMMED", part)
        assert weighted_sum(torch.tensor(values, dtype=torch.int16).view(torch.bfloat16)) % 2**64 == expected


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.bool])
def test_a_weighted_sum_notices_each_bit_and_each_exchange(dtype: Any) -> None:
    tensor = torch.arange(97).remainder(5).to(dtype)
    before = tensor.clone()
    found = weighted_sum(tensor)
    assert torch.equal(tensor, before)
    n_bits = 1 if dtype is torch.bool else 8
    for place in range(tensor.element_size() * len(tensor)):
        for bit in range(n_bits):
            other = tensor.clone()
            other.view(torch.uint8)[place] ^= 1 << bit
            assert weighted_sum(other) != found
    assert found not in {weighted_sum(tensor.flip(0)), weighted_sum(tensor.roll(1)), weighted_sum(tensor[:-1])}


@pytest.fixture(params=["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pieces_of(learner: Any) -> list[Piece]:
    return [piece_of(learner, names) for names in plan_of(learner).pieces]


def receiver_of(module: Any) -> WeightReceiver:
    return WeightReceiver({"coder": module.model}, {"coder": module.settings})


Sent = tuple[Any, list[Piece], WeightReceiver]


@pytest.fixture
def sent(model_folder: str, dtype: str) -> Sent:
    """A learner whose weights have changed, its pieces, and one who receives them."""
    more = {"sampling_dtype": dtype, "handover_piece_mb": 0.02}
    learner = learner_of(model_folder, model=more)
    moved(learner.module["coder"].unwrapped().model)
    return learner, pieces_of(learner), receiver_of(module_of(model_folder, inference_only=True, **more))


def test_what_arrives_is_exactly_what_the_learner_has(sent: Sent, dtype: str) -> None:
    learner, pieces, receiver = sent
    with pytest.raises(StaleWeights, match="no hand-over"):
        receiver.require_complete()
    assert len(pieces) > 2
    for piece in pieces:
        n_bytes = sum(tensor_of(array).nbytes for array in piece.arrays.values())
        assert n_bytes <= 0.02 * MB or len(piece.arrays) == 1
        receiver.receive(pickle.loads(pickle.dumps(piece)))
    with pytest.raises(StaleWeights, match="no hand-over"):
        receiver.require_complete()
    receiver.verify(1)
    receiver.require_complete()
    own, arrived = untied(learner.module["coder"].unwrapped().model), untied(receiver.models["coder"])
    assert own.keys() == arrived.keys()
    for name, tensor in own.items():
        assert arrived[name].dtype == getattr(torch, dtype)
        assert torch.equal(arrived[name], tensor.to(arrived[name].dtype)), name


def test_a_missing_piece_is_named_also_after_a_good_hand_over(sent: Sent) -> None:
    _, pieces, receiver = sent
    for lost in (1, None, 2):
        for number, piece in enumerate(pieces):
            if number != lost:
                receiver.receive(piece)
        if lost is None:
            receiver.verify(1)
            continue
        with pytest.raises(StaleWeights, match=f"are not those that were sent: .*{sorted(pieces[lost].arrays)[0]}"):
            receiver.verify(1)
        with pytest.raises(StaleWeights):
            receiver.require_complete()


def test_a_hand_over_that_broke_off_leaves_nothing_to_the_next(sent: Sent) -> None:
    _, pieces, receiver = sent
    for piece in (*pieces[:-1], pieces[0], pieces[-1]):
        receiver.receive(piece)
    with pytest.raises(StaleWeights, match=f"{sum(len(each.arrays) for each in pieces[1:-1])} of "):
        receiver.verify(1)


def test_a_tensor_that_changes_on_its_way_is_noticed(sent: Sent) -> None:
    _, pieces, receiver = sent
    name, array = next(iter(pieces[0].arrays.items()))
    other = tensor_of(array)
    other.view(torch.uint8)[-1, -1] ^= 1
    pieces[0] = replace(pieces[0], arrays={**pieces[0].arrays, name: array_of(other)})
    for piece in pieces:
        receiver.receive(piece)
    with pytest.raises(StaleWeights, match=f"1 of .* are not those that were sent: {name}"):
        receiver.verify(1)


@pytest.mark.parametrize(("name", "shape"), [("no.such.tensor", (3,)), ("model.norm.weight", (3,))])
def test_a_tensor_of_another_model_is_refused(sent: Sent, name: str, shape: tuple[int, ...]) -> None:
    _, _, receiver = sent
    tensor = torch.zeros(shape)
    with pytest.raises(StaleWeights, match=f"'coder' has no tensor {name} of this shape"):
        receiver.receive(Piece("coder", {name: array_of(tensor)}, {name: checksum(tensor)}, is_first=True))


def test_only_adapters_are_sent_and_they_stay_in_full_precision(phrase_folders: dict[str, str]) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    more = {"sampling_dtype": "bfloat16", "lora": LoraSettings(rank=4)}
    learner = learner_of(phrase_folders["coder"], model=more)
    receiver = receiver_of(module_of(phrase_folders["coder"], inference_only=True, **more))
    for piece in pieces_of(learner):
        assert all(".lora_" in name for name in piece.arrays)
        assert {tensor_of(array).dtype for array in piece.arrays.values()} == {torch.float32}
        receiver.receive(piece)
    receiver.verify(0)
