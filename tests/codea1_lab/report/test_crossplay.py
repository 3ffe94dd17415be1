from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_lab.report.crossplay import crossplay_heat_maps, heat_maps_of


def document(**changes: Any) -> dict[str, Any]:
    grid = {"mean": [[0.25, None]], "low": [[0.1, None]], "high": [[0.4, None]]}
    names = ("coder_reward", "tester_reward", "pass_rate", "validity", "beats")
    figures = dict.fromkeys(names, grid)
    return {
        "problem_ids": ["p", "q"],
        "coders": [{"name": "c"}],
        "testers": [{"name": "s"}, {"name": "t"}],
        "on_policy": {"figures": figures, "game": {"support": [[0, 1]]}},
        "transfer": None,
        **changes,
    }


def test_matrices_of_both_modes_have_keys_of_their_own() -> None:
    only = heat_maps_of(document())
    assert len(only) == 5
    assert only[0].values[0][0] == 0.25
    assert (only[0].low[0][0], only[0].high[0][0]) == (0.1, 0.4)
    assert only[0].marked == ((0, 1),)
    assert "2 problems" in only[0].note
    both = heat_maps_of(document(transfer={**document()["on_policy"], "game": None}))
    assert len(both) == 8
    assert len({heat.key for heat in both}) == 8
    assert both[-1].marked == ()


@pytest.mark.parametrize("place", ["crossplay.json", "crossplay/crossplay.json"])
def test_a_run_folder_with_a_result_has_heat_maps(tmp_path: Path, place: str) -> None:
    assert crossplay_heat_maps(tmp_path) == ()
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document()))
    assert [heat.title for heat in crossplay_heat_maps(tmp_path)] == [heat.title for heat in heat_maps_of(document())]


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "{}", '{"coders": [1]}'),
        json.dumps(document(coders=[])),
        json.dumps(document()).replace("0.25", "1e308"),
        json.dumps(document()).replace("0.25", '"x"'),
        json.dumps(document()).replace("[[0.1, null]]", "[[]]"),
        json.dumps(document()).replace("[[0, 1]]", "[[Infinity, 1]]"),
    ],
)
def test_a_broken_result_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "crossplay.json").write_text(text)
    with pytest.raises(BrokenInput, match=r"crossplay\.json"):
        crossplay_heat_maps(tmp_path)


def test_matrices_of_another_judge_say_so() -> None:
    assert "version 1 of the judge" in heat_maps_of(document())[0].note
    assert "of the judge" not in heat_maps_of(document(judge_version=JUDGE_VERSION))[0].note
