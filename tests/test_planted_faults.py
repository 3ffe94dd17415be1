"""The benchmark that plants faults: which ones it draws, where it plants them, what runs, and what it calls a loss."""

from __future__ import annotations

import ast
import json
import runpy
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT

SCRIPT = ROOT / "benchmarks" / "planted_faults.py"
SOURCE = '''
def clamp(x):
    """Left_alone."""
    if x < 0:
        raise ValueError("negative")
    return x
'''
CLAMP = {
    ("boundary", "if x < 0", "if x <= 0"),
    ("comparison", "if x < 0", "if x >= 0"),
    ("constant", "if x < 0", "if x < 1"),
    ("removed statement", "raise ValueError('negative')", "pass"),
    ("returned value", "return x", "return None"),
}


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def chosen(script: dict[str, Any]) -> list[Any]:
    faults: list[Any] = script["choose"](ROOT, 0)
    return faults


def test_a_function_s_faults_spare_texts_for_people(script: dict[str, Any]) -> None:
    faults = list(script["faults_of"]("codea1_env/rules/a.py", SOURCE))
    assert {(fault.operator, fault.before, fault.after) for fault in faults} == CLAMP
    assert len(faults) == len(CLAMP)


def test_a_seed_draws_the_same_faults_enough_of_each_room(script: dict[str, Any], chosen: list[Any]) -> None:
    assert chosen == script["choose"](ROOT, 0) != script["choose"](ROOT, 1)
    assert len(set(chosen)) == script["N_FAULTS"]
    for room in script["ROOMS"]:
        assert sum(room in fault.module.split("/") for fault in chosen) >= script["LEAST_PER_ROOM"]


def test_each_fault_can_be_planted_and_changes_one_statement(script: dict[str, Any], chosen: list[Any]) -> None:
    for fault in chosen:
        path, text = script["place_of"](fault, ROOT)
        assert path == ROOT / fault.module
        compile(text, path, "exec")
        before, after = (ast.unparse(ast.parse(each)).splitlines() for each in (path.read_text(), text))
        assert before != after


@pytest.mark.parametrize(
    ("source", "is_there"),
    [
        (SOURCE, True),
        ("class Range:" + SOURCE.replace("\n", "\n    "), True),
        (SOURCE.replace("x < 0", "(x  <\n  0)"), True),
        (SOURCE.replace("x < 0", "x < 1"), False),
        (SOURCE.replace("clamp", "other"), False),
    ],
    ids=["moved", "a method now", "formatted", "changed", "renamed"],
)
def test_a_fault_moves_with_its_statement(script: dict[str, Any], tmp_path: Path, source: str, is_there: bool) -> None:
    fault = script["Fault"]("codea1_env/rules/a.py", "clamp", "boundary", "if x < 0", "if x <= 0")
    moved = tmp_path / "codea1_env" / "judging" / "b.py"
    moved.parent.mkdir(parents=True)
    moved.write_text(source)
    place = script["place_of"](fault, tmp_path)
    assert (place is not None) == is_there
    if place is not None:
        assert place[0] == moved
        assert "x <= 0" in place[1]


def test_the_tests_of_a_module_run_from_the_nearest_to_the_widest(script: dict[str, Any]) -> None:
    module = "codea1_env/sandbox/docker/sandbox.py"
    found = script["stages"](ROOT, module, "tests/a.py::test_a")
    assert [stage.name for stage in found] == ["first", "modules", "folder", "all", "slow", "engine"]
    assert found[1].tests == ("tests/codea1_env/sandbox/docker/test_sandbox.py",)
    assert {stage.tests[0] for stage in found[2:]} == {"tests/codea1_env/sandbox/docker", "tests/codea1_env"}


TESTS = """
import subprocess
from pathlib import Path
from codea1_env.rules.a import clamp

def test_by_chance():
    seen = Path("seen")
    assert seen.exists() or seen.write_text("") != 0

def test_leaves_a_process():
    left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    Path("PIDS").open("a").write(f"{left.pid}\\n")

def test_clamp():
    assert clamp(0) == 0
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A product of one module, and tests of which one fails once and one leaves a process."""
    texts = {
        "codea1_env/__init__.py": "",
        "codea1_env/rules/a.py": SOURCE,
        "tests/codea1_env/rules/test_a.py": TESTS.replace("PIDS", str(tmp_path / "pids")),
        ".ci/docker-engine": "#!/bin/sh\nexit 1\n",
    }
    for name, text in texts.items():
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    path.chmod(0o755)
    subprocess.run(["git", "init", "-q", tmp_path / "checkout"], check=True)
    return tmp_path / "checkout"


@pytest.mark.slow
def test_a_record_says_what_caught_a_fault_and_goes_on(script: dict[str, Any], checkout: Path) -> None:
    faults, record = checkout.parent / "faults.json", checkout.parent / "record.jsonl"
    module, removed = "codea1_env/rules/a.py", ("removed statement", "raise ValueError('negative')", "pass")
    chosen = [
        script["Fault"](module, "clamp", "boundary", "if x < 0", "if x <= 0"),
        script["Fault"](module, "clamp", *removed),
        script["Fault"](module, "gone", *removed),
    ]
    for known in (chosen[:1], chosen):
        faults.write_text(json.dumps([asdict(fault) for fault in known]))
        command = [sys.executable, str(SCRIPT), "record", str(faults), str(record), "--checkout", str(checkout)]
        subprocess.run(command, check=True, timeout=200, capture_output=True)
    found = {each["fault"]: each for each in map(json.loads, record.read_text().splitlines())}
    assert [found[fault.name]["status"] for fault in chosen] == ["caught", "missed", "gone"]
    assert found[chosen[0].name]["by"] == "tests/codea1_env/rules/test_a.py::test_clamp"
    assert len(record.read_text().splitlines()) == len(chosen)
    assert (checkout / module).read_text() == SOURCE
    assert not [pid for pid in (checkout.parent / "pids").read_text().split() if Path(f"/proc/{pid}").exists()]


def test_a_caught_fault_that_is_missed_is_named(tmp_path: Path) -> None:
    statuses = {"old": ("caught", "caught", "caught", "missed"), "new": ("caught", "missed", "gone", "missed")}
    for name, column in statuses.items():
        rows = ({"fault": f"fault {number}", "status": each, "by": "test_x"} for number, each in enumerate(column))
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    for new, status in (("new", 1), ("old", 0)):
        command = [sys.executable, str(SCRIPT), "compare", str(tmp_path / "old"), str(tmp_path / new)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert ("missed, was caught by test_x: fault 1\n" in done.stdout) == bool(status)
        assert ("gone: fault 2\n" in done.stdout) == bool(status)
