"""One learner in this process: what an update does to the weights, and what it must not depend on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

from tests.support.grpo import Weights, distance, scored
from tests.support.grpo import learner_of as learner
from tests.support.language_models import END

pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from ray.rllib.core.learner.torch.torch_learner import TorchLearner  # noqa: E402

from codea1_agents.models.sampling import SamplingRules, sample_responses  # noqa: E402
from codea1_agents.train.failures import NotFinite  # noqa: E402
from codea1_agents.train.grpo import learner as learner_module  # noqa: E402
from codea1_agents.train.grpo.batch import Column, ScoredResponse, padded_batch, planned  # noqa: E402  # noqa: E402
from codea1_agents.train.grpo.learner import GRPOTorchLearner  # noqa: E402
from codea1_agents.train.loop import load_training  # noqa: E402
from codea1_env.errors import CodeA1Error, UserError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own


def update(one: GRPOTorchLearner, responses: Sequence[ScoredResponse]) -> dict[str, float]:
    """Update with one minibatch and return the figures."""
    found = one.update(episodes=planned(responses, 1, (0,)))["coder"]
    return {name: float(found[name].peek()) for name in found}


def weights(of: GRPOTorchLearner) -> Weights:
    return {"coder": of.module["coder"].get_state()}


LENGTHS_AND_ADVANTAGES = [(3, 9, 1.2), (7, 1, -0.8), (1, 4, 0.3), (5, 17, -1.5), (2, 2, 0.8), (9, 6, 1)]
BATCH = [scored("coder", prompt, response, advantage=a) for prompt, response, a in LENGTHS_AND_ADVANTAGES]


@pytest.mark.parametrize(
    "parts",
    [
        *({"micro_batch_size": rows} for rows in (1, 3, 8)),
        {"micro_batch_size": 0, "micro_batch_tokens": 20, "logits_chunk_tokens": 16},
        {"micro_batch_size": 0, "model": {"gradient_checkpointing": True}},
    ],
)
def test_d22_micro_batches_change_nothing(phrase_folders: dict[str, str], parts: dict[str, Any]) -> None:
    """Means of means would weigh the tokens of a part by its size. `test_same_updates.py` compares more settings."""
    whole = learner(phrase_folders["coder"], lr=1e-4, micro_batch_size=0, logits_chunk_tokens=0)
    other = learner(phrase_folders["coder"], **{"lr": 1e-4, "logits_chunk_tokens": 0, **parts})
    before = weights(whole)
    for _ in range(2):
        update(whole, BATCH)
        update(other, BATCH)
    assert distance(before, weights(whole)) > 1e-4
    assert distance(weights(whole), weights(other)) < 1e-6


def test_an_entropy_bonus_flattens_and_none_costs_nothing(phrase_folders: dict[str, str]) -> None:
    found = {}
    for bonus in (0.0, 5.0):
        one = learner(phrase_folders["coder"], kl_coeff=0.0, entropy_coeff=bonus, lr=1e-2)
        batch = padded_batch(BATCH)
        before = one.module["coder"].forward_train(batch)[Column.ENTROPY]
        assert before.requires_grad == bool(bonus)
        for _ in range(3):
            update(one, BATCH)
        after = one.module["coder"].forward_train(batch)[Column.ENTROPY]
        found[bonus] = float((after - before).detach()[batch[Column.RESPONSE_MASK]].mean())
    assert found[5.0] > found[0.0]


@pytest.mark.parametrize("spoilt", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_and_changes_nothing(phrase_folders: dict[str, str], spoilt: float) -> None:
    one = learner(phrase_folders["coder"])
    update(one, BATCH)
    before, optimizer = weights(one), one.get_state(components="optimizer")
    with pytest.raises(NotFinite, match=r"'coder' is (nan|-?inf).*changed nothing"):
        update(one, [*BATCH, scored("coder", 2, 3, advantage=spoilt)])
    assert distance(before, weights(one)) == 0.0
    after = one.get_state(components="optimizer")
    assert str(optimizer["optimizer"]) == str(after["optimizer"])
    update(one, BATCH)  # and who catches it can go on
    assert distance(before, weights(one)) > 0


def test_of_two_steps_the_one_before_the_spoilt_one_counts(phrase_folders: dict[str, str]) -> None:
    one = learner(phrase_folders["coder"], minibatches_per_epoch=2, epochs_per_step=1)
    plan = planned(BATCH, 2, (0,))
    last = max(plan, key=lambda each: each.minibatch)
    expected = learner(phrase_folders["coder"])
    expected.update(episodes=[each for each in plan if each.minibatch == 0])
    with pytest.raises(NotFinite):
        one.update(episodes=[replace(e, advantage=float("nan")) if e is last else e for e in plan])
    assert distance(weights(expected), weights(one)) == 0.0


def test_an_older_state_is_taken_back_whole(phrase_folders: dict[str, str]) -> None:
    """RLlib's own learner keeps the newer weights and takes the older number."""
    one = learner(phrase_folders["coder"])
    fresh = one.get_state()
    update(one, BATCH)
    older = one.get_state()
    update(one, BATCH)
    newest = weights(one)
    one.set_state(older)
    assert distance(weights(one), older["rl_module"]) == 0.0
    update(one, BATCH)
    assert distance(weights(one), newest) == 0.0  # the optimiser went back, too
    one.set_state(fresh)
    assert distance(weights(one), fresh["rl_module"]) == 0.0
    assert one.get_state()["weights_seq_no"] == 0


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_the_learner_sees_the_log_probs_that_were_sampled_with(model_folder: str, temperature: float) -> None:
    one = learner(model_folder, temperature=temperature)
    prompts = [[1, 2, 3], [4], list(range(5, 60)), [12, 13]]
    responses = sample_responses(
        one.module["coder"].model,
        prompts,
        [[0, n] for n in range(4)],
        end_tokens=[END],
        rules=SamplingRules(max_tokens=48, temperature=temperature),
    )
    rows = [
        replace(scored("coder", 1, 1), prompt=tuple(prompt), response=response)
        for prompt, response in zip(prompts, responses, strict=True)
    ]
    batch = padded_batch(rows)
    with torch.no_grad():
        found = one.module["coder"].forward_train(batch)[Column.LOG_PROBS]
    gap = (found - batch[Column.SAMPLED_LOG_PROBS]).abs()[batch[Column.RESPONSE_MASK]]
    assert len(gap) > 100
    assert float(gap.max()) < 1e-5
    assert float(update(one, rows)["ratio_gap"]) < 1e-5


