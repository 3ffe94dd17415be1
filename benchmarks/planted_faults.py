"""Plants faults in the product and records which of them the tests catch, so that a change loses no protection unseen.

    python benchmarks/planted_faults.py choose FAULTS.json [--seed 0]
    python benchmarks/planted_faults.py record FAULTS.json INTO.jsonl [--first OLD.jsonl] [--checkout FOLDER]
    python benchmarks/planted_faults.py compare OLD.jsonl NEW.jsonl     # exit status 1 if a fault is caught no more

A fault changes one statement of a function in the rooms `rules`, `judging`, `values` and `sandbox`: a comparison is
flipped or moved by one, a condition negated, a constant changed, an argument or a whole call dropped, a returned value
replaced, an early return removed, an `except` emptied, and so on. Texts of errors, `__repr__` and asserts are left out.
`choose` draws 200 from statements, and at least 30 of each room. A fault is named by module, function, and the
statement before and after, and is planted in any checkout in which a function of that name still has that statement,
wherever the function has moved. Where none has, the fault is `gone`.

`record` plants one fault after the other in copies of the checkout and stops at the first test that fails twice, the
second time by itself. A run that takes too long is a catch, too. The stages, all without models, Ray and browsers:

1. the test that caught the fault in OLD, with `--first`
2. the test modules named after the module or a package around it
3. the tests of the mirrored folder of tests, or of the nearest that exists; without slow ones
4. all other tests of the environment, without slow ones, those of the service, which take long, and those of the
   audit, which watch the whole machine and so see what other processes of `record` do
5. the slow tests of the mirrored folder
6. for the sandbox that runs in containers: that folder's tests with an engine (`.ci/docker-engine`)

Where no engine can be had, what only stage 6 could catch is `skipped`. INTO grows by a line per fault; an interrupted
`record` goes on where it was.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "codea1_env"
ROOMS = ("rules", "judging", "values", "sandbox")
N_FAULTS, LEAST_PER_ROOM, MOST_PER_FUNCTION = 200, 30, 3
_RUN_S = 1800
"""Limit of one run of pytest; the widest takes one minute on an idle machine, and the slowest folder two."""
_TEST_S = 60
_OTHERS = "not models and not ray and not browser and not long"
FAST, SLOW, ENGINE = (f"{_OTHERS} and {each}" for each in ("not engine and not slow", "not engine and slow", "engine"))


# -- the faults ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """One statement of one function, changed."""

    module: str
    function: str
    operator: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """What identifies the fault, and says what it is."""
        return f"{self.module} {self.function}: {self.operator}: `{self.before}` -> `{self.after}`"


@dataclass(frozen=True)
class _Slot:
    """A place in a syntax tree, whose node can be replaced."""

    owner: Any
    field: str
    place: int | None
    node: Any

    def put(self, node: ast.AST) -> None:
        if self.place is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.place] = node


def _both_ways(*pairs: tuple[type[ast.AST], type[ast.AST]]) -> dict[type[ast.AST], type[ast.AST]]:
    return {each: other for pair in pairs for each, other in (pair, pair[::-1])}


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
_REMOVED = (ast.AugAssign, ast.Delete, ast.Raise, ast.Continue, ast.Break)
_EQUALS = _both_ways((ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
_FLIPPED = _EQUALS | _both_ways((ast.Lt, ast.GtE), (ast.Gt, ast.LtE))
_MOVED = _both_ways((ast.Lt, ast.LtE), (ast.Gt, ast.GtE))
_NUMERIC = _both_ways((ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.LShift, ast.RShift)) | {ast.Div: ast.Mult}
_SWAPPED = _NUMERIC | _both_ways((ast.And, ast.Or)) | {ast.BitAnd: ast.BitOr}


def _slots(owner: ast.AST) -> Iterator[_Slot]:
    for field, value in ast.iter_fields(owner):
        for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST):
                yield _Slot(owner, field, place, node)


def _functions(owner: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(owner):
        if isinstance(node, _SCOPES):
            if isinstance(node, _FUNCTIONS) and node.name not in ("__repr__", "__str__"):
                yield prefix + node.name, node
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, _BLOCKS):
            yield from _functions(node, prefix)


def _statements(owner: ast.AST) -> Iterator[_Slot]:
    """Yield the places of statements and `except` branches, without those of inner functions."""
    for slot in _slots(owner):
        if isinstance(slot.node, _BLOCKS) and not isinstance(slot.node, (ast.Assert, *_SCOPES)):
            if not isinstance(slot.node, ast.match_case):
                yield slot
            yield from _statements(slot.node)


def _expressions(owner: ast.AST) -> Iterator[_Slot]:
    """Yield the places within one statement, without texts for people."""
    is_docstring = isinstance(owner, ast.Expr) and isinstance(owner.value, ast.Constant)
    if not is_docstring and not isinstance(owner, ast.Raise | ast.JoinedStr):
        for slot in _slots(owner):
            if slot.field != "annotation" and not isinstance(slot.node, _BLOCKS):
                yield slot
                yield from _expressions(slot.node)


def _with(node: ast.AST, **changed: object) -> ast.AST:
    return type(node)(**{**dict(ast.iter_fields(node)), **changed})


def _alternatives(slot: _Slot) -> Iterator[tuple[str, ast.AST]]:
    """Yield an operator and a changed node for each way to get this place wrong."""
    node = slot.node
    if isinstance(node, ast.Compare):
        yield from _comparisons(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Return):
        yield from _returns(node, in_block=not isinstance(slot.owner, _FUNCTIONS))
    elif isinstance(node, ast.BoolOp | ast.BinOp | ast.AugAssign) and type(node.op) in _SWAPPED:
        yield "operation", _with(node, op=_SWAPPED[type(node.op)]())
    elif isinstance(node, ast.If | ast.While | ast.IfExp | ast.UnaryOp):
        yield from _conditions(node)
    elif isinstance(node, ast.Constant) and (other := _other(node.value)) is not None:
        yield "constant", _with(node, value=other)
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "filter", _with(node, ifs=[])
    elif isinstance(node, ast.ExceptHandler) and not isinstance(node.body[0], ast.Pass):
        yield "emptied except", _with(node, body=[ast.Pass()])
    if isinstance(node, _REMOVED) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)):
        yield "removed statement", ast.Pass()


def _comparisons(node: ast.Compare) -> Iterator[tuple[str, ast.AST]]:
    for operator, table in (("comparison", _FLIPPED), ("boundary", _MOVED)):
        for place, op in enumerate(node.ops):
            if type(op) in table:
                yield operator, _with(node, ops=[*node.ops[:place], table[type(op)](), *node.ops[place + 1 :]])


def _conditions(node: ast.If | ast.While | ast.IfExp | ast.UnaryOp) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not):
            yield "negation", node.operand
    elif not isinstance(node.test, ast.Compare | ast.UnaryOp):  # which are changed by themselves
        yield "negation", _with(node, test=ast.UnaryOp(ast.Not(), node.test))


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    if len(node.args) > 1 and not (isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "cast")):
        yield "arguments", _with(node, args=[node.args[1], node.args[0], *node.args[2:]])
        yield "arguments", _with(node, args=node.args[:-1])
    for place in range(len(node.keywords)):
        yield "arguments", _with(node, keywords=[*node.keywords[:place], *node.keywords[place + 1 :]])


def _returns(node: ast.Return, *, in_block: bool) -> Iterator[tuple[str, ast.AST]]:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and not node.value.value):
        yield "returned value", _with(node, value=ast.Constant(None))
    if in_block:
        yield "removed return", ast.Pass()


def _other(value: object) -> object:
    """Return another constant of the same type; none for texts for people, which have spaces."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1 if isinstance(value, int) else value * 2 + 1
    if isinstance(value, str) and value and " " not in value:
        return f"{value}_"
    return value + b"_" if isinstance(value, bytes) and value else None


