"""Problem files: JSON lines, one JSON array, Parquet; JSON also compressed with gzip."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from codea1_env.errors import BrokenInput, UserError, extra_needed
from codea1_env.problems.hugging_face import is_saved_dataset, load_dataset_problems
from codea1_env.problems.layouts import FoundRow, read_rows
from codea1_env.problems.own_rows import problem_to_row
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.records.faults import read_json, read_within
from codea1_env.records.file_errors import mode_of
from codea1_env.records.whole_files import write_whole

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"
MOST_BYTES = 1 << 30
"""Of a file of rows, unpacked."""
_MOST_ROWS = 1 << 20
_BATCH_ROWS = 64
_COLUMN = re.compile(r"[^\W\d][\w .-]{0,99}")


def load_file(path: str | os.PathLike[str], *, strict: bool = False) -> ProblemSet:
    """Return the problems of one file, in its order; the columns of a row determine its layout.

    Args:
        path: JSON lines (with or without gzip), a JSON array, or Parquet; recognised by content, not by name.
        strict: fail at the first broken row instead of skipping it.

    Raises:
        BrokenInput: the file does not exist, cannot be read, has another format, or has no usable row; or, if `strict`,
            a row is broken.
        MissingExtra: Parquet without `codea1-env[data]`.
    """
    path = Path(path)
    return read_rows(path.name, find_rows(path), strict=strict)


def load_path(path: Path, endings: tuple[str, ...], *, strict: bool = False) -> ProblemSet:
    """Return the problems of a file, of a saved HuggingFace dataset, or of a folder with files of these endings.

    Raises:
        BrokenInput: it cannot be read, or contains no problems; see `load_file` and `load_dataset_problems`.
    """
    try:
        if not stat.S_ISDIR(mode_of(path)):
            return load_file(path, strict=strict)
        if is_saved_dataset(path):
            return load_dataset_problems(path, strict=strict)
        files = sorted(file for file in path.iterdir() if file.name.endswith(endings) and file.is_file())
    except OSError as error:  # e.g. a parent folder that this user may not enter
        raise BrokenInput(f"{path}: it cannot be read ({error.strerror or error})") from error
    if not files:
        raise BrokenInput(f"{path}: the folder contains no problem files ({', '.join(endings)})")
    return read_rows(path.name, _rows_of(files, strict), strict=strict)


def _rows_of(files: Iterable[Path], strict: bool) -> Iterator[FoundRow]:
    for file in files:
        try:
            yield from find_rows(file)
        except BrokenInput as error:
            if strict:
                raise
            yield FoundRow(file.name, fault=str(error))


def find_rows(path: Path) -> Iterator[FoundRow]:
    """Yield the raw rows of a file; for a row that cannot be read, the reason.

    Raises:
        BrokenInput: the file as a whole cannot be read.
        MissingExtra: as `load_file`.
    """
    start = _start_of(path)
    is_parquet, is_gzip = start.startswith(_PARQUET), start.startswith(_GZIP)
    rows = _parquet_rows(path) if is_parquet else _json_rows(path, _content(path, compressed=is_gzip))
    yield from islice(rows, _MOST_ROWS)
    if next(rows, None):
        raise BrokenInput(f"{path}: expected at most {_MOST_ROWS:,} rows, got more")


def dump_jsonl(problems: Iterable[Problem], path: str | os.PathLike[str]) -> None:
    """Write problems as JSON lines in this project's layout; `load_file` reads equal problems from it.

    If the path ends in `.gz`, the file is compressed. It is replaced atomically.

    Raises:
        UserError: the file cannot be written.
    """
    path = Path(path)
    lines = (json.dumps(problem_to_row(problem), ensure_ascii=False) for problem in problems)
    content = "".join(f"{line}\n" for line in lines).encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    try:
        write_whole(path, content)
    except OSError as error:
        raise UserError(f"{path}: it cannot be written ({error})") from error


def _start_of(path: Path) -> bytes:
    try:
        mode = mode_of(path)
        if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # it is read more than once
            raise BrokenInput(f"{path}: a pipe or a device, not a file: write its content to a file first")
        with path.open("rb") as file:
            start = file.read(4)
    except FileNotFoundError as error:
        raise BrokenInput(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise BrokenInput(f"{path}: it is a folder, not a file") from error
    except (OSError, ValueError) as error:
        raise BrokenInput(f"{path}: it cannot be read ({error})") from error
    if not start:
        raise BrokenInput(f"{path}: the file is empty")
    return start


def _content(path: Path, *, compressed: bool) -> bytes:
    try:
        with gzip.open(path) if compressed else path.open("rb") as file:
            content = read_within(file, MOST_BYTES, str(path))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BrokenInput(f"{path}: the gzip data is damaged or cut off ({error})") from error
    except OSError as error:
        raise BrokenInput(f"{path}: it cannot be read ({error})") from error
    if b"\0" in content[:4096]:
        raise BrokenInput(f"{path}: it is neither Parquet, gzip nor UTF-8 text: unpack or convert it")
    return content.removeprefix(_BOM)


def _json_rows(path: Path, content: bytes) -> Iterator[FoundRow]:
    if content.lstrip()[:1] == b"[":
        yield from _array_rows(path, content)
        return
    if _is_one_object(content):
        raise BrokenInput(
            f"{path}: it is one JSON object over several lines: write each row on one line, or all as one JSON array"
        )
    if _is_csv(path, content):
        raise BrokenInput(
            f"{path}: it is CSV, expected JSON lines, a JSON array or Parquet: write each row as one JSON object"
        )
    for number, line in enumerate(BytesIO(content), start=1):
        if line.strip():
            yield _line_row(f"{path.name} line {number}", line)


def _is_csv(path: Path, content: bytes) -> bool:
    """Return whether a text that is no JSON has a header of two columns at least, or CSV's name."""
    header = content.lstrip().split(b"\n", 1)[0].decode(errors="replace").strip()
    if not header or header[0] in "{[":
        return False
    names = [next(csv.reader([header], delimiter=mark), []) for mark in ",;\t"]
    has_columns = any(len(row) > 1 and all(_COLUMN.fullmatch(name.strip()) for name in row) for row in names)
    return has_columns or path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def _is_one_object(content: bytes) -> bool:
    if content.split(b"\n", 1)[0].strip() != b"{":  # as tools print it
        return False
    try:
        return isinstance(read_json("it", content, is_strict=False), dict)
    except BrokenInput:
        return False


