"""Two steps of training on methods and on programs that read standard input."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env.problems import dump_jsonl, load_problems
from tests.support.grpo import ON_RAY, built, tiny_config
from tests.support.language_models import phrase_folder

pytest.importorskip("ray", reason="Ray is not installed")

pytestmark = ON_RAY

REPLIES = {
    "stdin": (
        ["```python\nprint(0)\n```", "```python\nprint(len(open(0).read()))\n```"],
        ["assert run('1\\n7\\n') == '7'", "assert run('0\\n\\n') == '0'"],
    ),
    "methods": (
        ["class Solution:\n    balance_point = lambda self, weights: -1", "def balance_point(weights): return 0"],
        ["assert Solution().balance_point([4]) == 0", "assert Solution().balance_point([1, 2]) == -1"],
    ),
}


@pytest.mark.parametrize("part", REPLIES)
def test_both_roles_learn(part: str, tmp_path: Path) -> None:
    roles = zip(("coder", "tester"), REPLIES[part], strict=True)
    models = {role: phrase_folder(tmp_path / role, phrases, n) for n, (role, phrases) in enumerate(roles)}
    problems = tmp_path / "problems.jsonl"
    dump_jsonl(load_problems(f"starter:{part}", limit=1), problems)
    with built(tiny_config(models, str(problems))) as algorithm:
        steps = [algorithm.train() for _ in range(2)]
    assert all(0 <= step["env_runners"]["coder_reward"] <= 1 for step in steps)
    assert sum(step["responses_trained"] for step in steps) > 0