def _text(node: ast.AST) -> str:
    """Return a statement in one spelling, a compound one without its blocks."""
    text = ast.unparse(node)
    return text.partition(":\n")[0] if hasattr(node, "body") and isinstance(node, ast.stmt) else text


def _changes(module: str, function: str, body: ast.AST) -> Iterator[Fault]:
    """Yield the faults of a function; while one is the last that was yielded, the tree has it."""
    places = list(_statements(body))
    texts = [_text(place.node) for place in places]
    for place, before in zip(places, texts, strict=True):
        if texts.count(before) > 1:
            continue
        for slot in [place, *_expressions(place.node)]:
            for operator, node in _alternatives(slot):
                slot.put(node)
                after = _text(node if slot is place else place.node)
                if after != before:  # as it is if two equal arguments are swapped
                    yield Fault(module, function, operator, before, after)
                slot.put(slot.node)


def faults_of(module: str, source: str) -> Iterator[Fault]:
    """Yield all faults that can be planted in a module."""
    for function, body in _functions(ast.parse(source)):
        yield from _changes(module, function, body)


def planted(fault: Fault, source: str) -> str | None:
    """Return the text of a module with a fault; None where no function of that name has its statement."""
    tree, name = ast.parse(source), fault.function.rpartition(".")[2]
    namesakes = [each for each in _functions(tree) if each[0].rpartition(".")[2] == name]
    for _, body in sorted(namesakes, key=lambda each: each[0] != fault.function):
        if any(each == fault for each in _changes(fault.module, fault.function, body)):
            return ast.unparse(tree) + "\n"
    return None


