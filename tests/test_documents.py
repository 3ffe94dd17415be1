"""What README and CONTRIBUTING promise about themselves: short, runnable, and naming what exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "agents").glob("*.md")])


def prose(text: str) -> str:
    """Return a document without its code blocks, fenced or indented."""
    return re.sub(r"(?m)^ {4}.*$", "", FENCE.sub("", text))


def blocks(language: str) -> list[list[str]]:
    """Return the lines of README's fenced blocks of a language that hold something."""
    return [
        [line for line in code.splitlines() if line.strip()] for name, code in FENCE.findall(README) if name == language
    ]


def symbols(path: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)}


def test_readme_has_at_most_nine_hundred_words():
    assert len(prose(README).split()) <= 900


def test_readme_shows_an_agent_in_twelve_lines_and_a_training_in_ten():
    agent, training = blocks("python")
    assert len(agent) <= 12
    assert len(training) <= 10


def test_readme_gives_the_commands_of_ci():
    shown = re.findall(r"(?m)^ {4}(make \w+)", README)
    assert shown == ["make demo", "make test"]
    assert "make demo" in (ROOT / ".ci" / "run").read_text().splitlines()
    assert re.search(r"(?m)^check:.*\btest\b", (ROOT / "Makefile").read_text())  # CI runs `make check`


def test_readmes_tree_is_short_and_names_what_exists():
    (tree,) = blocks("")
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(document):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose(document.read_text()))
    files = [document.parent / link for link in links if "://" not in link]
    assert [str(file) for file in files if not file.exists()] == []
