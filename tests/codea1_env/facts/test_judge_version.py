from __future__ import annotations

from typing import Any

import pytest

from codea1_env.errors import UserError
from codea1_env.facts.judge_version import JUDGE_VERSION, judge_version_in, require_this_judge


@pytest.mark.parametrize(
    ("stored", "version"),
    [({"judge_version": 7}, 7), ({}, 1), ({"judge_version": "2"}, 1), ({"judge_version": True}, 1), (None, 1), ([], 1)],
)
def test_what_does_not_say_is_of_version_1(stored: Any, version: int) -> None:
    assert judge_version_in(stored) == version


def test_other_verdicts_are_refused_in_one_sentence_with_what_to_do() -> None:
    require_this_judge(JUDGE_VERSION, "runs/a", "begin a new run")
    for version in (JUDGE_VERSION - 1, JUDGE_VERSION + 1):
        with pytest.raises(UserError, match=f"^runs/a was judged by version {version} .*; begin a new run$"):
            require_this_judge(version, "runs/a", "begin a new run")
