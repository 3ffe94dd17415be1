"""docs/figures.md names every figure that the code prints or records, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codea1_agents.cli import training_table
from codea1_agents.play.summary import LABELS, MEASURES, Tally
from codea1_agents.train.loop import alarms
from codea1_agents.train.tiny import demonstration
from codea1_lab.report import curves, material, training_run
from tests.support import ROOT
from tests.support.charts import charts_of_the_page, drawn_axes, require_told_apart

TRAIN = ROOT / "agents" / "codea1_agents" / "train"
TEXT = (ROOT / "docs" / "figures.md").read_text()
SECTIONS = dict(re.findall(r"(?ms)^##+ ([^\n]+)\n(.*?)(?=^##|\Z)", TEXT))
METRICS = TRAIN / "grpo" / "metrics.py"
RULES = ROOT / "codea1_env" / "rules"
ROLES = ("coder", "tester")


def rows(section: str) -> list[list[str]]:
    """Return the cells of the rows of a section's table, without its head."""
    lines = [line for line in SECTIONS[section].splitlines() if "|" in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def named(section: str, column: int = 0) -> set[str]:
    """Return the names in backticks in a column of a section's table."""
    return {name for cells in rows(section) for name in re.findall(r"`([\w/]+)`", cells[column])}


def constants(node: ast.AST) -> Iterator[str]:
    """Yield the text of a string, with each role for `{role}` and nothing for another placeholder at its end."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = ["{role}" if isinstance(each, ast.FormattedValue) else str(each.value) for each in node.values]
        if "role" in {n.id for each in node.values for n in ast.walk(each) if isinstance(n, ast.Name)}:
            yield from ("".join(parts).replace("{role}", role) for role in ROLES)


def yielded(path: Path) -> set[str]:
    """Return the names that functions of a module yield, as the first of a tuple."""
    tuples = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Yield)]
    return {name for each in tuples if isinstance(each, ast.Tuple) for name in constants(each.elts[0])}


def body_of(path: Path, function: str) -> ast.FunctionDef:
    functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
    (found,) = (node for node in functions if node.name == function)
    return found


def keys(path: Path, function: str) -> set[str]:
    """Return the constant keys of dictionaries in a function, and those that it assigns to."""
    body = body_of(path, function)
    dictionaries = [node for node in ast.walk(body) if isinstance(node, ast.Dict)]
    found = {name for each in dictionaries for key in each.keys if key for name in constants(key)}
    targets = [node.targets[0] for node in ast.walk(body) if isinstance(node, ast.Assign)]
    return found | {name for each in targets if isinstance(each, ast.Subscript) for name in constants(each.slice)}


def texts(path: Path, function: str) -> set[str]:
    return {name for node in ast.walk(body_of(path, function)) for name in constants(node)}


def parts_of_rewards() -> set[str]:
    nodes = [node for path in RULES.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return {name for call in calls if call.func.id == "RewardPart" for name in constants(call.args[0])}


def of_learners() -> set[str]:
    module = ast.parse(METRICS.read_text())
    (names,) = (n.value for n in module.body if isinstance(n, ast.Assign) and n.targets[0].id == "_OF_LEARNERS")
    return {f"MODULE_{name}" for name in (*ast.literal_eval(names), "trained")}


def test_the_figures_of_a_step_are_those_that_are_recorded() -> None:
    recorded = (
        yielded(METRICS) | keys(METRICS, "numbers") | {f"{name}_turn_2" for name in ("playing", "fixed", "broke")}
    )
    assert named("Figures of a step") == recorded
    assert named("The learner") == of_learners()
    assert named("Parts of rewards") == parts_of_rewards()


def test_times_evaluations_and_alarms_are_those_that_are_recorded() -> None:
    recorded = {name for name in texts(METRICS, "times") if name.isidentifier()} | {"cpu_s"}
    assert 'times["cpu_s"]' in (TRAIN / "loop" / "loop.py").read_text()
    assert named("Times") == recorded
    evaluated = keys(TRAIN / "loop" / "held_out.py", "summarise")
    recorded = {name for name in evaluated if "_at_" not in name}
    assert {name for name in named("Held-out problems") if "/" not in name and "_at_" not in name} == recorded
    assert {"coder_pass_at_1", "coder_pass_at_8"} <= named("Held-out problems")
    assert named("Alarms") == set(alarms.ALARMS)


def test_the_headings_of_the_live_tables_are_those_that_it_draws() -> None:
    drawn = {heading: {name.replace("{}", "ROLE")} for heading, name in training_table._OF_ROLES}
    drawn["distinct"] = set(training_table._WRITES.values())
    drawn |= {heading: {name} for heading, name in training_table._OF_GAME}
    drawn |= {heading: {name.replace("{}", "MODULE")} for heading, name in training_table._OF_MODULES}
    drawn |= {heading: {name.replace("{}", "TURN")} for heading, name in training_table._OF_TURNS}
    assert {cells[1]: set(re.findall(r"`(\w+)`", cells[2])) for cells in rows("The live table")} == drawn


def test_the_figures_of_games_are_those_that_are_printed() -> None:
    assert named("Figures of games") == set(Tally(tests_per_suite=1).summary().to_json())
    assert set(MEASURES) <= named("Figures of games")
    printed = {text.strip() for cells in rows("Figures of games") for text in re.split("[,;] ", cells[1])}
    for label in LABELS.values():
        assert set(label.strip().split(", ")) <= printed


def test_charts_have_the_pages_names_of_curves_and_axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = drawn_axes(monkeypatch)
    names = {name for _, _, series in demonstration._PANELS for section, name, _ in series if section == "figures"}
    held_out = {demonstration.PASS: 0.5, demonstration.VALIDITY: 0.5, demonstration.KILLS: 0.5}
    line = {"evaluation": held_out, "figures": dict.fromkeys(names, 0.5)}
    demonstration.draw_change([{"step": 0, **line}, {"step": 1, **line}], tmp_path)
    for axis in axes:
        require_told_apart(axis)
        assert {text.get_text() for text in axis.get_legend().get_texts()} <= charts_of_the_page("Curves")
        assert {axis.get_xlabel(), axis.get_ylabel()} <= charts_of_the_page("Axes")
    assert len(axes) == 8  # of the two files
    specs = (*training_run._PANELS, *curves._PANELS)
    drawn = {name for panel in specs for name in panel.curves.values()} | set(material.MOVES)
    drawn |= set(training_run._TIMES.values())
    assert drawn <= charts_of_the_page("Curves")
    assert set(material._UNITS.values()) <= charts_of_the_page("Axes")


@pytest.mark.parametrize(
    ("panels", "section"), [(training_run._PANELS, "Figures of a step"), (curves._PANELS, "Figures of games")]
)
def test_the_curves_of_the_report_have_figures_of_the_page(panels, section) -> None:
    drawn = {name for panel in panels for name in panel.curves}
    coder_parts = {f"coder_{name}" for name in named("Parts of rewards")}
    assert drawn - named(section) - named("Parts of rewards") - coder_parts == set()
