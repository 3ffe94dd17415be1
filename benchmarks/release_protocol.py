"""The judging protocol of the official Code-A1 code, for comparison: one script, process and time limit per candidate.

Written from a description of the protocol. The solution computes the expected values, then its functions are deleted.
In the same process, the candidate runs the replayed cases and then its suites. The script prints a marker for each
passed case.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence

from workload import Group

_TIME_LIMIT_S = 30


def script(group: Group, m: int, replayed: Iterable[str]) -> str:
    """Return the script that judges candidate `m` of a group.

    Args:
        group: the problem, its candidates and its suites.
        m: number of the candidate.
        replayed: asserts from the Mistake Book.
    """
    entry_point = group.problem.entry_point
    parts = [group.problem.imports, group.problem.solution, "import types as _types\n_slots = {}"]
    for n, suite in enumerate(group.suites[m]):
        parts.append("_seen = set()")
        parts += [_calibration(f"{n}_{k}", case.call, case.prediction) for k, case in enumerate(suite)]
    parts += [
        "for _name in [_n for _n, _v in globals().items() if isinstance(_v, _types.FunctionType)]:\n"
        "    del globals()[_name]",
        f"_program = {group.programs[m]!r}",
        "try:\n    exec(compile(_program, 'candidate', 'exec'), globals())\n    print('__CODE_VALID__')\n"
        "except Exception:\n    pass",
        f"assert {entry_point!r} in globals()",
    ]
    parts += [_check(f"__HIST_PASS__{k}__", text) for k, text in enumerate(replayed)]
    for n, suite in enumerate(group.suites[m]):
        for k, case in enumerate(suite):
            slot = f"_slots['{n}_{k}']"
            parts.append(f"if {slot} is not None:")
            parts.append(_indented(_check(f"__GEN_PASS__{n}_{k}__", f"assert {case.call} == {slot}['val']")))
    return "\n".join(parts)


def passed(source: str) -> int:
    """Run a script with `subprocess`; return the number of cases that its candidate passes."""
    done = subprocess.run(
        [sys.executable, "-"], input=source, capture_output=True, text=True, timeout=_TIME_LIMIT_S, check=False
    )
    return sum("_PASS__" in line for line in done.stdout.splitlines())


def replayed_asserts(group: Group, expected: Sequence[str]) -> list[str]:
    """Return the cases of the Mistake Book as asserts, which the official code puts into its scripts."""
    return [f"assert {entry.expression} == {value}" for entry, value in zip(group.book, expected, strict=True)]


def _calibration(key: str, call: str, prediction: str) -> str:
    return f"""try:
    _r = {call}
    _stmt = {f"assert {call} == "!r} + repr(_r)
    if _stmt in _seen:
        _slots[{key!r}] = None
    else:
        _seen.add(_stmt)
        _slots[{key!r}] = {{"val": _r, "stmt": _stmt}}
        print("__GEN_START__{key}__", repr(_stmt))
        if _r != ({prediction}):
            print("__GEN_WRONG__{key}__")
except Exception:
    _slots[{key!r}] = None"""


def _check(marker: str, statement: str) -> str:
    return f"""try:
    {statement}
    print({marker!r})
except Exception as _error:
    print("__FAIL__", repr(_error))"""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
