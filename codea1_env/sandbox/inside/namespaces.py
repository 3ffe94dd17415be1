"""Tier `namespaces`: a read-only root file system that contains only Python; nothing else of the machine is visible.

New mount, process, network, IPC and host-name namespaces; as a plain user, inside a new user namespace. The process
that makes them stays outside the process namespace and waits. It forks the zygote, which is process 1 inside: when the
zygote ends, the kernel kills everything that it forked.
"""

from __future__ import annotations

import _socket as socket
import os
import signal

from codea1_env.sandbox.inside import kernel
from codea1_env.sandbox.inside.layout import Layout

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_POINTS = ("/mnt", "/media", "/srv", "/opt", "/var", "/tmp", "/run")


def enter(visible: Layout, control: int) -> None:
    """Fork; return only in the new process, with all rights inside its namespaces. The caller waits for it to end.

    Raises:
        KernelRefuses: the system does not allow it.
    """
    spaces = _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS
    if kernel.can_mount():
        kernel.unshare(spaces)
    else:
        user, group = os.getuid(), os.getgid()
        kernel.unshare(_NEWUSER | spaces)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    try:
        socket.sethostname("sandbox")
    except OSError as error:
        raise kernel.KernelRefuses(error.errno, f"sethostname: {error.strerror}") from error
    _build_root(visible)
    pid = os.fork()
    if pid:
        os.close(control)
        _wait_for(pid)


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        raise kernel.KernelRefuses(error.errno, f"{path}: {error.strerror}") from error


def _wait_for(pid: int) -> None:
    kernel.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ended, _ = os.waitpid(pid, 0)
        if ended == pid:
            os._exit(0)


def _build_root(visible: Layout) -> None:
    kernel.make_mounts_private()
    root = _mount_point(visible)
    kernel.mount_memory(root, "4m")
    for path in (*visible.shown, *visible.devices):
        _show(root, path, is_device=path in visible.devices)
    for path in visible.hidden:
        if os.path.isdir(root + path):
            kernel.mount_memory(root + path, "1m")
    for path in visible.packages:
        _show(root, path)
    for path in visible.hidden:
        if os.path.isdir(root + path):
            kernel.remount_read_only(root + path, is_bind=False)
    _link_like_outside(root)
    os.makedirs(root + "/tmp", exist_ok=True)
    _move_into(root)


def _mount_point(visible: Layout) -> str:
    """Return a folder on which a mount hides nothing that is still needed."""
    needed = (*visible.shown, *visible.packages)
    for path in _MOUNT_POINTS:
        if os.path.isdir(path) and os.path.realpath(path) == path and not any(p.startswith(path + "/") for p in needed):
            return path
    raise kernel.KernelRefuses("no folder to build a root file system on")


def _show(root: str, path: str, is_device: bool = False) -> None:
    target = root + path
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="ascii"):
            pass
    kernel.bind(path, target)
    kernel.remount_read_only(target, is_device=is_device)


def _link_like_outside(root: str) -> None:
    """Repeat links such as /lib -> usr/lib, through which the loader looks for libraries."""
    for name in ("lib", "lib64", "usr/lib64"):
        if os.path.islink(f"/{name}") and not os.path.lexists(f"{root}/{name}"):
            os.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
            os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")


def _move_into(root: str) -> None:
    os.chdir(root)
    kernel.syscall(_PIVOT_ROOT[os.uname().machine], b".", b".", what="pivot_root")
    kernel.unmount_lazily(".")
    os.chdir("/")
    kernel.remount_read_only("/", is_bind=False)
