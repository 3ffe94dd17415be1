"""Problems with several right answers, functions that work in place, and functions as arguments are trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.grpo import ON_RAY

ray = pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from codea1_agents.train.loop import load_training, train  # noqa: E402
from tests.support.language_models import phrase_folder  # noqa: E402

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


@pytest.mark.parametrize("name", ROWS)
def test_two_steps_of_training_reward_both_roles(settings: dict[str, Any], tmp_path: Path, name: str) -> None:
    problems = tmp_path / "problems.jsonl"
    row = {"id": f"toy/{name}", "entry_point": "f", **ROWS[name]}
    problems.write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": f"toy/{name}/again"}) + "\n")
    phrases = {
        "coder": [f"```python\ndef f(x):\n    {body}\n```" for body in PROGRAMS[name]],
        "tester": [f"```python\n{text}\n```" for text in TESTS[name]],
    }
    agents = {
        role: {"model": phrase_folder(tmp_path / role, phrases[role], seed), "max_tokens": 2}
        for seed, role in enumerate(phrases)
    }
    changed = {"run": {"steps": 2}, "game": {"problems": str(problems)}, "agents": agents}
    found = train(load_training(settings | changed), out=tmp_path / "run")
    assert found.steps == 2
    for line in found.lines[1:]:
        figures = line["figures"]
        assert figures["masked_share"] == 0
        assert 0 < figures["coder_reward"] < 1
        assert figures["tester_reward"] > 0
