"""Telling processes that have ended from those that run, or may run."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from codea1_env.sandbox.docker.owner import Owner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_an_owner_survives_being_written_and_read() -> None:
    here = Owner.here()
    assert Owner.parse(str(here)) == here
    assert Owner.parse("somebody") is None


def test_this_process_lives_and_one_of_before_with_the_same_id_does_not() -> None:
    here = Owner.here()
    assert not here.is_dead()
    assert replace(here, started=here.started - 1).is_dead()
    assert replace(here, boot="00000000").is_dead()


def test_a_process_is_dead_when_it_has_ended_even_if_nobody_has_waited_for_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
    owner = replace(Owner.here(), pid=process.pid, started=started)
    assert not owner.is_dead()
    process.kill()
    assert wait_until(owner.is_dead)
    process.communicate()
    assert owner.is_dead()


def test_a_process_of_another_container_is_never_taken_for_dead() -> None:
    assert not replace(Owner.here(), started=1, pid_namespace=1).is_dead()
