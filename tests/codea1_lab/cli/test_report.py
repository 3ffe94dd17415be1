from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from codea1_env.bank.building import bank_of_run
from codea1_env.book.store import MistakeBook
from codea1_env.errors import UserError
from tests.support.command_line import codea1, one_object, refused


@pytest.fixture(scope="module")
def played(recorded: Callable[[str], Path]) -> Path:
    return recorded("play -p starter --coder mutant,strength=0.7 --tester boundary --limit 2 -n 16 --show 0")


@pytest.mark.slow
def test_a_report_is_written_with_its_pictures(run: Path) -> None:
    shutil.copytree(run, "other")
    data = one_object(codea1("report", run, "other", "-o", "r.html", "--pictures", "pictures", "--json").stdout)
    assert data["candidates"] == 32
    assert data["bytes"] == Path("r.html").stat().st_size
    assert Path("pictures/run/rewards.svg").is_file()
    assert Path("pictures/other/rewards.svg").is_file()
    alone = codea1("report", "other").stdout
    assert alone.startswith("other.html: 1 run, ")
    assert alone.endswith("\nnext: codea1 web .\n")
    content = Path("other.html").read_bytes()
    assert codea1("report", "other", run).stdout.startswith("other-and-1-more.html: 2 runs, ")
    assert Path("other.html").read_bytes() == content
    Path("runs").mkdir()
    assert "neither episodes.jsonl nor metrics.jsonl" in refused("report", "runs")
    for name in ("b", "a"):
        shutil.copytree("other", f"runs/{name}")
    assert refused("report", "runs").endswith("train; it contains runs (a, b): codea1 report runs/*/\n")


@pytest.mark.slow
def test_a_book_tells_what_became_of_its_cases(run: Path) -> None:
    with MistakeBook(run / "book.sqlite", read_only=True) as book:
        n_there, left = book.size(), list(book.departures())
    survival = one_object(codea1("book", "history", "survival", run, "--json").stdout)["groups"]["all"]
    assert (survival["n"], survival["fixed"]) == (n_there + len(left), sum(each.is_fixed for each in left))
    relapses = one_object(codea1("book", "history", "relapses", run, "--json").stdout)
    assert relapses["fixed"] == survival["fixed"]
    assert relapses["relapses"] == sum(each["relapses"] for each in relapses["cases"])
    for command in ("survival --by verdict", "relapses"):
        words = command.split()
        assert codea1("book", "history", words[0], run, *words[1:]).exit_code == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("report lost -o r.html", "no such run folder"),
        ("report .", ".: not a run of codea1 play"),
        ("report run run -o r.html", "is named twice"),
        ("report run -o .", "a folder, expected a file"),
        ("book history survival run --by month", "unknown grouping 'month'"),
        ("book history relapses lost.sqlite", "no such file"),
    ],
)
def test_bad_input_is_one_sentence(run: Path, line: str, said: str) -> None:
    assert said in refused(*line.split())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x.csv", "it is a CSV file, expected a folder of codea1 play or train"),
        ("notes", "it is a file without an ending, expected a folder of codea1 play or train"),
        ("results.jsonl", "it has results of codea1 experiment, whose report is beside it"),
        ("runs/a/metrics.jsonl", "it is a part of a run, expected the folder runs/a"),
    ],
)
def test_a_file_is_told_what_it_is(folder: Path, name: str, said: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("a,b\n1,2\n")
    assert f"error: {name}: a file, not a run folder: {said}" in refused("report", name)


@pytest.mark.parametrize("config", [None, "steps = [", b"\xff"])
def test_a_training_without_settings_is_told_so(folder: Path, config: str | bytes | None) -> None:
    run = folder / "trained"
    run.mkdir()
    (run / "metrics.jsonl").write_text('{"step": 1, "figures": {"coder_reward": 0.5}}\n')
    if config is None:
        assert refused("report", "trained") == "error: trained: not a training run, since config.toml is missing\n"
        return
    (run / "config.toml").write_bytes(config if isinstance(config, bytes) else config.encode())
    assert "trained/config.toml: not TOML (" in refused("report", "trained")


@pytest.mark.parametrize("field", ["problems", "scheme", "sandbox", "coder", "tester"])
def test_another_persons_run_imports_nothing(run: Path, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    Path("evil.py").write_text("open('IMPORTED', 'w')\ndef load(*a, **k): raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(".")
    config = run / "config.toml"
    config.write_text(re.sub(rf'^{field} = ".*"$', f'{field} = "evil:load"', config.read_text(), flags=re.MULTILINE))
    assert '"evil:load"' in config.read_text()
    for words in (
        ("report", run, "-o", "r.html"),
        ("book", "show", run),
        ("book", "history", "relapses", run),
        ("play", "--resume", run, "-n", 99),
    ):
        assert "IMPORTED" not in codea1(*words).stderr
        assert not Path("IMPORTED").exists(), words
    with pytest.raises(UserError, match="comes from a recorded run") if field == "problems" else nullcontext():
        bank_of_run(run)
    assert not Path("IMPORTED").exists()