def place_of(fault: Fault, checkout: Path) -> tuple[Path, str] | None:
    """Return the module that a fault can be planted in, and its text with the fault; None if it is gone."""
    first = checkout / fault.module
    for path in sorted((checkout / PACKAGE).rglob("*.py"), key=lambda path: (path != first, path)):
        if text := planted(fault, path.read_text()):
            return path, text
    return None


def choose(checkout: Path, seed: int) -> list[Fault]:
    """Draw faults: statements first, so that long ones are not hit more often; then how, and what."""
    drawn = random.Random(seed)
    faults: list[Fault] = []
    pools: dict[str, dict[tuple[str, str, str], list[Fault]]] = {room: {} for room in ROOMS}
    for room, pool in pools.items():
        for path in sorted((checkout / PACKAGE / room).rglob("*.py")):
            for fault in faults_of(path.relative_to(checkout).as_posix(), path.read_text()):
                pool.setdefault((fault.module, fault.function, fault.before), []).append(fault)
    n_statements = sum(map(len, pools.values()))
    for pool in sorted(pools.values(), key=len):
        share = max(LEAST_PER_ROOM, round((N_FAULTS - len(faults)) * len(pool) / n_statements))
        n_statements -= len(pool)
        of_function: Counter[tuple[str, str]] = Counter()
        for module, function, before in drawn.sample(sorted(pool), len(pool)):
            if share and of_function[module, function] < MOST_PER_FUNCTION:
                found = pool[module, function, before]
                operator = drawn.choice(sorted({fault.operator for fault in found}))
                faults.append(drawn.choice([fault for fault in found if fault.operator == operator]))
                of_function[module, function] += 1
                share -= 1
    return faults


# -- the runs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What became of a fault."""

    fault: str
    status: str
    """`caught`, `missed`, `skipped` or `gone`."""
    by: str = ""
    """The test that failed, or else what ended the run."""
    stage: str = ""
    time_s: float = 0


@dataclass(frozen=True)
class Stage:
    """Tests that run together."""

    name: str
    tests: tuple[str, ...]
    marks: str


