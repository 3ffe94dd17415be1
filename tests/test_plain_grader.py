"""What a grader without a sandbox is fooled by, so that an audit can show a difference."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.plain_grader import PlainGrader, PlainResult
from codea1_env.audit import load_attacks

pytestmark = pytest.mark.xdist_group("watches the machine")

ATTACKS = load_attacks()
PROGRAMS = {attack.name: attack for attack in ATTACKS.programs}
FOOLING = (
    "always_equal become_another_program equal_to_anything_from_the_library exception_hook_ends_with_0 exit_at_import"
    " exit_hook_ends_with_0 expected_values_in_frames expected_values_in_source os_exit system_exit thread_ends_with_0"
)


@pytest.fixture(scope="module")
def grader() -> PlainGrader:
    grader = PlainGrader(wall_s=20.0)  # the machine may be busy
    if grader.obstacle:
        pytest.skip(grader.obstacle)
    return grader


@pytest.mark.parametrize("name", FOOLING.split())
def test_it_passes_wrong_programs_that_are_well_known(grader: PlainGrader, name: str) -> None:
    found = grader.try_attack(PROGRAMS[name])
    assert (found.result, found.sentence) == (PlainResult.FOOLED, "a wrong program passes")


def test_it_is_not_fooled_by_everything(grader: PlainGrader) -> None:
    for name in ("abort", "keyboard_interrupt", "read_standard_input", "raise_own_limits"):
        assert grader.try_attack(PROGRAMS[name]).result is PlainResult.HELD, name


def test_what_could_harm_the_machine_is_never_started(grader: PlainGrader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("it was started"))
    for attack in (each for each in ATTACKS if not each.is_safe):
        found = grader.try_attack(attack)
        expected = (PlainResult.NOT_RUN, "it could harm this machine")
        assert (found.result, found.sentence) == expected, attack.name
