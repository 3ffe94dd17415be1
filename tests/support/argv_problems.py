"""Two problems whose programs get arguments, in a file of rows."""

from __future__ import annotations

from pathlib import Path

SOURCE = str(Path(__file__).with_suffix(".jsonl"))
