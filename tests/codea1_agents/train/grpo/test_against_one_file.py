"""What RLlib's learner learns from a judged round is what `examples/grpo_in_one_file.py` learns from it."""

from __future__ import annotations

import importlib
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
from codea1_agents.prompts import Message, load_prompts
from codea1_env import Referee, preset
from codea1_env.problems import Problem
from tests.support import ROOT
from tests.support.grpo import learner_of, moved, record_gradients, scored

pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from codea1_agents.train.grpo.advantages import group_advantages, top_variance  # noqa: E402
from codea1_agents.train.grpo.batch import planned  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own
N_PROBLEMS = 3


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module("grpo_in_one_file")


def program_for(problem: Problem, draw: Random) -> str:
    return draw.choice([problem.solution, *(each.program for each in problem.wrong_programs), "def f("])


def suite_for(problem: Problem, draw: Random) -> str:
    """Some of its answers are those of other cases."""
    cases = draw.sample(problem.golden, 4)
    answers = [draw.choice([case, case, draw.choice(problem.golden)]).expected for case in cases]
    return "\n".join(f"assert {case.expression} == {answer}" for case, answer in zip(cases, answers, strict=True))


@pytest.fixture
def played(example: Any, tiny_folder: Path) -> Any:
    """A round whose replies are not the model's, as this one writes no programs; nothing says how probable they are."""
    referee = Referee("tiny:train", replace(preset("fixed"), tests_per_suite=example.K))
    problems = {problem.statement: problem for problem in list(referee.problems)[:N_PROBLEMS]}
    tokenizer = load_tokenizer(str(tiny_folder))
    chat, prompts, draw = ChatFormat(tokenizer, ""), load_prompts("tiny"), Random(0)

    def replied(prompt: str, role: str) -> Any:
        first, _, program = prompt.partition("\n")
        problem = problems[first.removeprefix("code ").removeprefix(f"test {example.K} ")]
        seen = {"problem": problem.statement, "program": program, "examples": "", "entry_point": "f", "feedback": ""}
        messages = prompts.messages(seen, {"role": role, "tests_per_suite": example.K})
        assert messages == (Message("user", prompt),)
        text = program_for(problem, draw) if role == "coder" else suite_for(problem, draw)
        tokens = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        return example.Reply(chat.prompt_ids(messages), tokens, [0.0] * len(tokens), text)

    writers = {role: lambda asked, r=role: [replied(prompt, r) for prompt in asked] for role in example.ROLES}
    return example.play(referee, list(problems.values()), writers)


def spoilt(rewards: Any) -> Any:
    """Return rewards of which one group has equal ones and two groups lack one, as after a failure of the sandbox."""
    found = rewards.clone().flatten(0, -2)
    found[0], found[1, 0], found[2, 0] = 0.5, torch.nan, torch.nan
    return found.view(rewards.shape)


@pytest.mark.parametrize("form", [lambda rewards: rewards, spoilt], ids=["whole", "spoilt"])
def test_advantages_are_the_same(example: Any, played: Any, form: Any) -> None:
    of_coder, of_tester = form(played.coder_rewards), form(played.tester_rewards)
    coder, tester = group_advantages(of_coder.numpy()), group_advantages(of_tester.numpy())
    trains = tester.is_trained.any(axis=-1, keepdims=True)
    kept = top_variance(np.where(trains, of_tester.numpy(), np.nan), example.KEPT)
    assert 0 < kept.sum() < trains.sum()  # there is a choice
    assert min((~each.is_trained.any(axis=-1)).sum() for each in (coder, tester)) == (form is spoilt)  # flat groups
    expected = np.where(tester.is_trained & kept[..., None], tester.values, np.nan)
    assert example.suite_advantages(of_tester).numpy() == pytest.approx(expected, abs=1e-12, nan_ok=True)
    expected = np.where(coder.is_trained, coder.values, np.nan)
    assert example.group_advantages(of_coder).numpy() == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_the_same_replies_learn(example: Any, played: Any) -> None:
    expected: dict[str, list[tuple[str, float]]] = {"coder": [], "tester": []}
    for judged in played.judged:
        coder, tester = group_advantages(judged.coder_rewards), group_advantages(judged.tester_rewards)
        kept = top_variance(judged.tester_rewards, example.KEPT)
        expected["coder"] += [(judged.programs[n], coder.values[n]) for n in np.flatnonzero(coder.is_trained)]
        places = np.argwhere(tester.is_trained & kept[:, None])
        expected["tester"] += [(judged.suites[n][m], tester.values[n, m]) for n, m in places]
    for role, (replies, advantages) in example.replies_to_train(played).items():
        assert [reply.text for reply in replies] == [text for text, _ in expected[role]]
        assert advantages.tolist() == pytest.approx([advantage for _, advantage in expected[role]], abs=1e-6)


@pytest.mark.parametrize("role", ["coder", "tester"])
def test_loss_and_gradients_are_the_same(example, played, role, tiny_folder, monkeypatch):
    monkeypatch.setattr(example, "KL", 0.1)  # the gradient of the example's .001 would be lost in rounding
    learner = learner_of(str(tiny_folder), kl_coeff=example.KL, grad_clip=None)
    module = learner.module["coder"]  # its only one
    draw = torch.Generator().manual_seed(0)
    moved(module.model, by=0.02)  # else it would be its own reference
    own, (base, _) = deepcopy(module.model), example.load(tiny_folder, 0)

    replies, advantages = example.replies_to_train(played)[role]
    with torch.no_grad():
        now, mask = example.token_log_probs(own, replies)
    old = now + 1.6 * torch.rand(now.shape, generator=draw) - 0.8
    rows = zip(replies, old, mask, strict=True)
    replies = [replace(reply, log_probs=row[of_reply].tolist()) for reply, row, of_reply in rows]
    loss = example.loss_of(own, base, replies, advantages)
    loss.backward()

    rows = []
    for reply, advantage in zip(replies, advantages.tolist(), strict=True):
        row = scored("coder", 1, 1, advantage=advantage)
        response = replace(row.response, tokens=tuple(reply.tokens), log_probs=tuple(reply.log_probs))
        rows.append(replace(row, prompt=tuple(reply.prompt), response=response))
    record_gradients(learner)
    found = learner.update(episodes=planned(rows, 1, (0,)))["coder"]
    gradients = learner.gradients["coder"]

    assert 0.1 < found["clip_share"].peek() < 0.9
    assert found["kl"].peek() > 0.01
    assert found["loss"].peek() == pytest.approx(loss.item(), abs=1e-7)
    expected = {name: parameter.grad.numpy() for name, parameter in own.named_parameters()}
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        assert abs(gradient - expected[name]).max() < 1e-5 * abs(expected[name]).max(), name


def test_a_sampled_reply_has_the_log_probabilities_of_the_learner(example: Any, tiny_folder: Path) -> None:
    model, tokenizer = example.load(tiny_folder, 0)
    prompts = ["code sum of odd items", "code c", "test 4 c\ndef f(xs): pass"] * 4
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        found.append(example.write(model, tokenizer, prompts, 12))
        end = found[0][0].tokens[3]  # this model never ends by itself
        tokenizer.eos_token, model.generation_config.eos_token_id = tokenizer.convert_ids_to_tokens(end), end
    replies = found[1]
    assert {len(each.tokens) for each in replies} > {4}
    with torch.no_grad():
        log_probs, mask = example.token_log_probs(model, replies)
    assert log_probs[mask].tolist() == pytest.approx([each for reply in replies for each in reply.log_probs], abs=1e-5)
