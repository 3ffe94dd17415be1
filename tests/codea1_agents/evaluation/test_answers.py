"""Probabilities of answers, against a computation of one row at a time; and what a tester's replies ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codea1_agents.evaluation.answers import answer_differences, questions_of
from codea1_agents.evaluation.tester import Mode, TesterTask, evaluate_tester
from codea1_agents.evaluation.tester_figures import figures_of_tester
from codea1_agents.play.named_agent import NamedAgent
from codea1_env import Referee
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import Tree, Turn
from codea1_env.sandbox import Sandbox
from tests.support.command_line import codea1
from tests.support.language_models import CHAT_TEMPLATE, chat_folder
from tests.support.toys import ADD, WRONG, fenced

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

REPLY = fenced("assert add(1, 3) == 4\nassert 7 == add(-1, -2)\nassert add(2, 2) > 3\nassert add('a', 'é') == 'aé'")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("models")
    return [chat_folder(place / kind, CHAT_TEMPLATE, kind) for kind in ("Llama", "Qwen2")]


def agent(folder: Path, **options: Any) -> NamedAgent:
    from codea1_agents.models.transformers_agent import TransformersAgent

    return NamedAgent(TransformersAgent(model=str(folder), **{"max_tokens": 8, "batch_size": 2, **options}), "t")


@pytest.fixture(scope="module")
def turn_and_cases() -> tuple[Turn, Any]:
    with Referee(ProblemSet("toys", [ADD])) as referee:
        rounds = referee.open([Tree(ADD)])
        rounds.submit_programs([WRONG])
        (turn,) = rounds.tester_turns()
        rounds.submit_suites([REPLY])
        (judged,) = rounds.results()
    assert judged.report is not None
    return turn, judged.report.candidates[0].suites[0].suite.cases


def test_a_question_is_what_stands_before_an_answer_with_the_right_one(turn_and_cases: tuple[Turn, Any]) -> None:
    found = questions_of(turn_and_cases[0], REPLY, turn_and_cases[1])
    assert [(REPLY[len(each.begun) - 4 :][:6], each.answer) for each in found] == [
        (" == 4\n", "4"),
        (" == 'a", "'aé'"),
    ]  # the second test answers before it asks, and the third one predicts no value


def by_hand(folder: Path, turn: Turn, begun: str, answer: str, temperature: float) -> float:
    """The probability of the tokens of the answer and of one after them that cannot continue it, without padding."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    inner = agent(folder).inner
    prompt = inner._format.prompt_ids(inner._prompts.messages(turn.observation, turn.info))
    before, whole = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (begun, begun + answer))
    n = 0
    while n < len(before) and before[n] == whole[n]:
        n += 1
    texts = [tokenizer.decode([each], skip_special_tokens=True) for each in range(len(tokenizer))]
    found, so_far = 0.0, 1.0
    for k in range(n, len(whole) + 1):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *whole[:k]]])).logits[0, -1] / temperature
        chances = logits.softmax(-1).tolist()
        rest = "".join(texts[each] for each in whole[k:])
        for chance, text in zip(chances, texts, strict=False):
            after = text[len(rest) :][:1]
            goes_on = after.isalnum() or after in list("_.'\"([{")
            is_end = text.startswith(rest) and (after or not rest) and not goes_on
            found += so_far * chance if is_end else 0.0
        so_far *= chances[whole[k]] if k < len(whole) else 1.0
    return found


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_probabilities_are_exact(folders: list[Path], turn_and_cases: tuple[Turn, Any], temperature: float) -> None:
    questions = questions_of(turn_and_cases[0], REPLY, turn_and_cases[1])
    tester, base = (agent(folder, temperature=temperature) for folder in folders)
    found = answer_differences(questions, tester, base)
    expected = [
        by_hand(folders[0], each.turn, each.begun, each.answer, temperature)
        - by_hand(folders[1], each.turn, each.begun, each.answer, temperature)
        for each in questions
    ]
    assert found == pytest.approx(expected, rel=1e-2, abs=1e-7)
    assert max(map(abs, found)) > 1e-5
    assert answer_differences(questions, tester, tester) == [0.0] * len(questions)


@pytest.mark.parametrize("mode", Mode)
def test_an_evaluation_compares_a_tester_with_its_base(sandbox: Sandbox, folders: list[Path], mode: Mode) -> None:
    class Dictated:
        """Writes known tests with the probabilities of a model."""

        def __init__(self, folder: Path) -> None:
            self.asked: list[str] = []
            self._answering = agent(folder).inner

        def answer_probabilities(self, *asked: Any) -> list[float]:
            self.asked += asked[-1]
            return list(self._answering.answer_probabilities(*asked))

        def act(self, observation: Any, info: Any) -> str:
            return REPLY if mode is Mode.SUITE else fenced(f"assert add({info['round']}, 1) == 2")

    tester, base = (NamedAgent(Dictated(folder), "dictated") for folder in folders)
    task = TesterTask(tests=3, mode=mode, max_mutants=0)
    (records,) = evaluate_tester([ADD], tester, sandbox, task, base=base)
    assert records[0].answers not in (None, 0.0)
    assert figures_of_tester(records, tests=3).figures["answers"].mean == records[0].answers
    # All tests that predict a value count, also the wrong ones.
    right = [test.right for test in records[0].tests]
    assert right == ([True, False, True] if mode is Mode.SUITE else [False, True, False])
    assert tester.inner.asked == base.inner.asked == (["4"] if mode is Mode.SUITE else ["1", "2", "3"])
    (without,) = evaluate_tester([ADD], tester, sandbox, task)
    assert "answers" not in figures_of_tester(without, tests=3).figures


def test_an_agent_without_probabilities_is_refused_before_anything_runs() -> None:
    result = codea1("eval", "tester", "--agent", "fuzz", "--base", "boundary", "-p", "starter", "--limit", 1)
    assert result.exit_code == 2
    assert "fuzz does not tell probabilities; answers are compared" in result.stderr


def test_an_answer_may_end_within_its_last_token(folders: list[Path], turn_and_cases: tuple[Turn, Any]) -> None:
    """Tokenizers of real models write a bracket and the line feed behind it as one token."""
    inner = agent(folders[0]).inner
    merged = "]\n"
    inner._tokenizer.add_tokens([merged])
    inner._model.resize_token_embeddings(len(inner._tokenizer))
    number = inner._tokenizer.convert_tokens_to_ids(merged)
    with torch.no_grad():
        inner._model.get_output_embeddings().weight[number] = 0.0
    turn = turn_and_cases[0]

    def chance() -> float:
        asked = [turn.observation], [turn.info], ["assert add([1], [2]) == "], ["[1, 2]"]
        return float(inner.answer_probabilities(*asked)[0])

    assert number in inner._ending_after("]")
    with_it = chance()
    inner._ordered_tokens.remove(number)
    assert chance() < with_it
