"""A grader as most are, for comparison: it runs program and asserts in one process, and exit status 0 is a pass.

`python benchmarks/plain_grader.py` prints the lists of docs/experiments/attacks/report.md: each attack by its result
on this grader, and those that a sandbox does not hold.

It runs only harmless attacks (`is_safe`), each in its own process group and folder, with limits on time and resources;
if started by root, as a user that owns nothing. If this is not possible, it runs none.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from codea1_env.audit import load_attacks, run_audit
from codea1_env.audit.attacks import Attack, HostileCandidate, HostileProgram, HostileSuite, Truth
from codea1_env.audit.findings import AuditResult, Finding
from codea1_env.audit.surroundings import Surroundings
from codea1_env.rules.reading.release import find_program
from codea1_env.sandbox import load_sandbox

# No core files, 2 processor seconds, 1 GiB of address space, files of 256 MiB, 256 descriptors.
_LIMITED = 'ulimit -c 0; ulimit -t 2; ulimit -v 1048576; ulimit -f 524288; ulimit -n 256; exec "$@"'
_UNUSED_USER = 370_000  # above the ids that distributions, container engines and sandboxes assign
_MAX_STDERR_BYTES = 4096
_AT_A_TIME = 4  # scripts, most of which wait for their time limit
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}


class PlainResult(StrEnum):
    """The result of an attack on a grader without a sandbox."""

    FOOLED = "fooled"
    """A wrong program passes, a right one fails, or a right answer is lost."""
    REACHED = "reached"
    """It reaches something forbidden."""
    TIMED_OUT = "timed out"
    """It only costs time."""
    HELD = "held"
    """It gains nothing."""
    NOT_RUN = "not run"


_Found: TypeAlias = tuple[PlainResult, str]
_STOPPED: _Found = PlainResult.TIMED_OUT, "stopped: it takes too long"


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a script ended."""

    status: int | None
    """Exit status, negative for a signal; None if it was stopped because it took too long."""
    last_line: str

    @property
    def failed_an_assert(self) -> bool:
        """Whether an assert failed."""
        return self.status == 1 and self.last_line.startswith("AssertionError")


class PlainGrader:
    """Runs scripts and reads their exit status."""

    def __init__(self, *, wall_s: float = 1.5) -> None:
        """Find out how scripts can be run safely on this machine.

        Args:
            wall_s: seconds that a script may take.
        """
        self._wall_s = wall_s
        self._user = _UNUSED_USER + os.getpid() % 1000 if os.geteuid() == 0 else None
        self._python = sys.executable if self._user is None else _python_for_all()

    @property
    def obstacle(self) -> str:
        """Why no script can be run on this machine; empty if they can."""
        if sys.platform != "linux":
            return "limits can be set on Linux only"
        return "" if self._python else "there is no Python that another user than root can run"

    def try_attack(self, attack: HostileProgram | HostileSuite | HostileCandidate) -> Finding[PlainResult]:
        """Grade one attack.

        A program is graded by asserts that a right program passes, or that fail if it has reached something; a suite by
        the testbed's solution and right programs; a candidate by the asserts that it must fail, or else by those that
        it must pass.
        """
        obstacle = self.obstacle or ("" if attack.is_safe else "it could harm this machine")
        if obstacle:
            return Finding(attack.name, PlainResult.NOT_RUN, obstacle)
        if isinstance(attack, HostileProgram):
            return Finding(attack.name, *self._of_program(attack))
        if isinstance(attack, HostileSuite):
            return Finding(attack.name, *self._of_suite(attack))
        return Finding(attack.name, *self._of_candidate(attack))

    def _of_program(self, attack: HostileProgram) -> _Found:
        expected = attack.right or attack.evidence or attack.values
        if not expected:
            return PlainResult.NOT_RUN, "the attack states no right answers"
        asserts = (f"assert {call} == {value}" for call, value in zip(attack.calls, expected, strict=True))
        ended = self._run("\n".join([attack.program, *asserts]))
        if attack.right:
            return _of_wrong_program(ended)
        if attack.evidence and ended.failed_an_assert:
            return PlainResult.REACHED, "it reaches what a sandbox refuses"
        if attack.evidence and ended.status == 0:
            return PlainResult.HELD, "it reaches nothing"
        return _of_right_program(ended)

    def _of_suite(self, attack: HostileSuite) -> _Found:
        tests = find_program(attack.reply)
        solution = self._run(f"{attack.testbed.problem.solution}\n{tests}")
        if solution.status is None:
            return _STOPPED
        if solution.status != 0:
            return PlainResult.HELD, "the solution fails it, so it is dropped"
        if attack.n_valid == 0:
            return PlainResult.FOOLED, "passes, but contains no test"
        if any(self._run(f"{program}\n{tests}").status != 0 for program in attack.testbed.right):
            return PlainResult.FOOLED, "a right program fails"
        return PlainResult.HELD, "right programs pass"

    def _of_candidate(self, attack: HostileCandidate) -> _Found:
        pairs = list(zip(attack.asserts, attack.truth, strict=True))
        failing = [line for line, truth in pairs if truth is Truth.FAILS]
        passing = [line for line, truth in pairs if truth is Truth.PASSES]
        if failing:
            return _of_wrong_program(self._run("\n".join([attack.program, *failing])))
        if passing:
            return _of_right_program(self._run("\n".join([attack.program, *passing])))
        return PlainResult.NOT_RUN, "its asserts are not evidence about any program"

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
                stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _MAX_STDERR_BYTES))
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


