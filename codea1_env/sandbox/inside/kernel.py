"""System calls that Python does not offer. Linux only."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable

CAP_DAC_READ_SEARCH = 2
_CAP_SYS_ADMIN = 21

_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 8, 24, 38
_SIGKILL = 9
DIE_WITH_PARENT = (_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
"""Arguments of prctl for `die_with_parent`."""
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 32, 4096, 1 << 14, 1 << 18
_ST_RELATIME, _MS_RELATIME = 4096, 1 << 21
_KEPT_FLAGS = 2 | 4 | 8 | 1024 | 2048  # nosuid nodev noexec noatime nodiratime: a user namespace cannot clear them
_MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
if _libc is not None:  # declared once: without this, converting the arguments costs each child more than the call
    _libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]


class KernelRefuses(OSError):
    """The kernel does not do what a tier needs; the next weaker tier is tried."""


def is_supported() -> bool:
    """Return whether the numbers in this module are valid for this system and processor."""
    return sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64") and sys.maxsize > 1 << 32


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise KernelRefuses(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: object, what: str) -> int:
    """Make a system call by number.

    Raises:
        KernelRefuses: it fails.
    """
    assert _libc is not None
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _check(_libc.syscall(ctypes.c_long(number), *wide), what)


def quick(name: str) -> Callable[..., int]:
    """Return a function of the C library that takes small numbers and bytes, for code where microseconds matter.

    It returns -1 if the call fails, and keeps no error number: an error number and declared argument types would need
    memory that each child copies.
    """
    function: Callable[..., int] = ctypes.CDLL(None)[name]
    return function


def prctl(option: int, *arguments: int) -> int:
    """Operate on this process; see prctl(2).

    Raises:
        KernelRefuses: it fails.
    """
    assert _libc is not None
    return _check(_libc.prctl(option, *(*arguments, 0, 0, 0, 0)[:4]), f"prctl {option}")


def die_with_parent() -> None:
    """Make the kernel kill this process when the thread that made it ends. A change of user resets this."""
    assert _libc is not None
    _libc.prctl(*DIE_WITH_PARENT)


def forbid_new_privileges() -> None:
    """Forbid gaining rights by exec; required for seccomp and Landlock without privileges."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def can_mount() -> bool:
    """Return whether this process has CAP_SYS_ADMIN; user 0 of a container may not have it."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
        effective = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff")), 0)
    return bool(effective >> _CAP_SYS_ADMIN & 1)


def keep_capabilities_over_change_of_user() -> None:
    """Keep the permitted capabilities when the next setuid changes the user."""
    prctl(_PR_SET_KEEPCAPS, 1)


def drop_capabilities(kept: int | None = None) -> None:
    """Drop all capabilities except `kept`, irrevocably.

    Raises:
        KernelRefuses: this process does not have the capability `kept`.
    """
    assert _libc is not None
    for capability in range(64):
        if capability != kept and _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # not allowed (there is nothing to drop then), or beyond the last one
    low = 0 if kept is None else 1 << kept
    header = (ctypes.c_uint32 * 2)(0x2008_0522, 0)
    data = (ctypes.c_uint32 * 6)(low, low, 0, 0, 0, 0)  # effective, permitted, inheritable; twice 32 bits
    _check(_libc.capset(header, data), "capset")


def unshare(flags: int) -> None:
    """Enter new namespaces.

    Raises:
        KernelRefuses: not allowed here.
    """
    assert _libc is not None
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int = 0, data: str | None = None) -> None:
    """Mount; see mount(2).

    Raises:
        KernelRefuses: it fails.
    """
    assert _libc is not None
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = _libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])
    _check(result, f"mount {target}")


def make_mounts_private() -> None:
    """Make later mounts invisible outside this mount namespace."""
    mount("none", "/", None, _MS_REC | _MS_PRIVATE)


def mount_memory(target: str, size: str) -> None:
    """Mount an empty file system, at most `size` large, at `target`."""
    mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},mode=755")


def bind(source: str, target: str) -> None:
    """Mount `source` at `target` as well."""
    mount(source, target, None, _MS_BIND | _MS_REC)


def remount_read_only(target: str, *, is_bind: bool = True, is_device: bool = False) -> None:
    """Forbid writing and set-user-id programs below a mount, and devices unless the mount is a device."""
    present = os.statvfs(target).f_flag
    flags = (present & _KEPT_FLAGS) | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID
    flags |= _MS_RELATIME if present & _ST_RELATIME else 0
    flags |= (0 if is_device else _MS_NODEV) | (_MS_BIND if is_bind else 0)
    mount("none", target, None, flags)


def unmount_lazily(target: str) -> None:
    """Detach a mount from the tree."""
    assert _libc is not None
    _check(_libc.umount2(os.fsencode(target), _MNT_DETACH), f"umount {target}")
