from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from codea1_agents.cli import progress
from codea1_env.facts.judge_version import JUDGE_VERSION
from tests.support.command_line import codea1, document, one_object, refused

FIRST = ("assign_lockers", "count_carries")
"""Problems of the source `starter`."""
CHUNK = 64
"""Samples that are asked for together: with so many of each, the two problems come one after the other."""
AGENTS = """\
from pathlib import Path

from codea1_agents.models.completions import Completion, Usage
from codea1_env.errors import AgentUnavailable

RIGHT = {"f": "def f(n):\\n    return n + 1", "g": "def g(n):\\n    return n * n"}


def right(observation):
    return RIGHT[observation["entry_point"]]


class Model:
    usage = Usage()

    def act(self, observation, info):
        self.usage = self.usage.with_completions([Completion("", info["sample"] and "length", completion_tokens=500)])
        return right(observation)


def interrupted(observation):
    if Path("interrupt").exists() and observation["entry_point"] == "g":
        raise KeyboardInterrupt
    with Path("asked").open("a") as log:
        log.write(observation["entry_point"])
    return RIGHT[observation["entry_point"]]


def away(observation):
    if Path("down").exists():
        raise AgentUnavailable("the endpoint is down")
    return RIGHT[observation["entry_point"]]


def repairing(observation):
    return right(observation) if observation["feedback"] else f"def {observation['entry_point']}(n): return n"


def sometimes(observation):
    if observation["entry_point"] == "g":
        raise AgentUnavailable("g is too long")
    return tests(observation)


def tests(observation):
    return "assert f(1) == 2\\nassert f(2) == 3" if observation["entry_point"] == "f" else "assert g(3) == 9"
"""


