"""Examines what this machine offers. Reads metadata and files only: imports no optional package, uses no network."""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from pathlib import Path

from codea1_agents.checks.sandbox_check import promise_of
from codea1_env.errors import DISTRIBUTION, SandboxError, install_line
from codea1_env.sandbox import Guarantee, load_sandbox

_REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)[^;]*(?:;.*extra == ['\"](?P<extra>[\w-]+)['\"])?")
_DOCKER_SOCKET = "/var/run/docker.sock"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is available or missing."""

    subject: str
    ok: bool
    detail: str
    remedy: str = ""
    """The command that installs it; empty if there is nothing to do."""


def examine() -> tuple[Finding, ...]:
    """Return all findings; never raises."""
    return (_python(), *_packages(), _cores(), _memory(), _sandbox(), _docker(), _gpu())


def missing_extra(group: str, name: str) -> str:
    """Return what pip must install for an entry point, such as `codea1-env[openai]`; empty if nothing is missing.

    An entry point needs the extra of its distribution that has the same name, if there is one. Imports nothing.
    """
    for point in entry_points(group=group, name=name):
        if point.dist is not None and not all(map(_version, _by_extra(point.dist.name).get(name, ()))):
            return f"{point.dist.name}[{name}]"
    return ""


def _python() -> Finding:
    return Finding("Python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _packages() -> Iterable[Finding]:
    """Yield one finding for the packages that every run needs, then one per extra."""
    for extra, packages in _by_extra(DISTRIBUTION).items():
        found = {package: _version(package) for package in packages}
        versions = ", ".join(f"{name} {number or '(missing)'}" for name, number in found.items())
        subject = f"extra {extra}" if extra else "packages"
        remedy = install_line(f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION)
        yield Finding(subject, all(found.values()), versions, "" if all(found.values()) else remedy)


def _by_extra(distribution: str) -> dict[str, list[str]]:
    """Return the packages that a distribution requires, by extra; the empty name has those of no extra."""
    found: dict[str, list[str]] = {}
    for matched in filter(None, map(_REQUIREMENT.match, requires(distribution) or ())):
        found.setdefault(matched["extra"] or "", []).append(matched["name"])
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _cores() -> Finding:
    return Finding("cores", True, f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}")


def _memory() -> Finding:
    try:
        page, total = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
        free = os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError):
        return Finding("memory", True, "unknown")
    return Finding("memory", True, f"{page * total / 2**30:.1f} GiB, {page * free / 2**30:.1f} GiB unused")


def _sandbox() -> Finding:
    try:
        with closing(load_sandbox("local")) as sandbox:
            promise = promise_of(sandbox)
    except SandboxError as error:
        return Finding("sandbox", False, str(error), "see docs/sandbox.md")
    better = "" if promise.guarantee is Guarantee.ISOLATED else "see docs/sandbox.md for stronger isolation"
    return Finding("sandbox", True, "; not ".join([promise.sentence(), *promise.refusals]), better)


def _docker() -> Finding:
    place = os.environ.get("DOCKER_HOST", f"unix://{_DOCKER_SOCKET}")
    if not place.startswith("unix://"):
        return Finding("docker", True, f"DOCKER_HOST is {place}, not checked")
    path = place.removeprefix("unix://")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(2.0)
            client.connect(path)
            client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            reachable = client.recv(16).startswith(b"HTTP/")
    except OSError as error:
        return Finding("docker", False, f"{path}: {error.strerror or error}", "optional: start the docker daemon")
    return Finding("docker", reachable, f"{path} answers" if reachable else f"{path} gives an unexpected answer")


def _gpu() -> Finding:
    cards = sorted(path.name for path in Path("/dev").glob("nvidia[0-9]*"))
    if cards:
        return Finding("GPU", True, ", ".join(cards))
    if Path("/dev/kfd").exists():
        return Finding("GPU", True, "AMD (/dev/kfd)")
    return Finding("GPU", False, "none found", "optional: only language models need one")
