"""The two final models of a cell, and the file that holds their paths."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from codea1_env.records.faults import read_file, read_json
from codea1_env.records.whole_files import write_whole

_FILE = "models.json"


@dataclass(frozen=True, slots=True)
class Models:
    """Directories of HuggingFace models."""

    coder: Path
    tester: Path

    def write(self, place: Path) -> None:
        """Write the paths into a cell's folder, relative to it, so that the experiment can be moved."""
        paths = {role: os.path.relpath(path, place) for role, path in (("coder", self.coder), ("tester", self.tester))}
        write_whole(place / _FILE, (json.dumps(paths) + "\n").encode())

    @classmethod
    def read(cls, place: Path) -> Self:
        """Return the models of a cell.

        Raises:
            OSError: the cell has written none.
        """
        paths = read_json(_FILE, read_file(place / _FILE))
        return cls(coder=(place / paths["coder"]).resolve(), tester=(place / paths["tester"]).resolve())