def _array_rows(path: Path, content: bytes) -> Iterator[FoundRow]:
    try:
        rows = read_json("it", content, most=MOST_BYTES, is_strict=False)
    except BrokenInput as error:
        raise BrokenInput(f"{path}: it begins like a JSON array but is not one ({error})") from error
    for number, row in enumerate(rows, start=1):
        yield FoundRow(f"{path.name} row {number}", row)


def _line_row(place: str, line: bytes) -> FoundRow:
    try:
        return FoundRow(place, read_json("it", line, is_strict=False))
    except BrokenInput as error:
        return FoundRow(place, fault=f"{error}: each line must be one object")


def _parquet_rows(path: Path) -> Iterator[FoundRow]:
    with extra_needed("reading Parquet", "data"):
        import pyarrow  # noqa: PLC0415  -- heavy, and an extra
        import pyarrow.parquet  # noqa: PLC0415  -- heavy, and an extra
    number = n_bytes = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS):
                n_bytes += batch.nbytes
                if n_bytes > MOST_BYTES:
                    raise BrokenInput(f"{path}: expected rows of at most {MOST_BYTES:,} bytes together, got more")
                for i in range(batch.num_rows):
                    number += 1
                    yield _parquet_row(f"{path.name} row {number}", batch.slice(i, 1))
    except (pyarrow.ArrowException, OSError) as error:
        raise BrokenInput(f"{path}: the Parquet data is damaged or cut off ({error})") from error


def _parquet_row(place: str, batch: Any) -> FoundRow:
    try:
        return FoundRow(place, batch.to_pylist()[0])
    except ValueError as error:  # text that is not UTF-8
        return FoundRow(place, fault=f"it cannot be decoded ({error})")
