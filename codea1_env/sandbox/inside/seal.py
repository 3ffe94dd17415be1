"""Removes rights: most of them once from the zygote, a few more from each process that it forks.

A zygote tries one tier, which its options name, and refuses to serve if the tier is not available:

==============  ======================================================================  ============
``namespaces``  read-only root with only Python in it, namespaces, seccomp, rlimits     isolated
``bwrap``       the same, made by bubblewrap (`bubblewrap`)                             isolated
``landlock``    Landlock on files, seccomp, rlimits; root becomes an unused user        best effort
``seccomp``     seccomp, rlimits; root becomes an unused user if every user can read     best effort
                Python, else root's files are readable as well as everybody's
``rlimits``     rlimits only                                                            trusted only
``container``   a process of a hardened container: Landlock if available, seccomp,      isolated
                rlimits (see `codea1_env.sandbox.docker.sandbox`)
==============  ======================================================================  ============
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Callable
from typing import Any

from codea1_env.sandbox.inside import kernel, landlock, namespaces, seccomp
from codea1_env.sandbox.inside.layout import is_readable_by_all, layout

_GUARANTEES = {
    "namespaces": "isolated",
    "bwrap": "isolated",
    "landlock": "best effort",
    "seccomp": "best effort",
    "rlimits": "trusted only",
    "container": "isolated",
}
_FIRST_FREE_USER = 300_000  # above the ids that distributions and container engines assign by default
_N_FREE_USERS = 60_000
_MAX_PROCESSES_ZYGOTE, _MAX_THREADS_CHILD = 4096, 256
_MAX_FILES, _MAX_STACK, _MAX_FILE_BYTES = 256, 64 << 20, 1 << 20
_PR_SET_DUMPABLE = 4

_install_child_filter: Callable[[int], None] | None = None
_bounds_threads = False
_inherited: dict[int, int] = {}
"""Hard limits that this process inherited and cannot raise."""
_needs_death_signal = sys.platform == "linux"


def seal(options: dict[str, Any]) -> dict[str, Any]:
    """Enter the tier that the options name, in this process (for `namespaces`, in a forked one).

    Returns:
        `tier`, its `guarantee`, and `can_kill_itself`: whether a job can send SIGKILL to itself.

    Raises:
        KernelRefuses: the tier is not available here.
    """
    tier = options["tier"]
    _prefer_for_oom_kill()
    if tier == "rlimits":
        _seal_rlimits(options)
    elif not kernel.is_supported():
        raise kernel.KernelRefuses("neither Linux on x86_64 nor on aarch64")
    else:
        _SEALS[tier](options)
    return {"tier": tier, "guarantee": _GUARANTEES[tier], "can_kill_itself": _install_child_filter is None}


def child_seal() -> Callable[[int, int], None]:
    """Return a function that removes from a forked process the rights that only the zygote needs, and sets its limits.

    The returned function takes processor seconds and bytes of address space. Everything is prepared here, and the
    function looks up no names: each object that a child uses for the first time makes it copy a page.
    """
    set_death_signal, parent = kernel.quick("prctl") if _needs_death_signal else None, kernel.DIE_WITH_PARENT
    setrlimit, getpid, install = resource.setrlimit, os.getpid, _install_child_filter
    cpu, memory, threads = resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NPROC if _bounds_threads else None
    few, most_s, most_bytes = (_MAX_THREADS_CHILD,) * 2, _inherited.get(cpu), _inherited.get(memory)

    def seal_child(cpu_s: int, address_space: int) -> None:
        if set_death_signal is not None:
            set_death_signal(*parent)
        if threads is not None:
            setrlimit(threads, few)
        if most_bytes is not None and address_space > most_bytes:
            address_space = most_bytes
        setrlimit(memory, (address_space, address_space))
        if most_s is not None and cpu_s > most_s:
            cpu_s = most_s
        setrlimit(cpu, (cpu_s, cpu_s))
        if install is not None:
            install(getpid())

    return seal_child


def _seal_rlimits(options: dict[str, Any]) -> None:
    leaves_root = os.geteuid() == 0 and kernel.is_supported() and is_readable_by_all(layout({}).shown)
    _limit(bounds_processes=leaves_root)
    if leaves_root:
        _leave_root(None)
    if kernel.is_supported():
        kernel.prctl(_PR_SET_DUMPABLE, 0)  # no other process of the same user may look into it
    _die_with_parent(options["parent"])


def _seal_namespaces(options: dict[str, Any]) -> None:
    visible = layout(options["packages"])
    is_root = kernel.can_mount()
    user = free_user()
    namespaces.enter(visible, options["control"])
    _limit(bounds_processes=is_root or _counts_processes_by_namespace())
    if is_root:
        become(user)
    _seal_process_1()


def _seal_bwrap(options: dict[str, Any]) -> None:
    """Add the restrictions that bubblewrap does not make."""
    _limit(bounds_processes=_counts_processes_by_namespace())
    _seal_process_1()


def _seal_process_1() -> None:
    """Seal the first process of a process namespace."""
    global _needs_death_signal  # noqa: PLW0603  -- see _filter
    kernel.drop_capabilities()
    kernel.die_with_parent()
    _needs_death_signal = False  # the kernel kills its children when process 1 ends
    _check_library_is_readable()
    _filter()


def _seal_landlock(options: dict[str, Any]) -> None:
    visible = layout(options["packages"])
    is_root = os.geteuid() == 0
    # If Python is in a folder that only root can read, another user could not import anything. Then the process keeps
    # the capability to read all files, which Landlock restricts to the visible ones.
    reads_all = is_root and not is_readable_by_all((*visible.shown, *visible.packages))
    _limit(bounds_processes=is_root)
    kernel.forbid_new_privileges()
    landlock.restrict(visible)
    if is_root:
        _leave_root(kernel.CAP_DAC_READ_SEARCH if reads_all else None)
    _seal_last(options)


def _seal_seccomp(options: dict[str, Any]) -> None:
    is_root = os.geteuid() == 0
    leaves_root = is_root and is_readable_by_all(layout(options["packages"]).shown)
    _limit(bounds_processes=leaves_root)
    if leaves_root:
        _leave_root(None)
    elif is_root:
        kernel.drop_capabilities()
    _seal_last(options)


def _seal_container(options: dict[str, Any]) -> None:
    """Add to the container's restrictions those between its jobs, and hide the image's other files."""
    _limit(bounds_processes=True)  # its user has no other processes
    kernel.forbid_new_privileges()
    with contextlib.suppress(kernel.KernelRefuses):  # the container isolates without it
        landlock.restrict(layout(options["packages"]))
    _seal_last(options)


def _seal_last(options: dict[str, Any]) -> None:
    kernel.prctl(_PR_SET_DUMPABLE, 0)  # no other process of the same user may look into it
    _die_with_parent(options["parent"])
    _check_library_is_readable()
    _filter()


_SEALS = {
    "namespaces": _seal_namespaces,
    "bwrap": _seal_bwrap,
    "landlock": _seal_landlock,
    "seccomp": _seal_seccomp,
    "container": _seal_container,
}


def _filter() -> None:
    global _install_child_filter  # noqa: PLW0603  -- one zygote per interpreter
    kernel.forbid_new_privileges()
    seccomp.installer(seccomp.zygote_filter())(0)
    _install_child_filter = seccomp.installer(seccomp.child_filter())


def _die_with_parent(parent: int) -> None:
    """Die with the thread that started this process, even if it has already ended."""
    if sys.platform == "linux":
        kernel.die_with_parent()
    if os.getppid() != parent:
        os._exit(0)


def _leave_root(kept: int | None) -> None:
    if kept is not None:
        kernel.keep_capabilities_over_change_of_user()
    become(free_user())
    kernel.drop_capabilities(kept)


def _counts_processes_by_namespace() -> bool:
    """Return whether RLIMIT_NPROC counts only processes of the user namespace (since Linux 5.14)."""
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int("".join(filter(str.isdigit, minor)) or 0)) >= (5, 14)


def free_user() -> int:
    """Return a user id that owns nothing; zygotes get different ones, so that they do not share limits per user."""
    return _FIRST_FREE_USER + os.getpid() % _N_FREE_USERS


def become(user: int) -> None:
    """Change this process to another user, irrevocably.

    Raises:
        KernelRefuses: not allowed.
    """
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError as error:
        raise kernel.KernelRefuses(error.errno, f"cannot become user {user}: {error.strerror}") from error


def _check_library_is_readable() -> None:
    try:
        with open(os.__file__, "rb") as file:
            file.read(1)
    except OSError as error:
        raise kernel.KernelRefuses(error.errno, f"the standard library cannot be read any more: {error}") from error


def _limit(*, bounds_processes: bool) -> None:
    """Set the limits of the zygote; its children inherit them and may get lower ones."""
    global _bounds_threads  # noqa: PLW0603  -- see _filter
    _bounds_threads = bounds_processes
    for per_job in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
        _, hard = resource.getrlimit(per_job)
        if hard != resource.RLIM_INFINITY:
            _inherited[per_job] = hard
    wanted = {"CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "SIGPENDING": 64, "NOFILE": _MAX_FILES, "FSIZE": _MAX_FILE_BYTES}
    if bounds_processes:
        wanted["NPROC"] = _MAX_PROCESSES_ZYGOTE
    for name, value in wanted.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            _, hard = resource.getrlimit(number)
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (bound, bound))
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    bound = _MAX_STACK if hard == resource.RLIM_INFINITY else min(_MAX_STACK, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (bound, bound))


def _prefer_for_oom_kill() -> None:
    """If the machine runs out of memory, the kernel must kill a job, not a trainer."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:  # not Linux, or not allowed; the sandbox works without it
        return
