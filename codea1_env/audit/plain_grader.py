"""What most graders do, for comparison: program and asserts in one process, and exit status 0 is a pass.

Only attacks that harm nobody (`is_safe`) are run, in a process group and a folder of their own, with limits on time and
resources, and as root by a user that owns nothing. Where that cannot be had, none is run.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from codea1_env.audit.attacks import HostileCandidate, HostileProgram, HostileSuite, Truth
from codea1_env.rules.reading.release import find_program

# Core files none, 2 processor seconds, 1 GiB of address space, files of 256 MiB, 256 descriptors.
_LIMITED = 'ulimit -c 0; ulimit -t 2; ulimit -v 1048576; ulimit -f 524288; ulimit -n 256; exec "$@"'
_UNUSED_USER = 370_000  # beyond the ids that distributions, container engines and sandboxes hand out
_LAST_WORDS_BYTES = 4096
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}


class PlainResult(StrEnum):
    """What an attack gains from a grader without a sandbox."""

    FOOLED = "fooled"
    """A wrong program passes, a right one fails, or a right answer is spoilt."""
    REACHED = "reached"
    """It reaches what it must not."""
    HELD = "held"
    TIMED_OUT = "timed out"
    """It gains nothing but the time that it takes."""
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one attack has gained from the plain grader."""

    attack: str
    result: PlainResult
    sentence: str


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a script ended."""

    status: int | None
    """Exit status, negative for a signal; None: stopped for taking too long."""
    last_line: str

    @property
    def failed_an_assert(self) -> bool:
        """Whether an assert did not hold."""
        return self.status == 1 and self.last_line.startswith("AssertionError")


class PlainGrader:
    """Runs scripts and looks at their exit status."""

    def __init__(self, *, wall_s: float = 1.5) -> None:
        """Find out how scripts can be run here without harm.

        Args:
            wall_s: seconds that a script may take.
        """
        self._wall_s = wall_s
        self._user = _UNUSED_USER + os.getpid() % 1000 if os.geteuid() == 0 else None
        self._python = sys.executable if self._user is None else _python_for_all()

    @property
    def obstacle(self) -> str:
        """Why nothing can be run here; empty if it can."""
        if sys.platform != "linux":
            return "limits can be set on Linux only"
        return "" if self._python else "no Python that another user than root could run"

    def try_program(self, attack: HostileProgram) -> Comparison:
        """Grade a hostile program by asserts that a right program passes, or that show what it has reached."""
        if reason := self.obstacle or _danger(attack.is_safe):
            return Comparison(attack.name, PlainResult.NOT_RUN, reason)
        expected = attack.right or attack.evidence or attack.values
        if not expected:
            return Comparison(attack.name, PlainResult.NOT_RUN, "no answer of it is right")
        asserts = (f"assert {call} == {value}" for call, value in zip(attack.calls, expected, strict=True))
        ended = self._run("\n".join([attack.program, *asserts]))
        if attack.right:
            return _of_wrong_program(attack.name, ended)
        if attack.evidence and ended.failed_an_assert:
            return Comparison(attack.name, PlainResult.REACHED, "it gets what a sandbox refuses")
        if attack.evidence and ended.status == 0:
            return Comparison(attack.name, PlainResult.HELD, "it gets nothing here")
        return _of_right_program(attack.name, ended)

    def try_suite(self, attack: HostileSuite) -> Comparison:
        """Grade the ground's solution and its right and wrong programs by a hostile suite."""
        if reason := self.obstacle or _danger(attack.is_safe):
            return Comparison(attack.name, PlainResult.NOT_RUN, reason)
        tests = find_program(attack.reply)
        solution = self._run(f"{attack.ground.problem.solution}\n{tests}")
        if solution.status is None:
            return Comparison(attack.name, PlainResult.TIMED_OUT, "stopped for taking too long")
        if solution.status != 0:
            return Comparison(attack.name, PlainResult.HELD, "the solution fails it, so that it is dropped")
        if attack.n_valid == 0:
            return Comparison(attack.name, PlainResult.FOOLED, "passes, and holds no test")
        if any(self._run(f"{program}\n{tests}").status != 0 for program in attack.ground.right):
            return Comparison(attack.name, PlainResult.FOOLED, "a right program fails")
        return Comparison(attack.name, PlainResult.HELD, "right programs pass")

    def try_candidate(self, attack: HostileCandidate) -> Comparison:
        """Grade a hostile candidate by those of its asserts whose truth is known."""
        if reason := self.obstacle or _danger(attack.is_safe):
            return Comparison(attack.name, PlainResult.NOT_RUN, reason)
        pairs = list(zip(attack.asserts, attack.truth, strict=True))
        failing = [line for line, truth in pairs if truth is Truth.FAILS]
        passing = [line for line, truth in pairs if truth is Truth.PASSES]
        if failing:
            return _of_wrong_program(attack.name, self._run("\n".join([attack.program, *failing])))
        if passing:
            return _of_right_program(attack.name, self._run("\n".join([attack.program, *passing])))
        return Comparison(attack.name, PlainResult.NOT_RUN, "it says nothing of any program")

    def _run(self, script: str) -> _Ended:
        folder = Path(tempfile.mkdtemp(prefix="codea1-plain-"))
        try:
            path = folder / "script.py"
            path.write_text(script, encoding="utf-8", errors="surrogatepass")
            if self._user is not None:
                os.chown(folder, self._user, self._user)
            with (folder / "stderr").open("w+b") as stderr:
                command = ["/bin/sh", "-e", "-c", _LIMITED, "sh", self._python, "-s", str(path)]
                status = self._status(command, folder, stderr.fileno())
                stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
                lines = stderr.read().decode("utf-8", "replace").strip().splitlines()
            return _Ended(status, lines[-1] if lines else "")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _status(self, command: list[str], folder: Path, stderr: int) -> int | None:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd=folder,
            env={**_ENVIRONMENT, "HOME": str(folder)},
            start_new_session=True,
            user=self._user,
            group=self._user,
            extra_groups=None if self._user is None else [],
        )
        try:
            return process.wait(self._wall_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _danger(is_safe: bool) -> str:
    return "" if is_safe else "it could harm this machine"


def _of_wrong_program(name: str, ended: _Ended) -> Comparison:
    if ended.status == 0:
        return Comparison(name, PlainResult.FOOLED, "a wrong program passes")
    if ended.status is None:
        return Comparison(name, PlainResult.TIMED_OUT, "stopped for taking too long")
    return Comparison(name, PlainResult.HELD, "fails, as it should")


def _of_right_program(name: str, ended: _Ended) -> Comparison:
    if ended.status == 0:
        return Comparison(name, PlainResult.HELD, "passes, as it should")
    if ended.status is None:
        return Comparison(name, PlainResult.TIMED_OUT, "a right answer is stopped for taking too long")
    return Comparison(name, PlainResult.FOOLED, "a right answer is spoilt")


def _python_for_all() -> str:
    """Return an interpreter that any user can run; empty if there is none."""
    found = (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin"))
    return next((path for path in found if path and _is_open_to_all(Path(path))), "")


def _is_open_to_all(path: Path) -> bool:
    reached = path.resolve()
    return all(part.stat().st_mode & 0o001 for part in (reached, *reached.parents, *path.absolute().parents))
