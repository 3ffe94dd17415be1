"""Models in GGUF files: converted once, with all that the file has, and refused in one sentence."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.models.gguf_files import read_source
from codea1_agents.models.model_facts import model_facts
from codea1_agents.models.model_files import require_model
from codea1_agents.models.shapes import shape_of
from codea1_agents.models.transformers_agent import TransformersAgent
from codea1_env.errors import BrokenInput, MissingExtra, UserError
from tests.support.command_line import codea1
from tests.support.gguf_files import write_gguf
from tests.support.language_models import CHAT_TEMPLATE, chat_folder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("gguf", reason="gguf is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def gguf(tiny_model: Path, tmp_path: Path) -> Path:
    write_gguf(tmp_path / "tiny.gguf", tiny_model)
    return tmp_path / "tiny.gguf"


def greedy(model: Path, observation: Any, infos: Any) -> list[str]:
    agent = TransformersAgent(model=str(model), temperature=0, max_tokens=24, device="cpu", dtype="float32")
    return agent.act_batch([observation, observation | {"problem": "def last(items): ..."}], infos[:2])


@pytest.mark.parametrize(
    ("kind", "quantisation", "dtype"),
    [("Llama", "Q8_0", "bfloat16"), ("Llama", "F16", "float16"), ("Qwen2", "Q4_0", "bfloat16"), ("Qwen2", "F32", "")],
)
def test_a_file_plays_as_the_folder_of_its_weights(
    kind: str, quantisation: str, dtype: str, tmp_path: Path, observation: Any, infos: Any
) -> None:
    folder = chat_folder(tmp_path / "folder", CHAT_TEMPLATE, kind)
    rounded = write_gguf(tmp_path / "model.gguf", folder, quantisation)
    # What lies beside the file belongs to other models.
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "nothing", "eos_token": "x"}')
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 7}')
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    stored = getattr(torch, dtype or "float32")
    model.load_state_dict({name: torch.from_numpy(each).to(stored) for name, each in rounded.items()})
    model.save_pretrained(folder)

    assert greedy(tmp_path / "model.gguf", observation, infos) == greedy(folder, observation, infos)
    facts, plain = model_facts(str(tmp_path / "model.gguf")), model_facts(str(folder))
    assert facts.source is not None
    assert facts.source.file == "model.gguf"
    assert facts.source.quantisation == ("F32" if quantisation == "F32" else f"{quantisation}, F32")
    assert (plain.source, facts.dtype) == (None, dtype or "float32")
    same = ("architecture", "n_parameters", "context", "has_template", "tokenizer_end", "generation_ends", "turn_end")
    assert [getattr(facts, name) for name in same] == [getattr(plain, name) for name in same]
    assert shape_of(str(tmp_path / "model.gguf")) == shape_of(str(folder))


def test_one_matrix_in_two_precisions_is_one_again_the_finer_one(
    tiny_model: Path, tmp_path: Path, observation: Any, infos: Any
) -> None:
    from gguf import GGMLQuantizationType, quants

    tied = chat_folder(tmp_path / "tied", CHAT_TEMPLATE, tie_word_embeddings=True)
    matrix = write_gguf(tmp_path / "once.gguf", tied, "Q4_0")["model.embed_tokens.weight"]
    fine = GGMLQuantizationType.Q8_0
    write_gguf(tmp_path / "twice.gguf", tied, "Q4_0", **{"output.weight": (quants.quantize(matrix, fine), fine)})
    write_gguf(tmp_path / "two.gguf", tiny_model, "Q4_0")
    once, twice, two = (shape_of(str(tmp_path / f"{name}.gguf")) for name in ("once", "twice", "two"))
    assert (once.is_tied, twice.is_tied, two.is_tied) == (True, True, False)
    (weights,) = Path(require_model("x", str(tmp_path / "twice.gguf"))).glob("*.safetensors")
    from safetensors.torch import load_file

    found = load_file(weights)
    assert "lm_head.weight" not in found
    expected = torch.from_numpy(quants.dequantize(quants.quantize(matrix, fine), fine)).bfloat16()
    assert torch.equal(found["model.embed_tokens.weight"], expected)
    assert greedy(tmp_path / "twice.gguf", observation, infos)


def test_a_file_is_converted_once_for_each_content(gguf: Path, tmp_path: Path, cache: Path) -> None:
    place = Path(require_model("x", str(gguf)))
    begun = {each: each.stat().st_mtime_ns for each in place.iterdir()}
    moved = shutil.copy(gguf, tmp_path / "moved.GGUF")
    assert require_model("x", str(moved)) == str(place)
    assert begun == {each: each.stat().st_mtime_ns for each in place.iterdir()}
    (place / "gguf.json").unlink()  # as if the process had been killed
    assert require_model("x", str(gguf)) == str(place)
    assert (place / "gguf.json").is_file()
    other = chat_folder(tmp_path / "other", CHAT_TEMPLATE, hidden_size=32, num_attention_heads=1)
    write_gguf(gguf, other)
    assert require_model("x", str(gguf)) != str(place)
    assert {each.name[0] for each in (cache / "codea1-env" / "gguf").iterdir() if each.is_dir()} != {"."}


def test_records_of_play_and_eval_name_the_file(gguf: Path, tmp_path: Path) -> None:
    player = f"transformers,model={gguf},max_tokens=4,device=cpu"
    few = ("--problems", "starter", "--limit", "1")
    played = codea1("play", *few, "--coder", player, "--tester", "fuzz", "--episodes", "1", "-o", tmp_path / "played")
    judged = codea1("eval", "coder", *few, "--agent", player, "-o", tmp_path / "coder")
    both = codea1("eval", "tester", *few, "--agent", player, "--base", player, "-o", tmp_path / "tester")
    plain = codea1("eval", "tester", *few, "--agent", "fuzz", "-o", tmp_path / "plain")
    assert [each.exit_code for each in (played, judged, both, plain)] == [0] * 4
    source = asdict(read_source(Path(require_model("x", str(gguf)))))
    assert source["file"] == "tiny.gguf"
    files = ("played/metrics.json", "coder/evaluation.json", "tester/evaluation.json")
    found = [json.loads((tmp_path / each).read_text())["gguf"] for each in files]
    assert found == [{"coder": source}, {"coder": source}, {"tester": source, "base": source}]
    assert "gguf" not in json.loads((tmp_path / "plain" / "evaluation.json").read_text())


def cut(file: Path, _: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def text(file: Path, _: Path) -> None:
    file.write_text("<html>404</html>")


def unknown_architecture(file: Path, model: Path) -> None:
    write_gguf(file, model, architecture="unheard_of")


def unreadable_quantisation(file: Path, model: Path) -> None:
    from gguf import GGMLQuantizationType
    from numpy import uint8, zeros

    rows = zeros((320, 292), uint8)  # a block of Q8_K has 256 weights in 292 bytes
    write_gguf(file, model, **{"token_embd.weight": (rows, GGMLQuantizationType.Q8_K)})


def without_a_layer(file: Path, model: Path) -> None:
    write_gguf(file, model, **{"blk.1.ffn_up.weight": None})


def with_more(file: Path, model: Path) -> None:
    from numpy import float32, ones

    write_gguf(file, model, **{"rope_freqs.weight": ones(16, float32)})  # transformers would leave it out silently


def not_a_number(file: Path, model: Path) -> None:
    from numpy import float32, full, nan

    write_gguf(file, model, **{"output_norm.weight": full(64, nan, float32)})


def gone(file: Path, _: Path) -> None:
    file.unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (cut, "no GGUF file, or damaged or cut short"),
        (text, "no GGUF file, or damaged or cut short"),
        (unknown_architecture, "unheard_of"),
        (unreadable_quantisation, "Q8_K"),
        (without_a_layer, "and it holds"),
        (with_more, "and it holds"),
        (not_a_number, "no finite number"),
        (gone, "does not exist"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_leaves_nothing(
    spoil: Any, said: str, gguf: Path, tiny_model: Path, cache: Path
) -> None:
    spoil(gguf, tiny_model)
    with pytest.raises(BrokenInput, match=said) as caught:
        require_model("x", str(gguf))
    assert "tiny.gguf" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [each for each in cache.rglob("*") if not each.is_dir()] == []


def test_a_cache_that_cannot_be_written_and_a_missing_package_are_one_sentence(
    gguf: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("a file")
    with pytest.raises(UserError, match="cache"):
        require_model("x", str(gguf))
    cache.unlink()
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingExtra, match=r"\[gguf\]"):
        require_model("x", str(gguf))