def _of_wrong_program(ended: _Ended) -> _Found:
    if ended.status is None:
        return _STOPPED
    passes = ended.status == 0
    return (PlainResult.FOOLED, "a wrong program passes") if passes else (PlainResult.HELD, "fails, as it should")


def _of_right_program(ended: _Ended) -> _Found:
    if ended.status == 0:
        return PlainResult.HELD, "passes, as it should"
    if ended.status is None:
        return PlainResult.TIMED_OUT, "a right answer is stopped: it takes too long"
    return PlainResult.FOOLED, "a right answer is lost"


def _python_for_all() -> str:
    """Return the path of an interpreter that every user can run; empty if there is none."""
    found = (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin"))
    return next((path for path in found if path and _is_open_to_all(Path(path))), "")


def _is_open_to_all(path: Path) -> bool:
    reached = path.resolve()
    return all(part.stat().st_mode & 0o001 for part in (reached, *reached.parents, *path.absolute().parents))


def main() -> None:
    """Print the lists."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sandbox", default="local")
    parser.add_argument("--only", metavar="ATTACK")
    options = parser.parse_args()
    attacks = load_attacks() if options.only is None else load_attacks().only(options.only)
    grader = PlainGrader()
    with Surroundings(), ThreadPoolExecutor(_AT_A_TIME) as pool:  # the files and processes that attacks look for
        plain = {found.attack: found.result for found in pool.map(grader.try_attack, attacks)}
    with closing(load_sandbox(options.sandbox)) as sandbox:
        found = {finding.attack: finding.result for finding in run_audit(sandbox, attacks=attacks).findings}
    kinds = {"programs": attacks.programs, "test suites": attacks.suites, "candidates": attacks.candidates}
    for title, kind in kinds.items():
        if not kind:
            continue
        print(f"## {len(kind)} hostile {title}\n")
        for result in PlainResult:
            if rows := [attack for attack in kind if plain[attack.name] is result]:
                print(f"Plain grader: **{result.value}** ({len(rows)})\n\n{_listed(rows, result)}\n")
    for name, verdict in found.items():
        if verdict is not AuditResult.HELD:
            print(f"- **{verdict.value.replace('_', ' ').upper()}** in {options.sandbox}: {name}")


def _listed(attacks: Sequence[Attack], result: PlainResult) -> str:
    """Return attacks with what they try, or those that are no news by their names only: their files say the rest."""
    if result in (PlainResult.HELD, PlainResult.NOT_RUN):
        return textwrap.fill(", ".join(f"`{attack.name}`" for attack in attacks) + ".", 130)
    return "\n".join(f"- {attack.name}: {attack.tries}" for attack in attacks)


if __name__ == "__main__":
    main()