def stages(checkout: Path, module: str, first: str | None) -> list[Stage]:
    """Return what is run for a fault of a module, in order."""
    tests = Path("tests") / PACKAGE
    inner = Path(module).with_suffix("").relative_to(PACKAGE)
    around = [part for part in (inner, *inner.parents) if part.name]
    named = [path for part in around for path in sorted((checkout / tests / part.parent).glob(f"test_{part.name}*.py"))]
    mirrored = tuple(str(tests / part) for part in around if (checkout / tests / part).is_dir())[:1]
    apart = (*mirrored, str(tests / "service"), str(tests / "audit"))
    found = [
        Stage("first", (first,) if first else (), f"({FAST}) or ({SLOW}) or ({ENGINE})"),
        Stage("modules", tuple(str(path.relative_to(checkout)) for path in named), FAST),
        Stage("folder", mirrored, FAST),
        Stage("all", (str(tests), *(f"--ignore={each}" for each in apart)), FAST),
        Stage("slow", mirrored, SLOW),
        Stage("engine", mirrored if "docker" in module else (), ENGINE),
    ]
    return [stage for stage in found if stage.tests]


class _Copy:
    """A copy of a checkout, in which one process plants faults and runs tests."""

    def __init__(self, checkout: Path, root: Path) -> None:
        self.root = root
        listing = ["git", "-C", str(checkout), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.check_output(listing, text=True).split("\0"):
            if name and (checkout / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / name, root / name)
        self.environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'agents'}"}
        self.environment.pop("CODEA1_ALL_TESTS", None)
        imported = f"import {PACKAGE}, sys; sys.exit(not {PACKAGE}.__file__.startswith({str(root)!r}))"
        subprocess.run([sys.executable, "-c", imported], cwd="/", env=self.environment, check=True)
        has_engine = '[ -n "$DOCKER_HOST" ] || [ -S /var/run/docker.sock ]'
        self.has_engine = self._status([".ci/docker-engine", "run", "bash", "-c", has_engine]) == 0

    def found(self, fault: Fault, first: str | None) -> Found:
        """Plant a fault, run the tests, and take it out again."""
        began = time.perf_counter()
        place = place_of(fault, self.root)
        if place is None:
            return Found(fault.name, "gone")
        path, text = place
        source = path.read_text()
        try:
            _write(path, text)
            status, by, stage = self._caught(path.relative_to(self.root).as_posix(), first)
        finally:
            _write(path, source)
        return Found(fault.name, status, by, stage, round(time.perf_counter() - began, 1))

    def _caught(self, module: str, first: str | None) -> tuple[str, str, str]:
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)  # examples of other faults
        for stage in stages(self.root, module, first):
            if stage.name == "engine" and not self.has_engine:
                return "skipped", "no engine", stage.name
            if by := self._failing(stage):
                return "caught", by, stage.name
        return "missed", "", ""

    def _failing(self, stage: Stage) -> str:
        """Return the first test of a stage that fails, and fails again by itself; empty if none does."""
        tests = list(stage.tests)
        while True:
            status = self._pytest(stage, tests)
            if status in (0, 5) or (status == 4 and stage.name == "first"):  # 4, 5: there is no such test
                return ""
            failed = self.root / ".pytest_cache" / "v" / "cache" / "lastfailed"
            if status is None or not failed.exists():
                return "time limit" if status is None else f"exit status {status}"
            (name, *_) = json.loads(failed.read_text())
            if self._pytest(stage, [name]) not in (0, 5):
                return str(name)
            tests.append(f"--deselect={name}")

    def _pytest(self, stage: Stage, tests: list[str]) -> int | None:
        shutil.rmtree(self.root / ".pytest_cache", ignore_errors=True)
        engine = [".ci/docker-engine", "run"] if stage.name == "engine" else []
        options = ["-x", "-q", "-n", "0", "--hypothesis-seed=0", f"--timeout={_TEST_S}", "-m", stage.marks]
        return self._status([*engine, sys.executable, "-m", "pytest", *options, *tests])

    def _status(self, command: list[str]) -> int | None:
        """Return the exit status of a command, None if it takes too long; nothing that it started is left."""
        with self.root.with_suffix(".log").open("w") as log:
            quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            child = subprocess.Popen(command, cwd=self.root, env=self.environment, **quiet)
            status = _waited(child.pid, _RUN_S)
            if status is None:
                child.terminate()  # the script that has started an engine ends it
                _waited(child.pid, _TEST_S)
        child.returncode = -1  # it has been waited for
        _end_children()
        return status


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):  # one of the same second and size would do
        stale.unlink()


