from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import re
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.adapters.messages import ROLES, messages
from codea1_agents.adapters.trl import coder_env, dataset, reward_function
from codea1_env import Referee
from codea1_env.errors import AgentUnavailable, UserError
from tests.support import ROOT
from tests.support.command_line import run_python
from tests.support.language_models import chat_phrase_folder, chat_tokenizer, phrase_model, phrase_tokenizer
from tests.support.toys import ADD

RIGHT, WRONG = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"
SUITE = "assert add(1, 2) == 3\nassert add(2, 2) == 4"

REPLIES = {
    "coder": [f"```python\ndef f(x):\n    return {value}\n```" for value in ("x + 1", "x", "2 * x")],
    "tester": ["```python\nassert f(1) == 2\nassert f(2) == 3\n```", "```python\nassert f(1) == 7\n```", "nothing"],
}


def said(text: str) -> list[dict[str, str]]:
    """A completion as TRL passes it for a chat data set."""
    return [{"role": "assistant", "content": text}]


def new_log() -> tuple[dict[str, list[Any]], dict[str, float], dict[str, Any]]:
    """Columns and metrics, and the arguments by which a reward function logs them."""
    columns, metrics = {}, {}
    return columns, metrics, {"log_extra": columns.__setitem__, "log_metric": metrics.__setitem__}


def test_a_coder_is_paid_for_golden_tests_or_for_suites_of_the_data_set():
    reward = reward_function("coder", Referee([ADD], "golden"))
    found = reward(completions=[said(RIGHT), said("no program")], problem_id=[ADD.id] * 2, suite=["", ""], prompts=[])
    assert found == [1.0, 0.0]
    assert reward.__name__ == "coder_reward"
    reward = reward_function("coder", Referee([ADD]))
    assert reward(completions=[RIGHT, WRONG], problem_id=[ADD.id] * 2, suite=[SUITE] * 2) == [1.0, 0.0]


def test_a_coder_plays_against_a_frozen_tester_that_sees_each_program():
    shown = []

    def tester(observation: Any) -> str:
        shown.append(observation["program"])
        return SUITE

    reward = reward_function("coder", Referee([ADD]), against=tester)
    replies = [said(RIGHT), said(WRONG), said("")]
    assert reward(completions=replies, problem_id=[ADD.id] * 3, suite=[""] * 3) == [1.0, 0.0, 0.0]
    assert shown == [RIGHT.strip(), WRONG.strip()]


def test_a_tester_is_paid_for_the_faults_that_it_finds_if_the_program_loads():
    reward = reward_function("tester", Referee([ADD]))
    found = reward(completions=[said(SUITE), said("nothing")], problem_id=[ADD.id] * 2, program=[WRONG] * 2)
    assert found[0] > found[1] == 0.0
    columns, metrics, log = new_log()
    reward = reward_function("tester", Referee([ADD]), logs_parts=True)
    given = {"completions": [SUITE, SUITE], "problem_id": [ADD.id] * 2, "program": [WRONG, "def add(a, b:"]}
    first, second = reward(**given, **log)
    assert first > 0.0
    assert second is None
    assert metrics["tester/masked"] == 0.5
    assert columns["masked_because"] == ["", "the program does not load, so the tester is skipped"]


def test_masked_replies_are_none_and_logged_with_their_reason(broken_sandbox):
    columns, metrics, log = new_log()
    reward = reward_function("coder", Referee([ADD], sandbox=broken_sandbox), logs_parts=True)
    found = reward(completions=[RIGHT, RIGHT], problem_id=[ADD.id] * 2, suite=[SUITE] * 2, **log)
    assert found == [None, None]
    assert metrics == {"coder/masked": 1.0}
    assert all(columns["masked_because"])

    def tester(observation: Any) -> str:
        raise AgentUnavailable("the endpoint is down")

    reward = reward_function("coder", Referee([ADD]), against=tester)
    assert reward(completions=[RIGHT], problem_id=[ADD.id], suite=[""]) == [None]


def test_parts_are_logged_on_request_only():
    columns, metrics, log = new_log()
    given = {"completions": [RIGHT, WRONG], "problem_id": [ADD.id] * 2, "suite": [SUITE] * 2, **log}
    reward_function("coder", Referee([ADD]))(**given)
    assert metrics == {}
    reward_function("coder", Referee([ADD]), logs_parts=True)(**given)
    assert metrics == {"coder/pass_new": 0.5, "coder/masked": 0.0}
    assert columns["loads"] == ["passed", "passed"]


