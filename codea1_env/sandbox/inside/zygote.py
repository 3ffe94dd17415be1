"""A prepared, sealed interpreter that forks one process per request and never reads the job of that process.

It ends when its control socket is closed, and everything that it forked ends with it.
"""

from __future__ import annotations

import _socket
import errno
import gc
import importlib
import json
import mmap
import os
import random
import resource
import site
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, NoReturn

from codea1_env.sandbox.inside import devices, kernel, memory_layout, seal, semaphores
from codea1_env.sandbox.wire import Op

# The modules that programs import most: importing them in a child would take longer than its whole job. But each
# megabyte costs every child, so rarer modules are imported only in other kinds of zygotes (`options["preload"]`).
_PREIMPORTED = """
    abc bisect collections.abc contextlib copy enum functools heapq io itertools math operator random re string types
    typing
"""


def main(options: dict[str, Any], on_imported: Callable[[], None]) -> NoReturn:
    """Prepare this interpreter, seal it, report that it is ready, and serve until the control socket is closed.

    Args:
        options: `control` (descriptor), `parent` (process id), `packages` (allowed site packages: name to folder),
            `preload` (modules to import now), and the options of `seal`; emptied when the zygote is ready.
        on_imported: called when all files of this project have been imported.
    """
    control = _socket.socket(fileno=options["control"])  # the class of `socket` would need memory in every child
    if options["tier"] == "bwrap" and "is_inside" not in options:
        _start_again_in_bubblewrap(options, control)
    control = _move_low(control)
    options["control"] = control.fileno()
    for name in ("PWD", "LD_BIND_NOW"):  # PWD: set only by bubblewrap; LD_BIND_NOW: only for this interpreter's start
        os.environ.pop(name, None)
    sys.meta_path.append(_AllowedPackages(options["packages"]))
    for name in (*_PREIMPORTED.split(), *options["preload"]):
        importlib.import_module(name)
    for define in (site.setquit, site.setcopyright, site.sethelper):  # names that a script has
        define()
    semaphores.install()
    _warm_up()
    # Loaded last, so that the memory that every job uses lies close together.
    server = importlib.import_module("codea1_env.sandbox.inside.server")
    job = importlib.import_module("codea1_env.sandbox.inside.job")
    sys.dont_write_bytecode = True
    _hide_origin(options["root"])
    on_imported()
    job.run_warm_up_jobs()
    try:
        sealed = seal.seal(options)
        devices.install()  # not before: sealing opens devices by their names
        _compact_memory()
        seal_child, own_bytes = seal.child_seal(), _address_space()
        _try_a_child(seal_child, own_bytes)
    except OSError as refusal:  # KernelRefuses, or /proc is not there
        _refuse(control, refusal)
    for name in [name for name in sys.modules if name.startswith("codea1_env")]:
        del sys.modules[name]  # the modules in use keep working, but no program can import them
    options.clear()  # a program can find this frame, and they tell of the trainer
    control.send(Op.READY + json.dumps(sealed).encode())
    serve: Callable[[_socket.socket, int, Callable[[int, int], None]], NoReturn] = server.serve
    serve(control, own_bytes, seal_child)


def _move_low(control: _socket.socket) -> _socket.socket:
    """Move the control socket to a low descriptor, so that each child closes it with all others (`job`).

    It has the same number as in the process that started this one, which may have thousands of open files.
    """
    low = os.dup(control.fileno())
    control.close()
    return _socket.socket(fileno=low)


def _refuse(control: _socket.socket, refusal: OSError) -> NoReturn:
    control.send(Op.REFUSED + str(refusal).encode())
    os._exit(1)


def _start_again_in_bubblewrap(options: dict[str, Any], control: _socket.socket) -> NoReturn:
    try:
        importlib.import_module("codea1_env.sandbox.inside.bubblewrap").enter(options)
    except OSError as refusal:
        _refuse(control, refusal)
    raise AssertionError("this process is another one now")


class _AllowedPackages:
    """Finds only the allowed site packages, since some others contain the answers to the problems.

    It looks for them at once: Landlock forbids to list their folder afterwards.
    """

    def __init__(self, folders: dict[str, str]) -> None:
        self._specs = {name: PathFinder.find_spec(name, [folder]) for name, folder in folders.items()}
        for folder in folders.values():
            sys.path_importer_cache.pop(folder, None)  # it names all packages there

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return self._specs.get(name) if path is None else None


def _hide_origin(root: str) -> None:
    """Give `sys` and `os` what they have in a script, where they would tell of this process (docs/sandbox.md)."""
    sys.executable = sys._base_executable  # type: ignore[attr-defined]  # the environment is not visible
    sys.argv = ["program.py"]
    sys.orig_argv = [sys.executable, *sys.argv]
    os.register_at_fork = sys.modules["posix"].register_at_fork
    for path in [path for path in sys.path_importer_cache if path.startswith(os.path.join(root, "codea1_env"))]:
        del sys.path_importer_cache[path]


def _warm_up() -> None:
    """Do once what every child would otherwise do itself, then compact the memory."""
    source = "import math\nclass A:\n  def f(self, x: int = 1) -> list: return [i for i in range(x) if i % 2]\n"
    for _ in range(3):
        exec(compile(source, "<warm>", "exec"), {})
        for broken in ("f(", "raise ValueError(1)"):
            try:
                exec(compile(broken, "<warm>", "exec"), {})
            except (SyntaxError, ValueError) as error:
                str(error)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    memory_layout.share_code_pages()
    _compact_memory()


def _compact_memory() -> None:
    """Exclude all existing objects from garbage collection, and make later objects lie side by side."""
    gc.collect()
    gc.freeze()
    memory_layout.fill_free_memory()


def _try_a_child(seal_child: Callable[[int, int], None], own_bytes: int) -> None:
    """Fork and seal a process that does nothing, so that a failure to seal is not mistaken for a program's fault."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            seal_child(60, own_bytes + (64 << 20))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise kernel.KernelRefuses(f"a sealed process ends with status {status}")


def _address_space() -> int:
    """Return the size of this process in bytes (address space), found without /proc."""
    low, high = 0, 1 << 46
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    while high - low > 1 << 18:
        middle = (low + high) // 2
        resource.setrlimit(resource.RLIMIT_AS, (middle, hard))
        try:
            mmap.mmap(-1, mmap.PAGESIZE).close()
            high = middle
        except (OSError, MemoryError) as error:
            if isinstance(error, OSError) and error.errno not in (errno.ENOMEM, errno.EAGAIN):
                raise
            low = middle
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    return high
