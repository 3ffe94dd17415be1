"""What the house promises about its own shape."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import quantiles

import pytest

import codea1_agents
import codea1_env
import codea1_lab
from codea1_env.errors import MissingExtra
from tests.support import ROOT


def packages() -> Iterator[str]:
    """Those that say what they export; what other modules list is checked by ruff (F822)."""
    for root in (codea1_env, codea1_agents, codea1_lab):
        for found in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
            if found.ispkg and "\n__all__" in Path(find_spec(found.name).origin).read_text():
                yield found.name


def test_agents_is_a_source_root_and_not_a_package():
    # A package named `agents` would overwrite PyPI's openai-agents (docs/decisions/001).
    assert not list((ROOT / "agents").glob("*.py"))


@pytest.mark.parametrize("name", ["codea1_env", *packages()])
def test_all_names_what_is_there(name):  # ruff keeps it sorted
    try:
        module = importlib.import_module(name)
        missing = [attribute for attribute in module.__all__ if not hasattr(module, attribute)]
    except MissingExtra as error:
        pytest.skip(str(error))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("ray", "torch", "transformers"):
            raise
        pytest.skip(f"{error.name} is not installed")
    assert len(module.__all__) == len(set(module.__all__))
    assert missing == []


def in_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def said_and_imported(code: str) -> tuple[str, set[str]]:
    printed, _, imported = in_new_process(f"{code}\nimport sys; print(); print(*sys.modules)").rpartition("\n")
    return printed, set(imported.split())


HEAVY = {"torch", "ray", "vllm", "transformers", "pyarrow", "hypothesis", "datasets", "docker", "pandas"}
EXTRAS = {"scipy", "matplotlib", "fastapi", "openai"}
_RUN = """\
import sys; sys.argv[1:] = {}
from codea1_agents.cli import main
try: main()
except SystemExit as end: assert not end.code, end.code"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import codea1_env", HEAVY),
        ("import codea1_env.code_a1_v0", HEAVY),
        ("import codea1_agents.cli", HEAVY),
        ("import codea1_env.rendering", {"rich"}),
        ("import codea1_agents.scripted.testers, codea1_agents.scripted.coders", HEAVY),
        ("from codea1_agents.checks.machine import examine; examine()", HEAVY - {"hypothesis"}),
        ("from tests.support.commands import all_commands; all_commands()", HEAVY - {"hypothesis"} | EXTRAS),
    ],
)
def test_imports_stay_light(code, unwanted):
    _, imported = said_and_imported(code)
    assert not unwanted & imported


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said", "unwanted"),
    [
        (["--help"], "Usage: ", {"codea1_agents.cli.play", "codea1_lab.cli.report", "codea1_env", "numpy"} | HEAVY),
        (["train", "node-lora", "--dry-run", "--on", "8 x 80GB"], "This run fits 8 x 80 GB", HEAVY),
    ],
)
def test_commands_import_only_what_they_need(words, said, unwanted):
    printed, imported = said_and_imported(_RUN.format(words))
    assert said in printed
    assert not unwanted & imported


def test_the_game_imports_what_a_first_step_needs():
    _, imported = said_and_imported("import codea1_env.code_a1_v0")
    assert sum(name.partition(".")[0] == "codea1_env" for name in imported) <= 90


@pytest.mark.slow
def test_importing_prints_nothing_and_touches_no_global_random_state():
    code = (
        "import random, numpy as np; random.seed(1); np.random.seed(1)\n"
        "before = (random.getstate(), np.random.get_state()[1].tolist())\n"
        "import codea1_env.code_a1_v0, codea1_env.gymnasium_views, codea1_agents.cli\n"
        "print('same' if before == (random.getstate(), np.random.get_state()[1].tolist()) else 'moved')"
    )
    assert in_new_process(code) == "same"


def sources() -> list[Path]:
    return sorted([*(ROOT / "codea1_env").rglob("*.py"), *(ROOT / "agents").rglob("*.py")])


def test_no_rooms_without_a_name():
    vague = {"utils", "common", "helpers", "misc"}
    assert [path for path in sources() if vague & set(path.with_suffix("").parts)] == []


def test_the_pages_stay_short():
    pages = [path for folder in ("", "adapters", "api") for path in (ROOT / "docs" / folder).glob("*.md")]
    written = [page for page in pages if page.name != "training-settings.md"]  # which is generated
    assert sum(len(page.read_text().split()) for page in written) <= 42_000


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count a function's lines without its docstring."""
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = function.body[0].end_lineno - function.body[0].lineno + 1 if documented else 0
    return function.end_lineno - function.lineno + 1 - docstring


@pytest.mark.slow
def test_functions_are_short():
    nodes = [(path.name, node) for path in sources() for node in ast.walk(ast.parse(path.read_text()))]
    functions = [each for each in nodes if isinstance(each[1], (ast.FunctionDef, ast.AsyncFunctionDef))]
    found = {f"{name}:{node.lineno} {node.name}": lines_of(node) for name, node in functions}
    assert {name: n for name, n in found.items() if n > 60} == {}
    median, *_, nine_tenths = quantiles(found.values(), n=10)[4:9]
    assert median <= 7
    assert nine_tenths <= 30


@pytest.mark.xdist_group("groups")
def test_groups_are_honoured(request):
    """Tests that share a machine-wide thing are kept on one worker; without that they fail now and then."""
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("not run by several workers")
    assert request.node.nodeid.endswith("@groups")
