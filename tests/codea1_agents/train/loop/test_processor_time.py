"""Processor time of a whole process tree."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from codea1_agents.train.loop.processor_time import processor_seconds

BUSY = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_what_children_do_counts_while_they_live_and_afterwards() -> None:
    before, own = processor_seconds(), time.process_time()
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        alive = processor_seconds()
        child.stdin.write(b"\n")
    assert alive - before > 0.45
    assert processor_seconds() - before > 0.45
    assert time.process_time() - own < 0.4
