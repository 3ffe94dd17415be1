from __future__ import annotations

from codea1_agents.scripted.fences import fenced_reply
from codea1_env.rules.replies import read_candidate
from codea1_env.rules.ruleset import Reading


def test_an_ordinary_program_has_the_fence_of_the_release_and_a_docstring_with_one_does_not_end_it() -> None:
    program = 'def f():\n    """\n    ```python\n    f()\n    ```\n    """\n    return 1'
    read = read_candidate(fenced_reply(program, "Here."), Reading.STRICT, entry_point="f")
    assert read.program.strip() == program
    assert fenced_reply("x = 1\n", "Here.") == "Here.\n\n```python\nx = 1\n```"
