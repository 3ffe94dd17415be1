from __future__ import annotations

import pytest

from codea1_env.problems.assumed_imports import assumed_imports

METHOD = "class S:\n    def f(self, x: Optional[int]):\n        return Counter(x)\n"
CACHED = "@lru_cache\ndef f(x):\n    return [sqrt(y) for y in x]\n"


@pytest.mark.parametrize(
    ("program", "imports"),
    [
        ("def f(x):\n    return math.sqrt(x)\n", "import math"),
        ("def f(x: List[int]) -> int:\n    return 0\n", "from typing import List"),
        (METHOD, "from typing import Optional\nfrom collections import Counter"),
        (CACHED, "from functools import lru_cache\nfrom math import sqrt"),
        ("import math\ndef f(x):\n    return math.sqrt(x)\n", ""),
        ("from typing import *\nimport collections as c\nprint(c)\n", ""),
        ("def f(math, log):\n    deque = 1\n    return math + log + deque\n", ""),
        ("def log(x):\n    return x\n\ndef f(x):\n    return log(x)\n", ""),
        ("print(np.zeros(3), pd)\n", "import numpy as np\nimport pandas as pd"),
        ("print(oops, 1)\n", ""),
        ("def f(:", ""),
        ("(" * 500 + ")" * 500, ""),
    ],
)
def test_only_known_names_that_a_program_uses_and_does_not_define_are_imported(program: str, imports: str) -> None:
    assert assumed_imports(program) == imports


def test_names_of_several_programs_are_imported_once() -> None:
    found = assumed_imports("print(inf)", "class S:\n    def f(self) -> List[int]: pass", "print(inf)")
    assert found == "from typing import List\nfrom math import inf"