def _waited(pid: int, limit_s: float) -> int | None:
    """Return the exit status of a process, None if it takes too long; reap all others that end, as `init` would."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0 if ended else 0.05)
    return None


def _end_children() -> None:
    """Kill what is left; orphans become children of this process, until there are none."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


_PR_SET_CHILD_SUBREAPER = 36
_copies: list[_Copy] = []
"""The copy of this process."""


def _start(checkout: Path, folder: Path) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _copies.append(_Copy(checkout, folder / str(os.getpid())))


def _found(fault: Fault, first: str | None) -> Found:
    return _copies[0].found(fault, first)


# -- the commands ----------------------------------------------------------------------------------


def record(faults: list[Fault], into: Path, checkout: Path, *, first: dict[str, Found], n_workers: int) -> None:
    """Append what becomes of each fault that the record does not hold yet."""
    known = found_in(into) if into.exists() else {}
    left = [fault for fault in faults if fault.name not in known]
    tests = {name: each.by for name, each in first.items() if "::" in each.by}
    with tempfile.TemporaryDirectory(prefix="codea1-faults-") as work, into.open("a") as output:
        Path(work).chmod(0o755)  # some tests run Python as another user
        with ProcessPoolExecutor(n_workers, initializer=_start, initargs=(checkout, Path(work))) as pool:
            runs = [pool.submit(_found, fault, tests.get(fault.name)) for fault in left]
            for number, run in enumerate(as_completed(runs), 1):
                found = run.result()
                print(json.dumps(asdict(found), ensure_ascii=False), file=output, flush=True)
                print(f"{number}/{len(runs)} {found.time_s:.0f} s {found.status} {found.fault}", file=sys.stderr)


def found_in(path: Path) -> dict[str, Found]:
    """Return the findings of a record by fault."""
    found = [Found(**json.loads(line)) for line in path.read_text().splitlines()]
    return {each.fault: each for each in found}


def lost(old: dict[str, Found], new: dict[str, Found]) -> list[str]:
    """Return a line for each fault that the old tests caught and the new ones have not: missed, skipped, not run."""
    status = {name: new[name].status if name in new else "not recorded" for name in old}
    return [
        f"{status[name]}, was caught by {each.by}: {name}"
        for name, each in old.items()
        if each.status == "caught" and status[name] not in ("caught", "gone")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    choosing = commands.add_parser("choose", help="draw faults and write them to a file")
    recording = commands.add_parser("record", help="run the tests with one fault after the other")
    comparing = commands.add_parser("compare", help="name what was caught and no longer is")
    for command, *paths in ((choosing, "faults"), (recording, "faults", "into"), (comparing, "old", "new")):
        for path in paths:
            command.add_argument(path, type=Path)
        if command is not comparing:
            command.add_argument("--checkout", type=Path, default=ROOT)
    choosing.add_argument("--seed", type=int, default=0)
    recording.add_argument("--first", type=Path, help="a record whose tests are tried first")
    recording.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.command == "choose":
        chosen = [asdict(each) for each in choose(options.checkout.resolve(), options.seed)]
        options.faults.write_text(json.dumps(chosen, indent=1, ensure_ascii=False) + "\n")
    elif options.command == "record":
        faults = [Fault(**each) for each in json.loads(options.faults.read_text())]
        first = found_in(options.first) if options.first else {}
        record(faults, options.into, options.checkout.resolve(), first=first, n_workers=options.workers)
    else:
        old, new = found_in(options.old), found_in(options.new)
        for path, found in ((options.old, old), (options.new, new)):
            print(path, dict(Counter(each.status for each in found.values())))
        print("".join(f"gone: {each.fault}\n" for each in new.values() if each.status == "gone"), end="")
        print("\n".join(lines := lost(old, new)) or "no fault that was caught is missed")
        sys.exit(bool(lines))


if __name__ == "__main__":
    main()
