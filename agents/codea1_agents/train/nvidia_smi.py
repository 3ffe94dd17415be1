"""What NVIDIA's tool says about this process's GPUs. A look through torch would take memory of them."""

from __future__ import annotations

import os
import shutil
import subprocess


def gpu_figures(*names: str) -> list[list[str]]:
    """Return figures of each GPU that CUDA_VISIBLE_DEVICES leaves, such as `memory.total` in MiB.

    There are none without the tool, if it fails, as it does where it is installed without a driver, or if it does not
    know them.
    """
    command, visible = shutil.which("nvidia-smi"), os.environ.get("CUDA_VISIBLE_DEVICES")
    if command is None or visible == "":
        return []
    query = [command, f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"]
    only = [] if visible is None else ["-i", visible]
    try:
        done = subprocess.run([*query, *only], capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return []
    if "[N/A]" in done.stdout:
        return []
    return [[each.strip() for each in line.rsplit(",", len(names) - 1)] for line in done.stdout.splitlines() if line]
