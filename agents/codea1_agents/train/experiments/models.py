"""The two models that a cell ends with, and the note of where they lie."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from codea1_env.records.whole_files import write_whole

_NOTE = "models.json"


@dataclass(frozen=True, slots=True)
class Models:
    """Directories of HuggingFace models."""

    coder: Path
    tester: Path

    def write(self, place: Path) -> None:
        """Leave a note in a cell's folder, with paths relative to it, so that the experiment can be moved."""
        told = {role: os.path.relpath(path, place) for role, path in (("coder", self.coder), ("tester", self.tester))}
        write_whole(place / _NOTE, (json.dumps(told) + "\n").encode())

    @classmethod
    def read(cls, place: Path) -> Self:
        """Return what a cell has left.

        Raises:
            OSError: it has not.
        """
        told = json.loads((place / _NOTE).read_text())
        return cls(coder=(place / told["coder"]).resolve(), tester=(place / told["tester"]).resolve())
