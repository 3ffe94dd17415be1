"""Code blocks of README and the pages: Python of the task pages runs as printed, commands and their options exist."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from codea1_agents.cli.app import app
from tests.support import ROOT
from tests.support.code_blocks import NEEDS, SHELLS, blocks_of, commands_of, task_pages
from tests.support.command_line import run_python

UsageError = typer.BadParameter.__base__  # of click, or of typer's copy of it
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "command-line.md"})]
TASKS = task_pages()
RUN_ELSEWHERE = {ROOT / "README.md"}  # test_examples.py
WITH_PYTHON = [
    page
    for page in TASKS
    if page not in RUN_ELSEWHERE and any(block.language == "python" and not block.needs for block in blocks_of(page))
]


def names(page: Path) -> str:
    return str(page.relative_to(ROOT))


def require_parses(words: list[str]) -> None:
    """Raise an error of click if a `codea1` command or an option does not exist, or if there are too many words."""
    command, words, context = get_command(app), words[1:], None
    while hasattr(command, "resolve_command"):
        if not words or words[0].startswith("--"):
            return
        context = command.context_class(command, info_name=command.name or "codea1", parent=context)
        _, command, words = command.resolve_command(context, words)
    parser = command.make_parser(command.context_class(command))
    _, rest, _ = parser.parse_args(list(words))
    if rest:
        raise UsageError(f"too many words: {rest}")


@pytest.mark.parametrize("words", ["play --no-such-option", "no-such-command", "check no-such", "serve a b c"])
def test_wrong_commands_are_found(words: str) -> None:
    with pytest.raises(UsageError):
        require_parses(["codea1", *words.split()])


def test_the_pages_of_tasks_exist_and_their_marks_are_known() -> None:
    assert [page for page in TASKS if not page.is_file()] == []
    blocks = [block for page in {*TASKS, *PAGES} for block in blocks_of(page)]
    assert {block.needs for block in blocks} - {"", *NEEDS} == set()
    marked = sum(len(re.findall(r"<!-- needs: ", page.read_text())) for page in {*TASKS, *PAGES})
    assert marked == sum(bool(block.needs) for block in blocks)  # a mark that no block follows is an error


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_commands_and_their_options_exist(page: Path) -> None:
    for block in (each for each in blocks_of(page) if each.language in SHELLS):
        for words in commands_of(block):
            program = words[0].rpartition("/")[2]
            try:
                if program == "codea1":
                    require_parses(words)
            except UsageError as error:
                pytest.fail(f"{block}: {' '.join(words)}: {error.format_message()}")
            if program in ("python", "python3") and words[1].endswith(".py"):
                assert (ROOT / words[1]).is_file(), f"{block}: {words[1]}"
            if program == "make":
                targets = re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text())
                assert [word for word in words[1:] if "=" not in word and word not in targets] == []


@pytest.mark.parametrize("page", TASKS, ids=names)
def test_settings_and_rows_can_be_read(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "toml":
            tomllib.loads(block.code)
        if block.language == "json":
            assert all(json.loads(line) for line in block.code.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON, ids=names)
def test_python_runs_as_printed(page: Path, tmp_path: Path) -> None:
    code = "\n".join(block.code for block in blocks_of(page) if block.language == "python" and not block.needs)
    run_python("-W", "error", "-c", code, folder=tmp_path)
