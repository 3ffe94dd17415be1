"""The tasks for Inspect, evaluated by Inspect itself with replies that are given."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from codea1_env.bank import Bank, BankEntry, ProblemBank
from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet, WrongProgram
from tests.codea1_agents.adapters.conftest import python_of
from tests.support.toys import ADD, BROKEN, LAST, LOOKS_RIGHT, RIGHT, SHARP, WRONG, fenced

pytest.importorskip("inspect_ai", reason="the extra inspect is not installed: make harnesses-test")

from inspect_ai import eval as evaluate
from inspect_ai import score as score_again
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import ChatMessage, Model, ModelAPI, ModelOutput, ModelUsage, get_model, modelapi

from codea1_agents.adapters.inspect_tasks import codea1_coder, codea1_duel, codea1_reward, codea1_rewards, codea1_tester

PROBLEMS = ProblemSet("toys", (replace(ADD, wrong_programs=(WrongProgram(WRONG, "subtracts", 1),)),))
BOTH = ProblemSet("toys", (ADD, LAST))


def says(**replies: Sequence[str]) -> Model:
    """A model that gives the replies to problems with these entry points in order; an error if it is asked for more."""
    left: dict[str, Iterator[str]] = {name: iter(texts) for name, texts in replies.items()}

    def reply(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        name = next(name for name in left if f"def {name}(" in messages[-1].text)
        output = ModelOutput.from_content("mockllm", next(left[name]))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else a tokenizer is downloaded
        return output

    return get_model("mockllm/model", custom_outputs=reply, memoize=False)


@pytest.fixture
def evaluated(tmp_path: Path) -> Callable[..., EvalLog]:
    """Evaluate one task and read the log that was written."""

    def run(task: Any, **options: Any) -> EvalLog:
        (log,) = evaluate(task, log_dir=str(tmp_path), display="none", log_level="error", max_samples=1, **options)
        assert log.status == "success", log.error
        return read_eval_log(log.location)

    return run


def scores(log: EvalLog) -> dict[tuple[str, str | None], dict[str, float]]:
    return {
        (score.name, score.reducer): {name: metric.value for name, metric in score.metrics.items()}
        for score in log.results.scores
    }


def test_a_coder_is_scored_by_golden_tests_with_pass_at_k(evaluated) -> None:
    task = codea1_coder(BOTH, epochs=2)
    log = evaluated(task, model=says(add=[RIGHT, BROKEN], last=[fenced(LAST.solution)] * 2))
    found = scores(log)
    assert found["codea1_reward", "mean"]["mean"] == 0.75
    assert found["codea1_reward", "pass_at_1"]["mean"] == 0.75
    assert found["codea1_reward", "pass_at_2"]["mean"] == 1.0
    assert found["codea1_reward", None] == {"golden_pass_rate": 0.75, "invalid_candidate": 0.0}
    verdicts = {(each.id, each.epoch): each.scores["codea1_reward"].metadata["loads"] for each in log.samples}
    assert verdicts["toy/add#1", 2] == "syntax_error"


def test_a_tester_is_scored_on_known_wrong_programs_and_again_under_other_rules(evaluated) -> None:
    log = evaluated(codea1_tester(PROBLEMS), model=says(add=[SHARP]))
    (sample,) = log.samples
    score = sample.scores["codea1_reward"]
    assert "return a - b" in sample.input[-1].text
    assert score.value == pytest.approx(sum(score.metadata["terms"].values())) == 0.25
    assert "validity 0.125" in score.explanation
    again = score_again(log, codea1_reward("tester", PROBLEMS, "utrl"), action="overwrite", display="none")
    assert scores(again)["codea1_reward", "mean"]["mean"] == pytest.approx(0.9583, abs=1e-4)


def test_the_scorer_of_both_roles_reads_the_logs_of_all_tasks(evaluated) -> None:
    """As `inspect score --scorer codea1/codea1_rewards` does."""
    for task, model, expected in (
        (codea1_coder(PROBLEMS), says(add=[RIGHT]), {"coder": 1.0}),
        (codea1_tester(PROBLEMS), says(add=[SHARP]), {"tester": 0.25}),
    ):
        log = evaluated(task, model=model)
        rules = "golden" if "coder" in expected else "fixed"
        again = score_again(log, codea1_rewards(PROBLEMS, rules), action="overwrite", display="none")
        found = again.samples[0].scores["codea1_rewards"].value
        assert {role: found[role] for role in expected} == expected


def test_a_reply_that_a_filter_stopped_is_no_score(evaluated) -> None:
    stopped = ModelOutput.from_content("mockllm", "I cannot", stop_reason="content_filter")
    stopped.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=[stopped])
    (sample,) = evaluated(codea1_coder(PROBLEMS), model=model).samples
    assert isnan(sample.scores["codea1_reward"].value)
    assert "content filter" in sample.scores["codea1_reward"].explanation


def test_rules_that_cannot_pay_are_refused() -> None:
    with pytest.raises(UserError, match="a coder is paid by tests"):
        codea1_coder(PROBLEMS, "fixed")
    with pytest.raises(UserError, match="never pay a tester"):
        codea1_tester(PROBLEMS, "golden")


def test_a_coder_plays_against_the_suites_of_a_bank(evaluated, tmp_path: Path) -> None:
    path = tmp_path / "b.bank.jsonl"
    Bank("b", (ProblemBank(ADD, (BankEntry("right", RIGHT),), (BankEntry("sharp", SHARP),)),)).save(path)
    log = evaluated(codea1_coder(PROBLEMS, "fixed", against=str(path)), model=says(add=[LOOKS_RIGHT]))
    assert scores(log)["codea1_reward", "mean"]["mean"] == 0.5


def test_two_models_play_a_duel_and_both_are_scored(evaluated) -> None:
    roles = {"coder": says(add=[LOOKS_RIGHT]), "tester": says(add=[SHARP])}
    log = evaluated(codea1_duel(PROBLEMS), model=says(), model_roles=roles)
    (sample,) = log.samples
    assert sample.scores["codea1_rewards"].value == {"coder": 0.5, "tester": 0.1875}
    assert "abs(a + b)" in sample.messages[-2].text
    assert {name for name, _ in scores(log)} == {"coder", "tester"}


def test_a_tester_has_no_turn_and_no_score_if_the_program_does_not_load(evaluated) -> None:
    log = evaluated(codea1_duel(PROBLEMS), model=says(), model_roles={"coder": says(add=[BROKEN]), "tester": says()})
    value = log.samples[0].scores["codea1_rewards"].value
    assert value["coder"] == 0.0
    assert isnan(value["tester"])
    assert [score.unscored_samples for score in log.results.scores] == [0, 1]


@pytest.mark.parametrize("make", [codea1_coder, codea1_duel])
def test_a_masked_reward_is_no_score(evaluated, broken_sandbox_name, make: Callable[..., Any]) -> None:
    log = evaluated(make(PROBLEMS, sandbox=broken_sandbox_name), model=says(add=[RIGHT]))
    assert all(score.unscored_samples == 1 and score.scored_samples == 0 for score in log.results.scores)
    (score,) = log.samples[0].scores.values()
    assert score.explanation == "internal error"


def test_tasks_are_found_by_name_and_the_command_reads_their_logs(evaluated) -> None:
    log = evaluated("codea1/codea1_coder", model=says(assign_lockers=["def assign_lockers(n): return []"]), limit=1)
    assert log.eval.task == "codea1/codea1_coder"
    command = [sys.executable, "-m", "inspect_ai", "log", "dump", "--header-only", log.location]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert EvalLog.model_validate_json(done.stdout).results == log.results


ASKED: list[str] = []


@modelapi(name="scripted")
class Scripted(ModelAPI):
    """A provider of models, found by name, that notes what they are asked."""

    async def generate(self, input: list[ChatMessage], **_: Any) -> ModelOutput:  # noqa: A002  Inspect's name
        ASKED.append(input[-1].text)
        return ModelOutput.from_content("scripted", "```python\nassert True\n```")


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "scripted/any")
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    monkeypatch.chdir(tmp_path)
    exec(compile(python_of("inspect"), "inspect.md", "exec"), {})
    assert "{'coder': 0.0" in capsys.readouterr().out
    assert len(ASKED) == 2