def test_settings_that_could_not_teach_are_refused():
    with pytest.raises(UserError, match="never pay a tester"):
        reward_function("tester", Referee([ADD], "golden"))
    with pytest.raises(UserError, match="pass the frozen coder to the data set"):
        reward_function("tester", Referee([ADD]), against="mutant")
    with pytest.raises(UserError, match="a coder is paid by tests"):
        reward_function("coder", Referee([ADD]))(completions=[RIGHT], problem_id=[ADD.id], suite=[""])
    with pytest.raises(UserError, match="needs 'program', got 'problem_id', 'prompts'"):
        reward_function("tester", Referee([ADD]))(completions=[SUITE], problem_id=[ADD.id], prompts=[])
    with pytest.raises(UserError, match="needs 'problem_id', got 'suite'"):
        reward_function("coder", Referee([ADD]))(completions=[RIGHT], suite=[SUITE])
    with pytest.raises(UserError, match="pass it to the reward function"):
        dataset("coder", [ADD], against="fuzz")


def test_a_coder_repairs_its_program_turn_by_turn():
    seen = []

    def tester(observation: Any) -> str:
        seen.append((int(observation["round"]), observation["program"]))
        return SUITE

    env = coder_env(Referee([ADD]), against=tester, turns=3)()
    assert "at most 3 times" in env.reset(problem_id=ADD.id, prompt=[], suite="")
    assert env.submit(WRONG).splitlines()[:2] == ["2 of 2 tests failed.", "add(1, 2) should be 3; it gave -1"]
    assert env.get_reward() == 0.0
    assert env.submit(3) == "The argument program must be text."
    assert env.submit(RIGHT) == "The episode is over."
    assert (env.get_reward(), env.submit(WRONG)) == (1.0, "The episode is over.")
    assert (env.get_reward(), seen) == (1.0, [(0, WRONG.strip()), (1, RIGHT.strip())])
    env.reset(problem_id=ADD.id)
    assert env.get_reward() == 0.0  # nothing was submitted
    env.reset(problem_id=ADD.id)
    said = [env.submit(f"def add(a, b):\n    return {n}") for n in range(3)]
    assert ["over" in text for text in said] == [False, False, True]


def test_what_fails_of_ours_masks_an_episode_and_an_agents_error_ends_the_training(broken_sandbox):
    env = coder_env(Referee([ADD], sandbox=broken_sandbox), against=lambda observation: SUITE)()
    env.reset(problem_id=ADD.id)
    env.submit(RIGHT)
    assert env.get_reward() is None

    def tester(observation: Any) -> str:
        raise AgentUnavailable("the endpoint is down") if "-" in observation["program"] else ValueError("a mistake")

    env = coder_env(Referee([ADD]), against=tester)()
    env.reset(problem_id=ADD.id)
    env.submit(WRONG)
    assert env.get_reward() is None
    env.reset(problem_id=ADD.id)
    for call in (lambda: env.submit(RIGHT), env.get_reward):
        with pytest.raises(UserError, match="a mistake"):
            call()
    with pytest.raises(UserError, match="turns"):
        coder_env(Referee([ADD]), against=tester, turns=0)


def train_two_steps(role: Any, folder: Path, problems: str, reward: Any, rows: Any) -> Any:
    """Train a model whose every token is a whole reply for two steps; return the trainer."""
    import torch
    import trl

    tokenizer = phrase_tokenizer(REPLIES[role])
    tokenizer.chat_template = "{{ messages[-1]['content'] }}"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    batch = {"per_device_train_batch_size": 16, "num_generations": 16, "max_completion_length": 1, "max_steps": 2}
    quiet = {"save_strategy": "no", "report_to": [], "disable_tqdm": True, "logging_steps": 1}
    on_cpu = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    trainer = trl.GRPOTrainer(
        model=phrase_model(0, REPLIES[role], max_position_embeddings=4096),
        reward_funcs=reward,
        train_dataset=rows,
        processing_class=tokenizer,
        args=trl.GRPOConfig(output_dir=str(folder), learning_rate=1e-2, **batch, **quiet, **on_cpu),
    )
    before = [weight.detach().clone() for weight in trainer.model.parameters()]
    trainer.train()
    assert not all(map(torch.equal, before, trainer.model.parameters()))
    return trainer


