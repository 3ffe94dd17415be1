from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import codea1, document, one_object, refused

pytest.importorskip("transformers", reason="transformers is not installed")

from tests.support.language_models import CHAT_TEMPLATE, chat_folder

FEW = ("-p", "starter", "--limit", 3)
QUICK = ("--prompts", "tiny", "--measured", 0, "--samples", 2, "--epochs", 1, "--tests", 2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_folder(tmp_path_factory.mktemp("made") / "mine", CHAT_TEMPLATE, "Qwen2")


@pytest.fixture
def mine(made: Path, folder: Path) -> str:
    shutil.copytree(made, folder / "mine")
    return "mine"


def test_a_model_is_checked(mine: str) -> None:
    result = codea1("check", "model", mine, *FEW, "--max-tokens", 8, "--tests", 2, "--json")
    assert result.exit_code == 0, result.stderr
    found = one_object(result.stdout)
    assert found["facts"]["architecture"] == "Qwen2ForCausalLM"
    assert [role["n_replies"] for role in found["roles"]] == [3, 3]
    assert set(found["figures"]) == {"pass@1", "validity", "right_kill_rate", "kill_rate"}
    assert found["figures"]["pass@1"]["n_problems"] == 3
    assert set(found["memory_bytes"]) == {"runner", "learner"}
    assert "raise --max-tokens" in found["advice"][0]
    assert all(sentence in result.stderr for sentence in found["advice"])


@pytest.mark.parametrize(("command", "options"), [(("check", "model"), ()), (("sft",), ("-o", "new", *QUICK))])
def test_what_is_no_model_is_one_sentence(mine: str, command: tuple[str, ...], options: tuple[object, ...]) -> None:
    shutil.copytree(mine, "broken")
    Path("broken/chat_template.jinja").write_text("{{ raise_exception('I take nobody') }}")
    Path("empty").mkdir()
    for model, said in (
        ("./mnie", "did you mean 'mine'?"),
        ("broken", "its chat template fails: I take nobody"),
        ("empty", "is a folder without config.json"),
    ):
        assert said in refused(*command, model, *options, *FEW)
    assert not Path("new").exists()


def test_a_model_is_fine_tuned_in_both_roles(mine: str) -> None:
    found = document("sft", mine, "-p", "starter", "--limit", 9, "-o", "new", *QUICK)
    assert found["n_examples"]["coder"] == 8  # one is held out
    assert found["n_examples"]["tester"] >= 8
    assert set(found["held_out_loss"]["before"]) == {"coder", "tester"}
    assert found["interrupted"] is False
    written = {path.name for path in Path("new").iterdir()}
    assert {"config.json", "model.safetensors", "sft.json", "tokenizer.json"} <= written
    assert "must be new or empty" in refused("sft", mine, *FEW, "-o", "new", *QUICK)


def test_the_phases_of_a_fine_tuning_are_named_from_the_start(mine: str, phases: Callable[[str], list[str]]) -> None:
    few = ("--max-reply-tokens", 8, "--samples", 1, "--epochs", 1, "--tests", 1, "--prompts", "tiny")
    made = codea1("sft", mine, "-p", "starter", "--limit", 8, "-o", "new", *few, "--role", "coder")
    assert made.exit_code == 0, made.stderr
    assert made.stderr.startswith("note: importing torch")
    begun = ["importing torch and transformers", "loading problems", "drawing examples"]
    assert phases(made.stderr) == [*begun, "measuring before", "fine-tuning", "measuring after"]


def test_a_testers_warm_start_as_in_the_paper(mine: str) -> None:
    options = ("--role", "tester", "--failing", "--coder", "mutant,strength=1")
    found = one_object(codea1("sft", mine, *FEW, "-o", "new", *QUICK, *options, "--json").stdout)
    assert set(found["n_examples"]) == {"tester"}
    sentence = refused("sft", mine, *FEW, "-o", "none", *QUICK, "--role", "tester", "--failing", "--coder", "reference")
    assert "nothing to fine-tune on" in sentence
    assert not Path("none").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--role", "coderr"), "did you mean 'coder'?"),
        (("--prompts", "defualt"), "prompts 'defualt'"),
        (("--lr", 0), "lr should be greater than 0, got 0.0"),
        (("--autocast", "float7"), "float7"),
        (("--coder", "mutnat"), "did you mean 'mutant'?"),
        (("-p", "statrer"), "did you mean 'starter'?"),
        (("--held-out", "starter"), "all problems of starter are held out"),
    ],
)
def test_what_is_wrong_is_refused_by_name(mine: str, options: tuple[object, ...], said: str) -> None:
    assert said in refused("sft", mine, *FEW, "-o", "new", *options)
    assert not Path("new").exists()


def test_the_settings_of_a_training_have_shortcuts(mine: str, folder: Path) -> None:
    for shortcut, said in (
        (("--coder", "./mnie", "--tester", mine), "agents.coder.model: the folder './mnie' does not exist"),
        (("--coder", mine, "--tester", "broken"), "its chat template fails"),
        (("--set", "training.lr=-1"), "training.lr should be greater than 0"),
        (("--set", "training.learning_rate=1"), "unknown setting 'training.learning_rate'"),
        (("--problems", "statrer"), "did you mean 'starter'?"),
    ):
        shutil.rmtree("broken", ignore_errors=True)
        shutil.copytree(mine, "broken")
        Path("broken/chat_template.jinja").write_text("{{ raise_exception('I take nobody') }}")
        usual = () if "--coder" in shortcut else ("--coder", mine, "--tester", mine)
        assert said in refused("train", "code-a1", "-o", "run", *usual, *shortcut)
        assert not Path("run").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["broken", "mine", "my_agents.py"]