@pytest.mark.parametrize("name", ["top_p", "top_k"])
def test_truncated_sampling_is_refused_with_the_reason(phrase_folders: dict[str, str], name: str) -> None:
    with pytest.raises(UserError, match=f"{name}: training samples the whole distribution"):
        learner(phrase_folders["coder"], **{name: 0.9})
    with pytest.raises(UserError, match=f"{name}: training samples the whole distribution"):
        load_training("code-a1", [f"rollout.{name}=1"])


def test_an_attention_that_cannot_be_used_is_one_sentence(phrase_folders: dict[str, str]) -> None:
    with pytest.raises(UserError, match="packing needs attention='sdpa': 'eager' has no mask of pairs"):
        learner(phrase_folders["coder"], model={"attention": "eager"}, packing=True)
    if find_spec("flash_attn") is not None:
        pytest.skip("flash_attn is installed")
    with pytest.raises(CodeA1Error, match=r"^attention='flash_attention_2' cannot be loaded: "):
        learner(phrase_folders["coder"], model={"attention": "flash_attention_2"})


def test_packed_responses_share_prompts_with_checkpointing_and_train_to_the_same_weights(phrase_folders, caplog):
    model = {"gradient_checkpointing": True, "attention": "sdpa"}
    plain, packed = (learner(phrase_folders["coder"], model=model, packing=flag) for flag in (False, True))
    assert (plain.module["coder"].computes_prompts_once, packed.module["coder"].computes_prompts_once) == (False, True)
    assert len([each for each in caplog.messages if "computes its prompt anew, as gradient_checkpointing" in each]) == 1
    start = weights(plain)
    for one in (plain, packed):
        update(one, BATCH)
    assert distance(start, weights(plain)) > 1e-4
    assert distance(weights(plain), weights(packed)) < 1e-5  # AdamW makes a step of 1e-3 of the smallest gradient


