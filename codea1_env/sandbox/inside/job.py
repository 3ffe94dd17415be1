"""What a forked process does from its first moment to its last. Loaded by the zygote after everything else.

Short and flat on purpose: each function and each kind of object that a child touches for the first time costs it the
copy of a page.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed knows only signal
import _socket
import marshal
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from codea1_env.sandbox.inside import harness, program
from codea1_env.sandbox.inside.channel import Channel, exit_now
from codea1_env.sandbox.wire import APPLY, LOAD, Tag, frame_bytes
from codea1_env.values.encoding import encode

_OUTGOING, _INCOMING = 3, 4
_MAX_FD = 256
_SIGCHLD, _SIG_DFL = int(_signal.SIGCHLD), _signal.SIG_DFL
# Looked up now: in a child each look-up writes to memory. The C functions behind `signal`: Python code does so, too.
_set_handler, _set_wakeup_fd = _signal.signal, _signal.set_wakeup_fd
_dup2, _closerange, _loads = os.dup2, os.closerange, marshal.loads
_N_REHEARSALS = 40  # the interpreter adapts a function's code to its use; a child must not have to do that again

_REHEARSED_PROGRAM = '''
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
_REHEARSED_CALLS = ["f([1, 2, 3])", "f('abc')", "f([1.5, True])", "f([], y=-1)", "(f([1]), {'a': {1}, None: 2})"]


def become_job(
    outgoing: int, incoming: int, cpu_s: int, address_space: int, seal_child: Callable[[int, int], None]
) -> NoReturn:
    """Run one job and end.

    Args:
        outgoing: where answers go to.
        incoming: where the job comes from; larger than `outgoing`, as the kernel numbers what is received together.
        cpu_s: for life.
        address_space: in bytes.
        seal_child: takes rights from this process.
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
    (harness if job["role"] == "harness" else program).run(frames, job)


def rehearse() -> None:
    """Run trusted jobs here, in the zygote, so that everything in their way is warm."""
    near, far = _socket.socketpair()
    frames = Channel(far.fileno(), far.fileno())
    main = sys.modules["__main__"]
    fields: dict[str, Any] = {"entry": "f", "value_bytes": 65_536, "items_s": 1.0, "preamble": "import math\n"}
    as_program = {
        **fields,
        "role": "program",
        "program": _REHEARSED_PROGRAM,
        "calls": [*enumerate([*_REHEARSED_CALLS, "f(5)"])],
        "serve": False,
        "changes": True,
    }
    as_harness = {
        **fields,
        "role": "harness",
        "trusted": False,
        "records": [],
        "source": "def check(f): return f(1)\n",
        "calls": [(0, "check(f)", [])],
    }
    for _ in range(_N_REHEARSALS):
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
