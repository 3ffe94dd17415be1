"""README and CONTRIBUTING are short and run; the paths, modules and links of all documents exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import codea1_env
from codea1_agents.cli.app import ENTRIES
from codea1_agents.cli.entries import EXTENSIONS, Commands, Group
from codea1_agents.train import grpo, loop
from codea1_env import bank_v0, code_a1_v0
from codea1_env.errors import PUBLISHED
from tests.support import ROOT
from tests.support.code_blocks import blocks_of, task_pages

README = (ROOT / "README.md").read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "agents").glob("*.md")])
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "api").glob("*.md")])
CURRENT = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
SOURCES = (ROOT, ROOT / "agents")
FOLDERS = ("codea1_env", "codea1_agents", "codea1_lab", "agents", "benchmarks", "examples", "tests", "docs")
CODE = [ROOT / name for name in FOLDERS if name not in ("codea1_agents", "codea1_lab", "docs")]
ENTRY_POINT_GROUPS = {*(f"codea1_env.{kind}" for kind in ("agents", "problems", "rewards", "sandboxes")), EXTENSIONS}


def prose(text: str) -> str:
    """Return a document without its code blocks, fenced or indented."""
    return re.sub(r"(?m)^ {4}.*$", "", FENCE.sub("", text))


def blocks(language: str, document: str = "README.md") -> list[list[str]]:
    """Return the lines of a document's fenced blocks of a language that hold something."""
    found = [block for block in blocks_of(ROOT / document) if block.language == language]
    return [[line for line in block.code.splitlines() if line.strip()] for block in found]


def symbols(path: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)}


def named_in(module: Path) -> set[str]:
    """Return the names that a module defines or imports, and its strings, such as those of `__all__`."""
    nodes = list(ast.walk(ast.parse(module.read_text())))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    return names | symbols(module) | {str(node.value) for node in nodes if isinstance(node, ast.Constant)}


def is_defined(dotted: str) -> bool:
    *parents, name = dotted.split(".")
    for root in SOURCES:
        parent = root.joinpath(*parents)
        modules = [path for path in (parent.with_suffix(".py"), parent / "__init__.py") if path.is_file()]
        if (parent / name).is_dir() or (parent / f"{name}.py").is_file() or any(name in named_in(m) for m in modules):
            return True
    return False