def steps_of(trainer: Any, role: str) -> list[dict[str, float]]:
    return [entry for entry in trainer.state.log_history if f"rewards/{role}_reward/mean" in entry]


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of TRL and what it imports
def test_two_steps_of_a_tester_with_the_real_trainer(tmp_path, increments):
    pytest.importorskip("trl", reason="the extra trl is not installed")
    rows = dataset("tester", increments, against={"toy/0": ["def f(x):\n    return x"]})
    reward = reward_function("tester", Referee(increments), logs_parts=True)
    steps = steps_of(train_two_steps("tester", tmp_path, increments, reward, rows), "tester")
    assert [0 < step["tester/validity"] < 1 for step in steps] == [True, True]
    assert all(step["reward_std"] > 0 and step["tester/masked"] == 0 for step in steps)


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of TRL and what it imports
def test_two_steps_of_a_coder_with_the_real_trainer_that_leaves_masked_replies_out(tmp_path, increments):
    pytest.importorskip("trl", reason="the extra trl is not installed")

    def tester(observation: Any) -> str:
        if "2 *" in observation["program"]:
            raise AgentUnavailable("the endpoint is down")
        return REPLIES["tester"][0]

    reward = reward_function("coder", Referee(increments), against=tester, logs_parts=True)
    trainer = train_two_steps("coder", tmp_path, increments, reward, dataset("coder", increments))
    steps = steps_of(trainer, "coder")
    assert [0 < step["coder/masked"] < 1 for step in steps] == [True, True]
    logs = trainer._logs
    table = zip(logs["completion"], logs["rewards"]["coder_reward"], logs["advantages"], strict=True)
    masked = [(reward, advantage) for text, reward, advantage in table if "2 *" in str(text)]
    assert masked
    assert all(isnan(reward) and advantage == 0.0 for reward, advantage in masked)


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of TRL and what it imports
def test_two_steps_of_a_coder_in_turns_with_the_real_trainer(tmp_path, increments):
    trl = pytest.importorskip("trl", reason="the extra trl is not installed")
    from trl.chat_template_utils import qwen2_5_chat_template

    programs = [f"def f(x):\n    return {value}" for value in ("x + 1", "x", "2 * x")]
    calls = [{"name": "submit", "arguments": {"program": program}} for program in programs]
    phrases = [f"<tool_call>\n{json.dumps(call)}\n</tool_call><|im_end|>" for call in calls]
    tokenizer = chat_tokenizer([qwen2_5_chat_template], phrases)
    tokenizer.chat_template = qwen2_5_chat_template
    folder = chat_phrase_folder(tmp_path / "model", tokenizer, phrases, vocab_size=len(tokenizer))
    shown = []

    def tester(observation: Any) -> str:
        shown.append(int(observation["round"]))
        return REPLIES["tester"][0]

    batch = {"per_device_train_batch_size": 8, "num_generations": 8, "max_completion_length": 600, "max_steps": 2}
    quiet = {"save_strategy": "no", "report_to": [], "disable_tqdm": True, "logging_steps": 1}
    on_cpu = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    generation = {
        "generation_kwargs": {"eos_token_id": tokenizer.convert_tokens_to_ids([tokenizer.eos_token, *phrases])}
    }
    trainer = trl.GRPOTrainer(
        model=folder,
        train_dataset=dataset("coder", increments),
        environment_factory=coder_env(Referee(increments), against=tester, turns=2),
        processing_class=tokenizer,
        args=trl.GRPOConfig(
            output_dir=str(tmp_path / "run"), learning_rate=1e-2, **batch, **quiet, **on_cpu, **generation
        ),
    )
    trainer.train()
    steps = [entry for entry in trainer.state.log_history if "rewards/CoderEnv/mean" in entry]
    assert len(steps) == 2
    assert all(step["tools/call_frequency"] > 0 and step["tools/failure_frequency"] == 0 for step in steps)
    assert set(shown) == {0, 1}


def test_a_frozen_coder_writes_the_programs_of_the_testers_rows():
    pytest.importorskip("datasets", reason="the extra trl is not installed")
    rows = dataset("tester", [ADD], against=lambda _: WRONG, samples=3)
    assert rows["program"] == [WRONG.strip()]
    assert set(rows.column_names) == {"prompt", "problem_id", "program"}


@pytest.mark.slow
@pytest.mark.models
def test_the_example_trains_both_roles_in_turns(tmp_path, increments):
    pytest.importorskip("trl", reason="the extra trl is not installed")
    replies = [*REPLIES["coder"], *REPLIES["tester"]]
    prompts = [each["content"] for role in ROLES for each in messages(role, ADD, program="def f(x):")]
    tokenizer = chat_tokenizer(prompts, replies)
    folder = chat_phrase_folder(tmp_path / "model", tokenizer, replies, vocab_size=len(tokenizer))
    printed = run_python(ROOT / "examples" / "coevolve_with_trl.py", folder, increments, folder=tmp_path)
    found = re.findall(r"^runs/trl/(\S+) rewards \d\S* \d\S*$", printed, re.MULTILINE)
    assert found == ["coder-1", "tester-1", "coder-2", "tester-2"]


@pytest.mark.parametrize("is_async", [False, True])
def test_reward_functions_pickle_and_may_be_coroutines(is_async):
    reward = pickle.loads(pickle.dumps(reward_function("coder", Referee("starter", "golden"), is_async=is_async)))
    assert (reward.__name__, inspect.iscoroutinefunction(reward)) == ("coder_reward", is_async)
    columns = {"completions": ["no program"], "problem_id": ["starter/count_carries"], "suite": [""]}
    found = reward(**columns)
    assert (asyncio.run(found) if is_async else found) == [0.0]
