"""`codea1 experiment` as a user runs it, with a base model of three steps and nothing trained."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codea1_lab.cli import experiment
from tests.support.command_line import codea1, document, refused

pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def test_an_experiment_runs_and_is_looked_at_any_time(declared: Path) -> None:
    early = refused("experiment", declared, "-o", "out", "--report-only")
    assert early == "error: out does not contain an experiment yet\n"
    told = document("experiment", declared, "-o", "out", "--seeds", 1, "--workers", 1)
    assert (told["cells"], told["done"]) == (2, 2)
    report = Path(told["report"])
    assert "| base | untrained | 1 | 0.0 |" in report.read_text()
    report.unlink()
    assert codea1("experiment", declared, "-o", "out", "--report-only").exit_code == 0
    assert report.exists()


def test_the_phases_of_an_experiment_are_named_from_the_start(
    declared: Path, phases: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "run_cells", lambda *_, **__: None)
    done = codea1("experiment", declared, "-o", "out", "--seeds", 1)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("note: loading problems")
    assert phases(done.stderr) == ["loading problems", "small 0/2", "writing the report"]


def test_cells_of_a_file_of_results_do_not_run_again(declared: Path) -> None:
    assert codea1("experiment", declared, "-o", "out", "--seeds", 1, "--workers", 1, "--only", "base").exit_code == 0
    kept = Path("kept")
    kept.mkdir()
    Path("out/report/results.jsonl").rename(kept / "results.jsonl")
    done = codea1("experiment", declared, "-o", "new", "--seeds", 1, "--workers", 1, "--results", kept)
    assert done.exit_code == 0, done.stderr
    assert [path.name for path in Path("new/cells").iterdir()] == ["other"]
    assert len((kept / "results.jsonl").read_text().splitlines()) == 2
    assert "2 of 2 cells" in (kept / "report.md").read_text()
    shutil.rmtree("new")
    assert codea1("experiment", declared, "-o", "new", "--report-only", "--seeds", 1, "--results", kept).exit_code == 0
    assert "2 of 2 cells" in (kept / "report.md").read_text()


def test_results_of_more_seeds_stay_in_their_file(declared: Path) -> None:
    lines = [f'{{"system": "a{n % 2}", "base": 0, "seed": {n}, "figures": {{}}}}' for n in range(6)]
    Path("kept").mkdir()
    Path("kept/results.jsonl").write_text("\n".join(lines).replace("a0", "base").replace("a1", "dropped"))
    for more in ([], ["--seeds", 1], ["--seeds", 4]):
        assert codea1("experiment", declared, "-o", "none", "--report-only", "--results", "kept", *more).exit_code == 0
        assert len(Path("kept/results.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize("fault", ["did you mean", "predictions.md, cannot be checked", "[rllib]'"])
def test_what_is_missing_is_found_before_any_cell(declared: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    text = declared.read_text()
    if fault == "did you mean":
        declared.write_text(text.replace("tiny:held-out", "startr"))
    elif "predictions" in fault:
        declared.write_text(f'predictions = "predictions.md"\n{text}')
    else:
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else find(name))
    assert fault in refused("experiment", declared, "-o", "out")
    assert not Path("out").exists()


def test_an_experiment_of_a_model_wants_its_folder_and_no_other_weights(declared: Path, tmp_path: Path) -> None:
    named = Path("named.toml")
    named.write_text(declared.read_text() + '\n[model]\nname = "one that I know"\ndigest = "abc"\n')
    (tmp_path / "other").mkdir()
    for model, sentence in (
        ((), "starts from one that I know: add --model and the folder of its weights"),
        (("--model", "nowhere"), "--model nowhere: expected the folder of one that I know, got none"),
        (("--model", tmp_path / "other"), "expected the weights of one that I know with digest abc, got "),
    ):
        assert sentence in refused("experiment", named, "-o", "out", *model)
    assert "pretrains its models" in refused("experiment", declared, "-o", "out", "--model", tmp_path / "other")