@pytest.fixture
def source(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with two problems, and a module of agents for them."""
    rows = [
        {"id": "p/f", "statement": "def f(n): ...", "entry_point": "f", "solution": "def f(n):\n    return n + 1"},
        {"id": "p/g", "statement": "def g(n): ...", "entry_point": "g", "solution": "def g(n):\n    return n * n"},
    ]
    golden = {"f": ["assert f(1) == 2"], "g": ["assert g(3) == 9"]}
    path = folder / "two.jsonl"
    path.write_text("".join(json.dumps(row | {"golden": golden[str(row["entry_point"])]}) + "\n" for row in rows))
    (folder / "for_two.py").write_text(AGENTS)
    monkeypatch.syspath_prepend(folder)
    return path


def test_the_reference_coder_gets_one_and_the_mutant_less() -> None:
    found = {}
    for agent in ("reference", "mutant,strength=1"):
        found[agent] = document("eval", "coder", "--agent", agent, "--problems", "starter", "-n", 2, "--limit", 10)
    for key in ("pass@1", "pass@2", "avg@2"):
        assert found["reference"]["figures"][key]["mean"] == 1.0
        assert found["reference"]["figures"][key]["n_problems"] == 10
    mutant = found["mutant,strength=1"]["figures"]["pass@1"]
    assert mutant["low"] <= mutant["mean"] <= mutant["high"] < 1.0


def test_the_progress_names_the_reply_and_then_the_program_that_it_waits_for(waits: list[str]) -> None:
    assert codea1("eval", "coder", "--agent", "watched:coder", "-p", "starter", "--limit", 2, "-n", 2).exit_code == 0
    replies = [f"problem starter/{name}, sample {n} (coder watched:coder)" for name in FIRST for n in range(2)]
    assert waits[:4] == replies
    assert set(waits[4:]) <= {f"starter/{name}" for name in FIRST}
    assert waits[4:]


def test_an_interrupted_evaluation_goes_on_with_what_is_missing(folder: Path, source: Path) -> None:
    command = ("eval", "coder", "--agent", "for_two:interrupted", "--problems", source, "-n", CHUNK, "--out", "e")
    (folder / "interrupt").touch()
    result = codea1(*command)
    assert result.exit_code == 130
    assert f"interrupted after {CHUNK} of {2 * CHUNK}; the same command continues" in result.stderr
    (folder / "interrupt").unlink()
    result = codea1(*command)
    assert result.exit_code == 0
    assert (folder / "asked").read_text() == "f" * CHUNK + "g" * CHUNK
    assert json.loads((folder / "e" / "figures.json").read_text())["figures"]["pass@1"]["n_problems"] == 2


def test_repairs_are_counted_turn_by_turn_and_golden_feedback_is_no_benchmark(folder: Path, source: Path) -> None:
    command = ("eval", "coder", "--agent", "for_two:repairing", "--problems", source, "--turns", 2)
    shown = codea1(*command, "--feedback", "golden", "--out", "golden", "--json")
    assert "only the figures of turn 1 are benchmark figures" in shown.stderr
    golden = one_object(shown.stdout)
    assert {name: each["mean"] for name, each in golden["figures"].items()} == {
        "pass@1": 0.0,
        "avg@1": 0.0,
        "pass@1 (turn 2)": 1.0,
        "avg@1 (turn 2)": 1.0,
        "gain (turn 2)": 1.0,
    }
    counts = {"turn": 2, "n_repairs": 2, "n_fixed": 2, "n_broken": 0, "n_kept": {}, "n_masked": {}}
    assert golden["turns"] == [counts]
    records = (folder / "golden" / "records.jsonl").read_bytes()
    assert one_object(codea1(*command, "--feedback", "golden", "--out", "golden", "--json").stdout) == golden
    assert (folder / "golden" / "records.jsonl").read_bytes() == records
    tested = codea1(*command, "--feedback", "for_two:sometimes", "--out", "tester")
    assert "turn 2: 1 repair, 1 fixed and 0 broke the program; kept: 1 tester" in tested.stdout
    assert "benchmark" not in tested.stderr
    compared = one_object(codea1("eval", "compare", "golden", "tester", "--json").stdout)
    assert {name: each["difference"]["mean"] for name, each in compared["figures"].items()} == {
        "pass@1": 0.0,
        "avg@n": 0.0,
        "pass@1 (turn 2)": -0.5,
        "avg@n (turn 2)": -0.5,
    }
    assert "need each other, got 2 and ''" in refused(*command)
    assert "need each other, got 1 and 'fuzz'" in refused(*command[:-2], "--feedback", "fuzz")
    file = folder / "generations.jsonl"
    file.write_text('{"task_id": "p/f", "solution": ""}\n')
    replies = ("eval", "coder", "--generations", file, "--problems", source, "--turns", 2, "--feedback", "fuzz")
    assert "has the replies of one turn" in refused(*replies)


def test_what_an_unavailable_coder_left_out_is_asked_for_again(folder: Path, source: Path) -> None:
    command = ("eval", "coder", "--agent", "for_two:away", "--problems", source, "--out", "e", "--json")
    (folder / "down").touch()
    result = codea1(*command)
    assert result.exit_code == 3
    assert "unavailable for all of 2; the endpoint is down; the same" in result.stderr
    down = one_object(result.stdout)
    assert (down["n_masked"], down["n_samples"], down["figures"]["avg@1"]["mean"]) == ({"agent": 2}, 0, None)
    (folder / "down").unlink()
    up = one_object(codea1(*command).stdout)
    assert (up["n_masked"], up["n_samples"], up["figures"]["avg@1"]["mean"]) == ({}, 2, 1.0)


def test_a_coder_that_is_gone_is_not_asked_for_the_rest(folder: Path, source: Path) -> None:
    (folder / "down").touch()
    result = codea1("eval", "coder", "--agent", "for_two:away", "--problems", source, "-n", CHUNK)
    assert result.exit_code == 3
    assert f"{CHUNK} of {2 * CHUNK} were not requested; the endpoint is down" in result.stderr.replace("\n", " ")


def test_why_an_agent_was_unavailable_for_some_problems_is_a_warning(source: Path) -> None:
    result = codea1("eval", "tester", "--agent", "for_two:sometimes", "--problems", source, "--mutants", 0)
    assert result.exit_code == 0
    assert "warning: some replies are missing; g is too long\n" in result.stderr
    always = codea1("eval", "tester", "--agent", "for_two:tests", "--problems", source, "--mutants", 0)
    assert "missing" not in always.stderr


def test_a_folder_with_a_model_is_no_agent_but_could_be_one(folder: Path, source: Path) -> None:
    (folder / "v1.5").mkdir()
    command = ("eval", "tester", "--agent", "for_two:tests", "--problems", source, "--base", "v1.5")
    assert "; the model in this folder is transformers,model=v1.5\n" in refused(*command)


def test_other_settings_do_not_go_on_in_the_same_folder(source: Path) -> None:
    command = ("eval", "coder", "--agent", "for_two:right", "--problems", source, "--out", "e")
    assert codea1(*command).exit_code == 0
    assert "other settings: seed 0, now 1" in refused(*command, "--seed", 1)


def test_problems_can_be_left_out_by_id(source: Path) -> None:
    command = ("eval", "coder", "--agent", "for_two:right", "--problems", source, "--json")
    assert one_object(codea1(*command, "--without", "p/f").stdout)["n_problems"] == 1
    refused(*command, "--without", "p/h")


def test_an_option_that_the_agent_does_not_have_is_bad_input(source: Path) -> None:
    assert "temperature" in refused("eval", "coder", "--agent", "reference,temperature=0.5", "--problems", source)


def test_a_tester_is_measured_with_named_denominators(source: Path) -> None:
    command = ("eval", "tester", "--agent", "for_two:tests", "--problems", source, "--tests", 2, "--mode", "suite")
    found = one_object(codea1(*command, "--json").stdout)
    assert found["figures"]["pass@1"]["mean"] == 1.0
    assert found["figures"]["pass@2"]["mean"] == 0.75
    assert (found["figures"]["mut@2"]["n_problems"], found["figures"]["mut_fixed@2"]["n_problems"]) == (1, 2)
    assert found["figures"]["Mul"]["mean"] == pytest.approx(0.75 * found["figures"]["mut@2"]["mean"])
    assert found["faults"] == {"no_code": 1}


def test_an_unknown_mode_is_bad_input(source: Path) -> None:
    sentence = refused("eval", "tester", "--agent", "for_two:tests", "--problems", source, "--mode", "suites")
    assert "did you mean 'suite'" in sentence


def test_two_evaluations_are_compared_problem_by_problem() -> None:
    for name, agent in (("a", "mutant,strength=1"), ("b", "reference")):
        arguments = ("--agent", agent, "--problems", "starter", "--limit", 10, "--out", name)
        assert codea1("eval", "coder", *arguments).exit_code == 0
    whole = one_object(codea1("eval", "compare", "a", "b", "--json").stdout)
    found = whole["figures"]["avg@n"]
    assert found["difference"]["mean"] == pytest.approx(found["after"]["mean"] - found["before"]["mean"])
    assert found["is_shown"]
    assert 2 <= found["problems_needed"] <= 10
    again = one_object(codea1("eval", "compare", "a", "a", "--json").stdout)["figures"]["avg@n"]
    assert (again["difference"]["mean"], again["problems_needed"], again["is_shown"]) == (0.0, None, False)


def test_only_evaluations_of_one_kind_are_compared(source: Path) -> None:
    codea1("eval", "coder", "--agent", "for_two:right", "--problems", source, "--out", "a")
    codea1("eval", "tester", "--agent", "for_two:tests", "--problems", source, "--out", "b", "--mutants", 0)
    assert "both must be of coders or both of testers" in refused("eval", "compare", "a", "b")
    refused("eval", "compare", "a", "nowhere")


def test_a_comparison_of_unlike_evaluations_says_so(source: Path) -> None:
    for name, samples in (("a", 1), ("b", 2)):
        command = ("eval", "coder", "--agent", "for_two:right", "--problems", source, "-n", samples, "--out", name)
        assert codea1(*command).exit_code == 0
    result = codea1("eval", "compare", "a", "b")
    assert result.exit_code == 0
    assert "other settings: samples" in result.stderr
    assert "other settings" not in codea1("eval", "compare", "a", "a").stderr


def test_evaluations_of_two_versions_of_the_judge_are_not_compared(source: Path) -> None:
    for name in ("a", "b"):
        assert codea1("eval", "coder", "--agent", "for_two:right", "--problems", source, "--out", name).exit_code == 0
    stored = Path("a/evaluation.json")
    settings = json.loads(stored.read_text())
    assert settings.pop("judge_version") == JUDGE_VERSION
    stored.write_text(json.dumps(settings))
    assert codea1("eval", "compare", "a", "a").exit_code == 0
    for pair in (("a", "b"), ("b", "a")):
        sentence = refused("eval", "compare", *pair)
        assert "cannot compare" in sentence
        assert "of the judge" in sentence


def test_it_says_what_a_model_has_written_and_how_fast(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, leave = list[str](), progress.Progress.__exit__

    def left(self: progress.Progress, *error: object) -> None:
        lines.append(self.line())
        leave(self, *error)

    monkeypatch.setattr(progress.Progress, "__exit__", left)
    codea1("eval", "coder", "--agent", "for_two:Model", "-p", source, "-n", 3)
    assert re.match(r"evaluating 6/6, 6 replies, 4 cut, [1-9]\d* tokens/s, elapsed", lines[-1])
