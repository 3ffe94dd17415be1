from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from random import Random

import pytest

from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
from codea1_agents.prompts import load_prompts
from codea1_agents.train.tiny.components import TRIGGERS
from codea1_agents.train.tiny.corpus import WORDING, Corpus, CorpusRules
from codea1_agents.train.tiny.family import VERSION, Variant
from codea1_agents.train.tiny.problems import load
from codea1_env.errors import UserError
from codea1_env.observations import observation_of, turn_info

pytest.importorskip("transformers", reason="transformers is not installed")

import torch

from codea1_agents.train.tiny.pretraining import (
    PretrainingSettings,
    _Batch,
    _packed,
    _token_losses,
    load_settings,
    pretrain,
    seconds_per_step,
)
from codea1_agents.train.tiny.tokenizer import GO, new_tokenizer, text_of


@pytest.fixture(scope="module")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has hardly begun to learn."""
    folder = tmp_path_factory.mktemp("base") / "model"
    pretrain(PretrainingSettings(seed=1, steps=3)).save(folder)
    return folder


def test_the_same_seed_gives_the_same_bits_whatever_came_before(base_folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(99)
    state = torch.get_rng_state()
    pretrain(PretrainingSettings(seed=1, steps=3)).save(tmp_path / "again")
    assert torch.equal(torch.get_rng_state(), state)
    names = {path.name for path in base_folder.iterdir()}
    assert {f"{each}.json" for each in ("config", "generation_config", "pretraining", "tokenizer")} < names
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (base_folder / name).read_bytes(), name
    pretrain(PretrainingSettings(seed=2, steps=3)).save(tmp_path / "other")
    model = "model.safetensors"
    assert (tmp_path / "other" / model).read_bytes() != (base_folder / model).read_bytes()


def test_the_loss_falls() -> None:
    told: list[float] = []
    base = pretrain(PretrainingSettings(steps=25), progress=lambda step, losses: told.append(losses["coder"]))
    assert len(told) == 25
    assert told[-1] < told[0] - 0.2
    assert base.losses["coder"] == told[-1]


def test_the_seconds_of_a_step_are_measured_without_all_steps() -> None:
    assert 0.001 < seconds_per_step(PretrainingSettings(steps=10_000), measured_s=0.3) < 10


def test_the_record_says_how_it_was_made(base_folder: Path) -> None:
    record = load_settings(base_folder)
    assert (record["seed"], record["steps"], record["family"]) == (1, 3, VERSION)
    assert 400_000 < record["parameters"] < 600_000
    assert record["rules"]["variant"] == "plain"
    json.dumps(record, allow_nan=False)
    with pytest.raises(UserError, match="codea1 pretrain"):
        load_settings(base_folder / "nowhere")
    with pytest.raises(UserError):
        PretrainingSettings(steps=-1)


@pytest.mark.parametrize("variant", [Variant.DEEP_RARE, Variant.RAREST])
def test_a_condition_of_a_rare_mistake_is_one_token(variant: Variant) -> None:
    tokenizer = new_tokenizer(variant)
    for trigger in chain(*TRIGGERS[variant.shapes[0]].values()):
        assert len(tokenizer(f"if (a, b) != {trigger} else ", add_special_tokens=False)["input_ids"]) == 1


def test_the_loaded_tokenizer_reads_what_the_game_asks_as_the_corpus_was_read(base_folder: Path) -> None:
    tokenizer = load_tokenizer(str(base_folder))
    chat, prompts = ChatFormat(tokenizer, "base"), load_prompts(WORDING)
    problem = load("train")[0]
    for role, program in (("coder", ""), ("tester", problem.solution), ("tester", "")):
        info = turn_info(problem, episode_id="0", role=role, round_=0, tests_per_suite=4, program=program)
        ids = chat.prompt_ids(prompts.messages(observation_of(problem, 0, program), info))
        start = {"coder": "code ", "tester": "test 4 "}[role] + problem.statement
        text = start + (f"\n{program}" if program else "") + GO
        assert ids == tokenizer(text, add_special_tokens=False)["input_ids"]
        assert 4 <= len(ids) <= 45
    ids = tokenizer(f"{problem.solution} ~ # Ab_0", add_special_tokens=False)["input_ids"]
    assert tokenizer.unk_token_id not in ids


def test_replies_come_back_as_they_were_written(base_folder: Path) -> None:
    tokenizer = load_tokenizer(str(base_folder))
    chat = ChatFormat(tokenizer, "base")
    for document in Corpus(CorpusRules(), 5).batch(0, 200):
        ids = tokenizer(f"{document.reply}<end>", add_special_tokens=False)["input_ids"]
        assert ids[-1] == tokenizer.eos_token_id
        assert chat.reply(ids) == document.reply


def test_packed_documents_have_the_losses_that_they_have_alone(base_folder: Path) -> None:
    from codea1_agents.train.grpo.causal_models import load_causal_model

    model, tokenizer = load_causal_model(str(base_folder)), load_tokenizer(str(base_folder))
    documents = Corpus(CorpusRules(), 5).batch(0, 12)
    with torch.no_grad():
        together = _token_losses(model, _Batch.of(documents, tokenizer))
        alone = []
        for document in documents:
            ids = torch.tensor([tokenizer(text_of(document), add_special_tokens=False)["input_ids"]])
            first = ids[0].tolist().index(tokenizer.convert_tokens_to_ids(GO))
            scores = model(input_ids=ids[:, :-1]).logits.log_softmax(-1)
            alone.append(-scores.gather(-1, ids[:, 1:, None])[0, first:].sum())
    assert float(together.sum()) == pytest.approx(float(sum(alone)), rel=1e-5)
    assert len(together) < len(documents)


def test_packing_keeps_every_document_once_within_its_row() -> None:
    draws = Random(0)
    lengths = [draws.randint(1, 200) for _ in range(50)]
    rows = _packed(lengths)
    assert sorted(number for row in rows for number in row) == list(range(50))
    assert all(len(row) == 1 or sum(lengths[number] for number in row) <= 128 for row in rows)
