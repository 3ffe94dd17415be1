"""Everything that a forked process does. The zygote loads this module after all others.

Short and flat on purpose: each function and each type of object that a child uses for the first time makes it copy a
page.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed knows only signal
import _socket
import marshal
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from codea1_env.sandbox.inside import harness, program, script
from codea1_env.sandbox.inside.channel import Channel, exit_now
from codea1_env.sandbox.wire import APPLY, LOAD, Tag, frame_bytes
from codea1_env.values.encoding import encode

_OUTGOING, _INCOMING = 3, 4
_MAX_FD = 256
_SIGCHLD, _SIG_DFL = int(_signal.SIGCHLD), _signal.SIG_DFL
# Looked up before the fork, because each look-up in a child writes to memory. C functions of `_signal`, because the
# Python functions of `signal` write to memory, too.
_set_handler, _set_wakeup_fd = _signal.signal, _signal.set_wakeup_fd
_dup2, _closerange, _loads = os.dup2, os.closerange, marshal.loads
_ROLES = {"program": program.run, "harness": harness.run, "script": script.run}
_N_WARM_UP_JOBS = 40  # enough for the interpreter to specialise the bytecode, so that no child does that again

_WARM_UP_PROGRAM = '''
from typing import List
def f(x: List[int], y: int = 0) -> list:
    """Do a little of everything."""
    counts = {}
    for i, item in enumerate(x):
        counts[item] = counts.get(item, 0) + 1
    while y > 9:
        y -= 1
    try:
        return sorted([k for k in counts if k > y and k != 3], key=lambda k: -k)
    except (TypeError, ValueError) as error:
        return f"{error} {y:.2f}".split(" ")[0]
class A:
    def __init__(self, a): self.a = a if a else None
'''
_WARM_UP_CALLS = ["f([1, 2, 3])", "f('abc')", "f([1.5, True])", "f([], y=-1)", "(f([1]), {'a': {1}, None: 2})"]


def become_job(
    outgoing: int, incoming: int, cpu_s: int, address_space: int, seal_child: Callable[[int, int], None]
) -> NoReturn:
    """Run one job and end.

    Args:
        outgoing: descriptor to which answers are written.
        incoming: descriptor from which the job is read; larger than `outgoing`, since the kernel numbers descriptors
            that are received together in order.
        cpu_s: processor seconds in all.
        address_space: in bytes.
        seal_child: removes rights from this process.
    """
    try:
        _set_wakeup_fd(-1)
        _set_handler(_SIGCHLD, _SIG_DFL)
        if outgoing != _OUTGOING:
            _dup2(outgoing, _OUTGOING)
        if incoming != _INCOMING:
            _dup2(incoming, _INCOMING)
        _closerange(_INCOMING + 1, _MAX_FD)
        seal_child(cpu_s, address_space)
        _run(Channel(_INCOMING, _OUTGOING))
    finally:
        exit_now(0)


def _run(frames: Channel) -> None:
    job = _loads(frames.receive().payload)  # from trusted code, the same interpreter
    _ROLES[job["role"]](frames, job)


def run_warm_up_jobs() -> None:
    """Run trusted jobs in the zygote, so that the code that every child runs is loaded and specialised."""
    near, far = _socket.socketpair()
    frames = Channel(far.fileno(), far.fileno())
    main = sys.modules["__main__"]
    fields: dict[str, Any] = {
        "entry": "f",
        "method": "",
        "value_bytes": 65_536,
        "items_s": 1.0,
        "preamble": "import math\n",
    }
    as_program = {
        **fields,
        "role": "program",
        "program": _WARM_UP_PROGRAM,
        "calls": [*enumerate([*_WARM_UP_CALLS, "f(5)"])],
        "serve": False,
        "changes": True,
    }
    as_harness = {
        **fields,
        "role": "harness",
        "trusted": False,
        "records": [],
        "expected": [],
        "words": False,
        "source": "def check(f): return f(1)\n",
        "calls": [(0, "check(f)", [])],
    }
    for _ in range(_N_WARM_UP_JOBS):
        near.send(frame_bytes(Tag.JOB, LOAD, marshal.dumps(as_program)))
        _run(frames)
        near.send(frame_bytes(Tag.VALUE, APPLY, encode([1])))
        harness.run(frames, as_harness)
        near.recv(1 << 16)
    for name in ("program", "harness"):
        del sys.modules[name]
    sys.modules["__main__"] = main
    near.close()
    far.close()