def anchors(document: Path) -> set[str]:
    """Return the names by which GitHub links to a document's headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", FENCE.sub("", document.read_text()))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def exists(path: str) -> bool:
    """Return whether a path, perhaps with `*`, exists below the root or a source folder; of a file the end suffices."""
    if any(True for root in SOURCES for _ in root.glob(path)):
        return True
    return path.endswith(".py") and any(True for folder in CODE for _ in folder.rglob(path))


def test_readme_is_short_with_an_agent_in_twelve_lines_a_verdict_in_four_and_a_training_in_ten():
    assert len(prose(README).split()) <= 700
    agent, verdict, training = blocks("python")
    assert len(agent) <= 12
    assert len(verdict) <= 4
    assert len(training) <= 10


def test_readme_gives_the_commands_of_ci():
    shown = re.findall(r"(?m)^ {4}(make \w+)", README)
    assert shown == ["make demo", "make test"]
    printed = subprocess.run([ROOT / ".ci" / "readme", "--print"], capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines() == shown
    assert "tests readme .ci/readme" in (ROOT / ".ci" / "run").read_text().splitlines()
    assert re.search(r"(?m)^check:.*\btest\b", (ROOT / "Makefile").read_text())  # CI runs `make check`


def test_the_tree_of_contributing_is_short_and_names_what_exists():
    tree, *_ = blocks("", "CONTRIBUTING.md")
    assert len(tree) <= 25
    named, parent = [], ROOT
    for line in tree:
        is_inner = line.startswith("  ")
        words = re.split(r" {2,}", line.strip())
        paths = [word for word in words if word.endswith(("/", ".py"))]
        if not is_inner:
            parent = ROOT / paths[0]
        named += [(parent if is_inner else ROOT) / path for path in paths]
        named += [parent / path for path in re.findall(r"(\w+\.py):", line)]
    assert len(named) >= len(tree)
    assert [path for path in named if not path.exists()] == []


def test_the_map_of_contributing_names_what_exists():
    rows = re.findall(r"(?m)^\| [^|]+ \| `([^`|]+\.py)` \| ([^|]+) \|$", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(rows) == 6
    wanted = {(path, name) for path, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert {(path, name) for path, name in wanted if name not in symbols(ROOT / path)} == set()
    assert {path for path, _ in wanted} == {path for path, _ in rows}


@pytest.mark.parametrize("document", CURRENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_and_modules_in_backticks_exist(document):
    spans = " ".join(re.findall(r"`([^`\n]+)`", FENCE.sub("", document.read_text())))
    words = re.findall(r"(?<![\w/.*-])[\w*][\w*.-]*(?:/[\w*.-]+)*", spans.replace("/ ", " "))
    paths = [word for word in words if word.endswith(".py") or (word.partition("/")[0] in FOLDERS and "/" in word)]
    assert [path for path in paths if not exists(path)] == []
    names = set(re.findall(r"\bcodea1_(?:env|agents)(?:\.\w+)+", spans)) - ENTRY_POINT_GROUPS
    assert [name for name in sorted(names) if not is_defined(name)] == []


@pytest.mark.parametrize("document", CURRENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_code_exist(document):
    text = document.read_text()
    inline, indented = re.findall(r"`([^`\n]+)`", text), re.findall(r"(?m)^ {4}(.*)$", text)
    code = [*inline, *indented, *(fenced for _, fenced in FENCE.findall(text))]
    groups = {name: () if isinstance(entry.commands, str) else entry.commands for name, entry in ENTRIES.items()}
    used = {pair for part in code for pair in re.findall(r"\bcodea1 ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", part)}
    assert [pair for pair in used if pair[0] not in groups] == []
    assert [pair for pair in used if groups[pair[0]] and pair[1] and pair[1] not in groups[pair[0]]] == []


def command_names(commands: Commands, before: str) -> Iterator[str]:
    for name, command in commands.items():
        if isinstance(command, Group):
            yield from command_names(command.commands, f"{before} {name}")
        else:
            yield f"{before} {name}"


def test_the_page_of_the_command_line_has_all_commands():
    groups = {name: entry.commands for name, entry in ENTRIES.items() if not isinstance(entry.commands, str)}
    names = {name for group, commands in groups.items() for name in command_names(commands, group)}
    named = set(re.findall(r"`([a-z ]+)`", (ROOT / "docs" / "command-line.md").read_text()))
    assert names | (set(ENTRIES) - set(groups)) <= named


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(document):
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", prose(document.read_text()))
    files = [(document.parent / link if link else document, anchor) for link, anchor in links if "://" not in link]
    assert [str(file) for file, _ in files if not file.exists()] == []
    assert [f"{file}#{anchor}" for file, anchor in files if anchor and anchor not in anchors(file)] == []


def test_the_page_of_settings_is_what_the_code_declares(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    table = importlib.import_module("settings_table")
    page = table.PAGE.read_text("utf-8")
    assert f"{table.BEGIN}{table.tables()}{table.END}" in page, "run: python docs/settings_table.py"
    rows = page.replace(table.HEAD, "")
    assert not re.search(r"\| *\|$", rows, re.MULTILINE), "a setting has no meaning"


@pytest.mark.parametrize(("page", "environment"), [("environments", code_a1_v0.raw_env), ("game", bank_v0.raw_env)])
def test_the_pages_of_environments_show_their_arguments(page, environment):
    (shown,) = re.findall(r"_v0\.env\((\w+=.*, \*,[^`]*)\)\n```", (ROOT / "docs" / f"{page}.md").read_text())
    arguments = [each for each in inspect.signature(environment).parameters.values() if each.name != "options"]
    assert dict(re.findall(r'(\w+)="?([^",\n]+)"?', shown)) == {each.name: str(each.default) for each in arguments}


def test_the_python_interface_has_all_public_names():
    pytest.importorskip("ray", reason="modules of the pages import Ray and torch")
    text = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    targets = set(re.findall(r"(?m)^\.\. auto\w+:: (\S+)$", text))
    modules = re.findall(r"(?m)^\.\. automodule:: (\S+)$", text)
    named = {name for module in modules for name in getattr(importlib.import_module(module), "__all__", ())}
    named |= {target.rpartition(".")[2] for target in targets}
    assert set(codea1_env.__all__) - {"__version__"} - named == set()
    for module, _, name in (target.rpartition(".") for target in targets - set(modules)):
        assert name in getattr(importlib.import_module(module), "__all__", [name]), f"{module}.{name} is not public"
    for package in (loop, grpo):  # their names are imported lazily, so `automodule` does not find them
        assert {f"{package.__name__}.{name}" for name in package.__all__} <= targets


def test_nothing_is_installed_from_an_index_before_it_is_published():
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert ("(unreleased)" not in re.findall(r"(?m)^## (.*)$", changes)[0]) == PUBLISHED
    folders = [ROOT / name for name in ("codea1_env", "agents", "docs", "examples", "benchmarks", ".github")]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".md", ".toml", ".yml")]
    by_name = re.compile(r"pip install (?:-\S+ )*['\"]?codea1[-_]env(?!\S*\.whl)")
    found = [str(path) for path in [*ROOT.glob("*.*"), *files] if path.is_file() and by_name.search(path.read_text())]
    assert found == [] or PUBLISHED


def test_task_pages_begin_where_readers_begin():
    first, *rest = (path.name for path in task_pages())
    assert (first, rest[0]) == ("README.md", "index.md")
    assert rest[1:4] == ["own-agent.md", "problems.md", "own-model.md"]
