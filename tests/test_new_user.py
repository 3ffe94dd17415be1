"""The script that plays a new user: what is done with a block, in which order, and what it says of a page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.new_user import Step, dry_runs, environment_of, marked_share, play, report_of, steps_of
from tests.support.code_blocks import Block, blocks_of

PAGE = """
```python
# mine.py
print(1)
```

```json
{"id": 1}
```

<!-- needs: gpu -->
    pip install vllm
    codea1 train one-gpu -p "my rows.jsonl" -o runs/gpu  # now
    codea1 train --dry-run node-lora

And then

<!-- needs: cluster -->
    ray start --head

And then

<!-- needs: minutes -->
    codea1 pretrain

```
shown
```
"""


@pytest.fixture
def blocks(tmp_path: Path) -> list[Block]:
    (tmp_path / "page.md").write_text(PAGE)
    return blocks_of(tmp_path / "page.md")


def shell(code: str, folder: Path) -> str:
    """Return what a block that runs prints if it fails."""
    block = Block(folder / "page.md", 1, "sh", code)
    return play(Step(block, "run", code), folder, dict(os.environ))


def test_a_page_is_done_in_order_and_by_marks(blocks: list[Block]) -> None:
    actions = [step.action for step in steps_of(blocks, minutes=False)]
    assert actions == ["run", "save", "dry-run", "cluster", "minutes"]
    assert [step.action for step in steps_of(blocks, minutes=True)] == [*actions[:-1], "run"]
    assert [block.file_name for block in blocks[:2]] == ["mine.py", "my.jsonl"]
    assert marked_share(blocks) == 3 / 4  # neither rows nor what is only shown
    assert marked_share([]) == 0


def test_only_trainings_run_dry(blocks: list[Block]) -> None:
    first, second = dry_runs(blocks[2]).splitlines()
    assert first == "codea1 train one-gpu -p 'my rows.jsonl' -o runs/gpu --dry-run --on '8 x 96GB'"
    assert second == "codea1 train --dry-run node-lora"  # as it was printed
    assert dry_runs(blocks[3]) == ""


def test_a_page_says_what_was_done(blocks: list[Block]) -> None:
    steps = steps_of(blocks, minutes=False)
    outcomes = [(step, step.action == "dry-run") for step in steps]
    counts, skipped = report_of("page", outcomes).split("skipped")
    assert counts.split() == ["page", "run", "1", "dry-run", "0", "failed", "1"]
    assert skipped.strip() == "2 (cluster 1, minutes 1)  75% marked"


def test_a_later_block_sees_files_and_variables_and_a_failure_is_told(tmp_path: Path) -> None:
    assert shell("export PLACE=here\necho text > $PLACE", tmp_path) == ""
    assert shell('grep text "$PLACE"', tmp_path) == ""
    assert shell("echo said; grep other here | cat\necho never", tmp_path) == "said\nexit code 1"


def test_rows_are_saved_in_one_file_and_skipped_blocks_do_nothing(blocks: list[Block], tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    rows, skipped = (step for step in steps_of(blocks, minutes=False) if step.action in ("save", "cluster"))
    for step in (rows, rows, skipped):
        assert play(step, folder, {}) == ""
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"my.jsonl": '{"id": 1}\n' * 2}


def test_nothing_leads_to_the_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", "/clone")
    environment = environment_of(tmp_path)
    assert "PYTHONPATH" not in environment
    assert environment["PATH"].split(os.pathsep)[0] == str(tmp_path / "bin")
