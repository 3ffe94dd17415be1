"""A warm start from problems to a folder, with figures before and after; what an interruption leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

from codea1_agents.train.sft.fine_tuning import SftSettings
from codea1_agents.train.sft.warm_start import ExampleSettings, WarmStart, examples_of, held_out_part, warm_start
from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.sandbox import Sandbox
from tests.support.language_models import CHAT_TEMPLATE, chat_folder

EXAMPLES = ExampleSettings(prompts="tiny", samples=2, tests=2, max_reply_tokens=64)
QUICK = SftSettings(epochs=1, examples_per_step=2, lr=1e-2)


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(chat_folder(tmp_path_factory.mktemp("warm") / "model", CHAT_TEMPLATE, initializer_range=0.02))


@pytest.fixture
def run(chat_model: str, increments: str, sandbox: Sandbox) -> Callable[..., WarmStart]:
    """Fine-tune the chat model, or another one, to a new folder, on problems that are also the held-out ones."""

    def run(out: Path, model: str = chat_model, training: SftSettings = QUICK, **options: Any) -> WarmStart:
        problems = load_problems(increments)
        return warm_start(model, problems, out, sandbox, EXAMPLES, training, held_out=problems, **options)

    return run


def test_both_roles_learn_and_their_figures_rise(run: Any, chat_model: str, tmp_path: Path) -> None:
    training = SftSettings(epochs=60, examples_per_step=8, lr=1e-2)
    done = run(tmp_path / "new", training=training, n_measured=3)
    assert done.before["pass@1"].mean == done.before["validity"].mean == 0
    assert done.after["pass@1"].mean > 0.5
    assert done.after["validity"].mean > 0
    assert done.tuned.held_out_after["coder"] < 0.1 < done.tuned.held_out_before["coder"]
    record = json.loads((tmp_path / "new" / "sft.json").read_text())
    assert record["held_out"]["after"]["pass@1"]["mean"] == done.after["pass@1"].mean
    assert record["n_examples"] == {"coder": 3, "tester": record["n_examples"]["tester"]}
    assert (record["model"], record["examples"]["prompts"], record["training"]["epochs"]) == (chat_model, "tiny", 60)
    assert {path.name for path in tmp_path.iterdir()} == {"new"}


def test_the_same_seed_gives_the_same_folder(run: Any, tmp_path: Path) -> None:
    for name in ("one", "other"):
        run(tmp_path / name)
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes(), path.name


def test_ctrl_c_writes_the_model_of_the_steps_done(run: Any, tmp_path: Path) -> None:
    training = SftSettings(epochs=30, examples_per_step=2, lr=1e-2)

    def interrupt(done: int, total: int) -> None:
        if done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    done = run(tmp_path / "new", training=training, n_measured=1, progress=interrupt)
    assert (done.tuned.is_interrupted, done.tuned.n_steps) == (True, 2)
    assert done.after == {}
    assert json.loads((tmp_path / "new" / "sft.json").read_text())["steps"] == 2
    assert run(tmp_path / "more", str(tmp_path / "new")).tuned.n_steps > 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_leaves_no_folder(run: Any, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "new", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_is_refused_before_programs_are_written(run: Any, chat_model: str, tmp_path: Path) -> None:
    shutil.copytree(chat_model, tmp_path / "broken")
    (tmp_path / "broken" / "chat_template.jinja").write_text("{{ raise_exception('no roles') }}")
    for model, said in (("models/chatt", "does not exist"), (str(tmp_path / "broken"), "chat template fails")):
        with pytest.raises(UserError, match=said):
            run(tmp_path / "new", model)
    assert not (tmp_path / "new").exists()


def test_an_eighth_of_the_problems_is_held_out_by_the_seed() -> None:
    problems = load_problems("starter")
    found = held_out_part(problems, 0)
    assert len(found) == len(problems) // 8
    assert {each.id for each in found} < {each.id for each in problems}
    assert held_out_part(problems, 0) == found
    assert held_out_part(problems, 1) != found
    assert len(held_out_part(ProblemSet("few", tuple(problems[:7])), 0)) == 0


@pytest.mark.parametrize("source", ["starter", "humaneval"])
def test_problems_that_are_shipped_give_examples_for_both_roles(source: str, sandbox: Sandbox) -> None:
    problems = load_problems(source, limit=12)
    found = examples_of("", problems, sandbox, ExampleSettings())
    assert sum(each.role == "coder" for each in found) == len(problems)
    shown = {each.problem_id for each in found if each.role == "tester"}
    assert len(shown) >= 0.9 * len(problems)


def test_a_tester_may_see_failing_programs_only(sandbox: Sandbox) -> None:
    problems, settings = load_problems("starter", limit=4), ExampleSettings(roles=("tester",), coder="reference")
    assert examples_of("", problems, sandbox, settings)
    assert examples_of("", problems, sandbox, replace(settings, failing=True)) == []
