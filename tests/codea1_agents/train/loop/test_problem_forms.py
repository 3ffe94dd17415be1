"""Training on several right answers, functions that work in place, functions as arguments, methods and programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.grpo import ON_RAY

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.loop import load_training, train
from codea1_env.problems import dump_jsonl, load_problems
from tests.support.language_models import phrase_folder
from tests.support.toys import fenced

pytestmark = ON_RAY

CHECKER = "def check(arguments, expected, answer):\n    return type(answer) is int and answer > arguments[0]\n"
ROWS = {
    "several": {
        "statement": "Return any number above x.",
        "solution": "def f(x):\n    return x + 1\n",
        "golden": ["assert f(1) == 2"],
        "answers": {"checker": CHECKER},
    },
    "in_place": {
        "statement": "Sort x in place.",
        "solution": "def f(x):\n    x.sort()\n",
        "golden": ["x = [2, 1]\nf(x)\nassert x == [1, 2]"],
        "calls": {"in_place": True},
    },
    "functions": {
        "statement": "Return a function that applies x twice.",
        "solution": "def f(x):\n    return lambda y: x(x(y))\n",
        "golden": ["assert f(abs)(-1) == 1"],
        "calls": {"functions": True},
    },
}
PROGRAMS = {
    "several": ["return x + 7", "return x"],
    "in_place": ["x.reverse()", "x[:] = sorted(x)"],
    "functions": ["return x", "return lambda y: x(x(y))"],
}
TESTS = {
    "several": ["assert f(3) == 9\nassert f(-2) > -2", "assert f(5) == 6", "assert f(0) == 0"],
    "in_place": ["x = [3, 1, 2]\nf(x)\nassert x == [1, 2, 3]", "x = [1]\nassert f(x) is None\nassert x == [1]"],
    "functions": ["assert f(lambda n: n + 1)(1) == 3", "assert f(lambda n: n * 2)(3) > 6"],
}


KINDS = {
    "stdin": {
        "coder": ["```python\nprint(0)\n```", "```python\nprint(len(open(0).read()))\n```"],
        "tester": ["assert run('1\\n7\\n') == '7'", "assert run('0\\n\\n') == '0'"],
    },
    "methods": {
        "coder": ["class Solution:\n    balance_point = lambda self, x: -1", "def balance_point(weights): return 0"],
        "tester": ["assert Solution().balance_point([4]) == 0", "assert Solution().balance_point([1, 2]) == -1"],
    },
}


def two_steps(settings: dict[str, Any], folder: Path, phrases: dict[str, list[str]]) -> list[dict[str, float]]:
    """The figures of steps whose coder and tester say these phrases about `problems.jsonl`."""
    models = {role: phrase_folder(folder / role, phrases[role], seed) for seed, role in enumerate(phrases)}
    agents = {role: {"model": model, "max_tokens": 2} for role, model in models.items()}
    changed = {"run": {"steps": 2}, "game": {"problems": str(folder / "problems.jsonl")}, "agents": agents}
    found = train(load_training(settings | changed), out=folder / "run")
    assert found.steps == 2
    return [line["figures"] for line in found.lines]


@pytest.mark.parametrize("name", ROWS)
def test_two_steps_of_training_reward_both_roles(settings: dict[str, Any], tmp_path: Path, name: str) -> None:
    rows = [{"id": f"toy/{name}{again}", "entry_point": "f", **ROWS[name]} for again in ("", "/again")]
    (tmp_path / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    programs = [f"def f(x):\n    {body}" for body in PROGRAMS[name]]
    phrases = {"coder": [fenced(each) for each in programs], "tester": [fenced(each) for each in TESTS[name]]}
    for figures in two_steps(settings, tmp_path, phrases):
        assert figures["masked_share"] == 0
        assert 0 < figures["coder_reward"] < 1
        assert figures["tester_reward"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_both_roles_learn_on_methods_and_on_programs_that_read_standard_input(settings, tmp_path, kind):
    dump_jsonl(load_problems(f"starter:{kind}", limit=1), tmp_path / "problems.jsonl")
    steps = two_steps(settings, tmp_path, KINDS[kind])
    assert all(0 <= figures["coder_reward"] <= 1 for figures in steps)
    assert any(figures[f"{role}_trained"] for figures in steps for role in ("coder", "tester"))
