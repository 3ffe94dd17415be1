"""Whether containers can be had on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

from codea1_env.errors import SandboxError
from codea1_env.sandbox.docker.engine import connected


def missing_engine() -> str:
    """Return why no container engine can be had here; empty if one answers, or `.ci/docker-engine` may start one."""
    if sys.platform != "linux":
        return "containers are Linux"
    if importlib.util.find_spec("docker") is None:
        return "the docker sandbox needs the extra `docker`"
    if os.geteuid() == 0 and shutil.which("dockerd"):
        return ""
    try:
        with connected():
            return ""
    except SandboxError:
        return "no container engine answers here, and only root can start one, where there is a dockerd"