def test_the_device_is_rays_before_anything_is_built(phrase_folders, monkeypatch):
    """A mesh takes the device that is set, and else rank % count, which is wrong where nodes differ in size."""
    one, order = learner(phrase_folders["coder"]), []
    monkeypatch.setattr(learner_module, "get_device", lambda *_: torch.device("cuda", 3))
    monkeypatch.setattr(torch.cuda, "set_device", order.append)
    monkeypatch.setattr(TorchLearner, "build", lambda _: order.append("built"))
    one.build()
    assert order == [torch.device("cuda", 3), "built"]


def sampled_by(one: GRPOTorchLearner, gap: float) -> list[ScoredResponse]:
    """Return the batch as if a policy had sampled it whose log-probabilities are lower than the learner's by `gap`."""
    own = one.module["coder"].log_probs(padded_batch(BATCH)).tolist()
    lower = [tuple(p - gap for p in row[: len(each.response.tokens)]) for each, row in zip(BATCH, own, strict=True)]
    return [replace(e, response=replace(e.response, log_probs=row)) for e, row in zip(BATCH, lower, strict=True)]


def test_old_log_probs_are_the_learners_own_or_the_samplers(phrase_folders: dict[str, str]) -> None:
    """A sampler of other precision moves the ratio of the loss, unless the learner's own policy is the old one."""
    folder, gap = phrase_folders["coder"], 0.25
    by_sampler, by_learner, exact = (
        learner(folder, lr=1e-4, old_log_probs=old) for old in ("sampler", "learner", "sampler")
    )
    figures = update(by_sampler, sampled_by(by_sampler, gap)), update(by_learner, sampled_by(by_learner, gap))
    update(exact, sampled_by(exact, 0.0))
    assert figures[0]["ratio_gap"] == pytest.approx(gap, abs=1e-6)
    assert figures[1]["ratio_gap"] == 0.0
    for each in figures:
        assert each["sampler_gap"] == pytest.approx(gap, abs=1e-5)
        assert each["sampler_gap_max"] == pytest.approx(gap, abs=1e-5)
        assert each["sampler_ess"] == pytest.approx(1.0, abs=1e-5)
        assert each["sampler_truncated_share"] == 0.0
    assert distance(weights(by_learner), weights(exact)) < 1e-6
    assert distance(weights(by_sampler), weights(exact)) > 1e-6


def test_weights_by_importance_scale_the_policy_loss_up_to_the_cap(phrase_folders: dict[str, str]) -> None:
    found = {}
    for cap in (0.0, 1.5, 4.0):
        one = learner(phrase_folders["coder"], kl_coeff=0.0, old_log_probs="learner", tis_cap=cap)
        found[cap] = update(one, sampled_by(one, math.log(2.0)))
    plain = found[0.0]["policy_loss"]
    assert found[1.5]["policy_loss"] == pytest.approx(1.5 * plain, rel=1e-4)
    assert found[4.0]["policy_loss"] == pytest.approx(2.0 * plain, rel=1e-4)
    assert [found[cap]["sampler_truncated_share"] for cap in (0.0, 1.5, 4.0)] == pytest.approx([0.0, 1.0, 0.0])


def test_ratios_of_later_steps_start_from_the_policy_before_the_first(phrase_folders: dict[str, str]) -> None:
    one = learner(phrase_folders["coder"], old_log_probs="learner", epochs_per_step=2, micro_batch_size=2)
    plan = planned(sampled_by(one, 0.5), 2, (0,))
    found = one.update(episodes=plan)["coder"]
    assert 0.0 < float(found["ratio_gap"].peek()) < 0.4
    assert float(found["sampler_gap"].peek()) == pytest.approx(0.5, abs=1e-5)


def test_rows_that_weigh_nothing_say_nothing(phrase_folders: dict[str, str]) -> None:
    one, other = (learner(phrase_folders["coder"], lr=1e-4) for _ in range(2))
    silent = replace(scored("coder", 4, 4, advantage=3.0), token_weight=0.0)
    silent = replace(silent, response=replace(silent.response, log_probs=(-50.0,) * 4))
    plan = planned(BATCH, 1, (0,))
    expected = one.update(episodes=plan)
    found = other.update(episodes=[*plan, silent])
    assert distance(weights(one), weights(other)) < 1e-6
    for name in ("ratio_gap", "loss", "kl", "clip_share"):
        assert found["coder"][name].peek() == pytest.approx(expected["coder"][name].peek(), rel=1e-4), name
