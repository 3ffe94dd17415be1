"""A cache of banks and their verdicts on disk, so that a bank is built and judged only once.

A file's name is the digest of everything that determines its content (problem, replies, reading, validation,
comparison, limits, the sources of this package), so a file is never outdated. Alpha and the reward scheme are not part
of the digest, since scoring runs no programs. Files are written atomically, so several processes may share a folder.
"""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from codea1_env.bank.entries import ProblemBank, bank_from_line, bank_to_line
from codea1_env.errors import BrokenInput
from codea1_env.facts.judge_version import JUDGE_VERSION, UNSTATED_JUDGE
from codea1_env.facts.verdicts import ProblemReport
from codea1_env.records.whole_files import cache_folder, write_whole
from codea1_env.rules.ruleset import Ruleset
from codea1_env.runs.records import ReportRecord
from codea1_env.sandbox.interface import Limits

_FORMAT = 1
_log = logging.getLogger(__name__)


class _JudgedFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    judge_version: int = UNSTATED_JUDGE
    problem_id: str
    programs: tuple[ReportRecord, ...]


@cache
def sources_digest(folder: Path) -> str:
    """Return the digest of all Python sources below a folder, since changed code may give other results."""
    digest = sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def digest_of(data: Mapping[str, Any]) -> str:
    """Return the digest of plain data; the order of its keys does not matter."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def bank_digest(bank: ProblemBank, rules: Ruleset, limits: Limits, *, golden: bool) -> str:
    """Return the digest of a problem's input to the judge, by which its verdicts are found.

    Args:
        bank: the labels of its entries are not part of the digest.
        rules: only the rules that the judge uses are part of the digest.
        limits: bounds per call of a program.
        golden: whether golden tests are run.
    """
    problem = bank.problem
    judge_input = {
        "format": _FORMAT,
        "judge": JUDGE_VERSION,
        "code": sources_digest(Path(__file__).parent.parent),
        "problem": [problem.id, problem.entry_point, problem.solution, problem.imports, problem.examples],
        "answers": asdict(problem.answers),
        "calls": asdict(problem.calls),
        "golden": [asdict(test) for test in problem.golden] if golden else None,
        "programs": [entry.reply for entry in bank.programs],
        "suites": [entry.reply for entry in bank.suites],
        "rules": asdict(rules.of_verdicts()),
        "limits": asdict(limits),
    }
    return digest_of(judge_input)


class BankCache:
    """A folder of banks and judged problems. If it is not writable, nothing is stored and one warning is logged."""

    def __init__(self, folder: Path | None = None) -> None:
        """Make a cache; None: the user's cache folder."""
        self.folder = cache_folder("banks") if folder is None else folder
        self._has_warned = False

    def find(self, digest: str) -> ProblemReport | None:
        """Return a judged problem; None if it is missing, damaged, or was judged by another version of the judge."""
        content = self._read(digest)
        try:
            judged = _JudgedFile.model_validate_json(content or b"")
        except ValidationError:
            return None
        if judged.judge_version != JUDGE_VERSION:
            return None
        return ProblemReport(judged.problem_id, tuple(program.to_report() for program in judged.programs))

    def keep(self, digest: str, report: ProblemReport) -> None:
        """Store a judged problem."""
        programs = tuple(map(ReportRecord.of, report.candidates))
        file = _JudgedFile(judge_version=JUDGE_VERSION, problem_id=report.problem_id, programs=programs)
        self._write(digest, file.model_dump_json())

    def find_built(self, digest: str) -> ProblemBank | None:
        """Return a bank that was built; None if it is missing or damaged."""
        content = self._read(digest)
        try:
            return None if content is None else bank_from_line(content.decode(), digest)
        except (BrokenInput, UnicodeDecodeError):
            return None

    def keep_built(self, digest: str, bank: ProblemBank) -> None:
        """Store a bank that is not judged yet: writing its suites takes longer than judging them."""
        self._write(digest, bank_to_line(bank))

    def _read(self, digest: str) -> bytes | None:
        try:
            return gzip.decompress(self._path(digest).read_bytes())
        except (OSError, EOFError, zlib.error):
            return None

    def _write(self, digest: str, text: str) -> None:
        path = self._path(digest)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, gzip.compress(text.encode(), mtime=0))
        except OSError as error:
            if not self._has_warned:
                _log.warning("banks cannot be stored in %s: %s", self.folder, error)
            self._has_warned = True

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / f"{digest}.json.gz"
