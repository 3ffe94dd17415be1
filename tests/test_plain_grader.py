"""What a grader without a sandbox is fooled by, so that an audit can show a difference."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.plain_grader import PlainGrader, PlainResult
from codea1_env.audit import HostileProgram, load_attacks
from codea1_env.audit.surroundings import Surroundings
from tests.support.waiting import wait_until

pytestmark = pytest.mark.xdist_group("watches the machine")

ATTACKS = load_attacks()
PROGRAMS = {attack.name: attack for attack in ATTACKS.programs}
SUITES = {attack.name: attack for attack in ATTACKS.suites}
FOOLING = [
    "always_equal",
    "become_another_program",
    "equal_to_anything_from_the_library",
    "exception_hook_ends_with_0",
    "exit_at_import",
    "exit_hook_ends_with_0",
    "expected_values_in_frames",
    "expected_values_in_source",
    "os_exit",
    "system_exit",
    "thread_ends_with_0",
]


@pytest.fixture(scope="module")
def grader() -> PlainGrader:
    grader = PlainGrader(wall_s=20.0)  # the machine may be busy
    if grader.obstacle:
        pytest.skip(grader.obstacle)
    return grader


@pytest.mark.parametrize("name", FOOLING)
def test_it_passes_wrong_programs_that_are_well_known(grader: PlainGrader, name: str) -> None:
    found = grader.try_attack(PROGRAMS[name])
    assert (found.result, found.sentence) == (PlainResult.FOOLED, "a wrong program passes")


def test_it_passes_a_program_that_overwrites_the_number_it_is_compared_with(grader: PlainGrader) -> None:
    # Some interpreters crash instead.
    assert grader.try_attack(PROGRAMS["overwrite_a_number"]).result in (PlainResult.FOOLED, PlainResult.HELD)


def test_programs_reach_what_others_left_for_anyone_to_read(grader: PlainGrader) -> None:
    with Surroundings():
        assert grader.try_attack(PROGRAMS["read_the_canary"]).result is PlainResult.REACHED
    assert grader.try_attack(PROGRAMS["read_host_files"]).result is PlainResult.REACHED


def test_it_is_not_fooled_by_everything(grader: PlainGrader) -> None:
    for name in ("abort", "keyboard_interrupt", "read_standard_input", "raise_own_limits"):
        assert grader.try_attack(PROGRAMS[name]).result is PlainResult.HELD, name


def test_suites_without_a_test_pass_and_suites_that_look_at_the_text_fail_right_programs(grader: PlainGrader) -> None:
    found = grader.try_attack(SUITES["exit_in_an_argument"])
    assert (found.result, found.sentence) == (PlainResult.FOOLED, "passes, but contains no test")
    looking = replace(SUITES["walrus"], n_valid=1, reply="assert 'number' in total.__code__.co_varnames")
    assert grader.try_attack(looking).sentence == "a right program fails"
    assert grader.try_attack(SUITES["disguised_duplicates"]).result is PlainResult.HELD
    wrong = replace(SUITES["walrus"], n_valid=1, reply="assert total(3) == 7")
    assert grader.try_attack(wrong).sentence == "the solution fails it, so it is dropped"


def test_what_could_harm_the_machine_is_never_started(grader: PlainGrader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("it was started"))
    for attack in (each for each in ATTACKS if not each.is_safe):
        found = grader.try_attack(attack)
        expected = (PlainResult.NOT_RUN, "it could harm this machine")
        assert (found.result, found.sentence) == expected, attack.name


def test_candidates_are_graded_by_what_is_known_of_them(grader: PlainGrader) -> None:
    candidates = {attack.name: attack for attack in ATTACKS.candidates}
    assert grader.try_attack(candidates["sort_the_argument"]).result is PlainResult.HELD
    assert grader.try_attack(candidates["file_name"]).sentence == "passes, as it should"
    assert grader.try_attack(candidates["exits_with_0_when_it_is_called"]).result is PlainResult.FOOLED


def test_a_program_runs_as_nobody_who_owns_anything_in_a_folder_that_goes_away(grader: PlainGrader) -> None:
    asks = "import os\n\ndef f(x):\n    open('written', 'w').close()\n    return [os.geteuid() > 0, os.getcwd()]\n"
    folder = Path("/tmp").resolve()
    attack = HostileProgram(
        "asks", "ask", asks, ("f(1)[0]", "f(1)[1][:12]"), values=("True", "'nowhere'"), is_safe=True
    )
    assert grader.try_attack(replace(attack, values=("True", "'/tmp/codea1-'"))).result is PlainResult.HELD
    assert not list(folder.glob("codea1-plain-*/written"))


def test_a_program_that_takes_too_long_ends_with_all_that_it_has_started() -> None:
    grader = PlainGrader(wall_s=0.5)
    if grader.obstacle:
        pytest.skip(grader.obstacle)
    length = f"77.{os.getpid()}"  # nobody else's
    starts = f"import subprocess\n\ndef f(x):\n    subprocess.run(['sleep', '{length}'])\n"
    begun = time.monotonic()
    attack = HostileProgram("starts", "start", starts, ("f(1)",), right=("1",), is_safe=True)
    assert grader.try_attack(attack).result is PlainResult.TIMED_OUT
    assert time.monotonic() - begun < 20
    killed = f"sleep\0{length}\0".encode()
    assert wait_until(lambda: killed not in _commands(), 20.0)  # the kernel ends it in its own time


def _commands() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            found.append(path.read_bytes())
    return found
